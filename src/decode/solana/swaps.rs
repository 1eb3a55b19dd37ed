//! Which outer instructions swap for the wallet, and what they moved.

use super::action::Action;
use super::balances::{Asset, Flow, Ledger, Means};
use super::transaction::{Instruction, Transaction};
use crate::registry::{AccountKind, Program, ProgramKind, SolanaTables};

/// The transaction with what the tables say of its programs.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) tx: &'a Transaction,
    pub(super) tables: &'a SolanaTables,
    /// Per key.
    programs: Vec<Option<&'a Program>>,
}

/// What one group of instructions moved for the wallet.
#[derive(Debug, Clone, Default)]
pub(super) struct Net {
    /// Lamports; positive where the wallet got them.
    pub(super) native: i128,
    /// By index of the mint; positive where the wallet got them.
    pub(super) tokens: Vec<(usize, i128)>,
    /// The wallet's pool shares were minted or burnt.
    pub(super) shares: bool,
}

impl Net {
    fn add(&mut self, asset: Asset, amount: i128) {
        match asset {
            Asset::Native => self.native += amount,
            Asset::Token(mint) => match self.tokens.iter_mut().find(|(known, _)| *known == mint) {
                Some((_, sum)) => *sum += amount,
                None => self.tokens.push((mint, amount)),
            },
        }
    }

    /// Something given and something got, and not the native coin on one side of nothing.
    pub(super) fn is_swap(&self) -> bool {
        let amounts = || self.tokens.iter().map(|(_, sum)| *sum).chain([self.native]);
        self.tokens.iter().any(|(_, sum)| *sum != 0)
            && amounts().any(|sum| sum > 0)
            && amounts().any(|sum| sum < 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.native == 0 && self.tokens.iter().all(|(_, sum)| *sum == 0)
    }
}

impl<'a> Scene<'a> {
    pub(super) fn new(tx: &'a Transaction, tables: &'a SolanaTables) -> Self {
        Self { tx, tables, programs: tx.keys.iter().map(|key| tables.program(key)).collect() }
    }

    pub(super) fn program(&self, instruction: &Instruction) -> Option<&'a Program> {
        self.programs.get(usize::from(instruction.program)).copied().flatten()
    }

