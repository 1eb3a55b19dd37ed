//! Which chain is simulated, and by which way its transactions are found.

use blotter::domain::Doubts;

/// A family's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Solana,
    /// EVM by `eth_getLogs` alone.
    Logs,
    /// EVM by account lists, with `eth_getLogs` behind them.
    Explorer,
    /// EVM by `alchemy_getAssetTransfers`, with `eth_getLogs` behind it.
    Transfers,
    /// EVM by a gateway, with `eth_getLogs` behind it.
    Portal,
    /// Tron by account lists.
    Lists,
    /// Tron by events alone.
    Events,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Solana => "solana",
            Self::Logs => "logs",
            Self::Explorer => "explorer",
            Self::Transfers => "transfers",
            Self::Portal => "portal",
            Self::Lists => "lists",
            Self::Events => "events",
        }
    }

    pub(super) fn is_tron(self) -> bool {
        matches!(self, Self::Lists | Self::Events)
    }

    /// Whether rows may come late into a span that was read, because the read was not accepted.
    pub(super) fn has_doubts(self) -> bool {
        self != Self::Solana
    }

    /// The limit of requests once nothing fails any more.
    pub(super) fn requests_max(self, transactions: u64) -> u64 {
        match self {
            Self::Solana => 600 + 4 * transactions,
            Self::Events => 4_000 + 12 * transactions,
            Self::Logs | Self::Explorer | Self::Transfers | Self::Portal | Self::Lists => {
                2_000 + 12 * transactions
            }
        }
    }

    /// The doubts that no configured way of this world can settle.
    pub(super) fn blind(self) -> Doubts {
        match self {
            Self::Events => Doubts::TRC10,
            Self::Logs | Self::Transfers => Doubts::INNER_CALLS,
            Self::Solana | Self::Explorer | Self::Portal | Self::Lists => Doubts::NONE,
        }
    }
}