    pub(super) fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        self.tx.instructions.get(at)
    }

    /// Whether any program of the tables ran.
    pub(super) fn has_venue(&self) -> bool {
        self.tx.instructions.iter().any(|i| self.program(i).is_some_and(|p| trades(p.kind)))
    }

    /// Whether a program that has a part in trades runs in these instructions.
    pub(super) fn may_swap(&self, range: &std::ops::Range<usize>) -> bool {
        let calls = self.tx.instructions.get(range.clone()).unwrap_or_default();
        calls.iter().filter_map(|call| self.program(call)).any(|program| trades(program.kind))
    }

    /// The calls above an instruction, nearest first; itself where it is a call.
    pub(super) fn callers(&self, at: usize) -> impl Iterator<Item = (usize, &'a Instruction)> {
        let mut next = Some(at);
        std::iter::from_fn(move || {
            let at = next?;
            let instruction = self.instruction(at)?;
            next = instruction.parent;
            Some((at, instruction))
        })
        .filter(|(_, instruction)| matches!(instruction.action, Action::Call))
    }

    /// The venue in which an instruction stands: the nearest caller that exchanges assets.
    pub(super) fn leaf(&self, at: usize) -> Option<(usize, &'a Program)> {
        self.callers(at).find_map(|(at, call)| {
            let program = self.program(call)?;
            let swaps = exchanges(program.kind)
                && (program.swaps.is_empty() || program.may_swap(&self.tx.data_of(call)));
            swaps.then_some((at, program))
        })
    }

    /// What the wallet's accounts gave and got in these instructions, without rent, tips and
    /// transfers beside the swap.
    pub(super) fn net(&self, ledger: &Ledger, range: &std::ops::Range<usize>) -> Net {
        let mut net = Net::default();
        for flow in ledger.flows.iter().filter(|flow| range.contains(&flow.instruction)) {
            let (out, into) = (ledger.is_own(flow.from), ledger.is_own(flow.to));
            if out == into {
                continue;
            }
            let amount = self.swapped(ledger, flow, out);
            if matches!(flow.means, Means::Mint | Means::Burn) {
                net.shares |= self.is_share(flow.instruction);
            }
            net.add(flow.asset, if out { -amount } else { amount });
        }
        net
    }

    /// The part of a flow over the wallet's border that belongs to the swap.
    fn swapped(&self, ledger: &Ledger, flow: &Flow, out: bool) -> i128 {
        let amount = i128::from(if out { flow.amount } else { flow.received });
        match flow.means {
            Means::Transfer | Means::Mint | Means::Burn => amount,
            Means::Close { rent } => amount - i128::from(rent),
            Means::Create => match flow.to.map(|to| ledger.account(to)) {
                Some(account) if account.wrapped && out => amount - i128::from(account.rent()),
                _ => 0,
            },
            Means::Pay if !out => amount,
            Means::Pay => {
                if self.is_beside(ledger, flow) {
                    0
                } else {
                    amount
                }
            }
        }
    }

    /// Whether lamports that the wallet pays inside a swap's instruction are no part of it.
    fn is_beside(&self, ledger: &Ledger, flow: &Flow) -> bool {
        let Some(to) = flow.to else { return false };
        let key = self.tx.key(to);
        match key.and_then(|key| self.tables.account(key)) {
            Some(AccountKind::Tip | AccountKind::BotFee) => return true,
            Some(AccountKind::ProtocolFee) => return false,
            None => {}
        }
        let account = ledger.account(to);
        if account.mint.is_some() {
            return false;
        }
        if account.created {
            return true;
        }
        if self.leaf(flow.instruction).is_some() {
            return false;
        }
        // In a router's own frame: what the receiver keeps is a fee beside the swap.
        let passes_on =
            ledger.flows.iter().any(|other| {
                other.asset == Asset::Native && other.from == Some(to) && other.amount > 0
            }) || ledger.residue.get(usize::from(to)).is_some_and(|residue| *residue < 0);
        !passes_on
    }

    /// Lamports that the wallet got (or gave) without an instruction, for a group in which a
    /// program may do so.
    pub(super) fn unexplained(&self, ledger: &Ledger, range: &std::ops::Range<usize>) -> i128 {
        // Only one group can be the reason; where several might be, none is told from the other.
        let groups = super::outer_ranges(self.tx);
        let swapping = groups.iter().filter(|group| self.may_swap(group)).count();
        if swapping != 1 || !self.may_swap(range) {
            return 0;
        }
        let Some(wallet) = ledger.wallet else { return 0 };
        let closed: i128 = (0..self.tx.keys.len())
            .filter(|at| self.tx.lamports.get(*at).is_some_and(|(_, after)| *after == 0))
            .filter_map(|at| ledger.residue.get(at))
            .filter(|residue| **residue < 0)
            .sum();
        let residue = ledger.residue.get(usize::from(wallet)).copied().unwrap_or(0);
        if residue > 0 { (residue + closed).max(0) } else { 0 }
    }

    /// Whether a mint or burn in this place makes or ends a share of a pool.
    fn is_share(&self, at: usize) -> bool {
        let routed = self
            .callers(at)
            .any(|(_, call)| self.program(call).is_some_and(|p| p.kind == ProgramKind::Aggregator));
        !routed && self.leaf(at).is_none_or(|(_, program)| program.kind != ProgramKind::Curve)
    }
}

/// Whether a program of this kind has a part in trades.
pub(super) fn trades(kind: ProgramKind) -> bool {
    !matches!(kind, ProgramKind::Conversion | ProgramKind::Part)
}

/// Whether a program of this kind holds the other side of a trade itself.
pub(super) fn exchanges(kind: ProgramKind) -> bool {
    match kind {
        ProgramKind::Amm | ProgramKind::Curve | ProgramKind::OrderBook | ProgramKind::Rfq => true,
        ProgramKind::Aggregator
        | ProgramKind::Router
        | ProgramKind::Limit
        | ProgramKind::Dca
        | ProgramKind::Conversion
        | ProgramKind::Part => false,
    }
}
