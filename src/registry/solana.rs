//! Solana programs and fee accounts: `data/venues-solana.toml`, `data/accounts-solana.toml`.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};

use super::RegistryError;
use crate::domain::Address;

type Key = [u8; 32];
/// Anchor's: the first bytes of an instruction's data.
type Discriminator = [u8; 8];

const VENUES: &str = "venues-solana";

/// What a program does with the assets that pass through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// A pool: mints and burns of its own tokens are shares of the pool.
    Amm,
    /// A launchpad's price curve; may mint, and may move lamports without an instruction.
    Curve,
    OrderBook,
    /// Routes one swap through venues; its fees are part of the swap.
    Aggregator,
    /// A trading bot's router: lamports that it sends elsewhere are its own fee.
    Router,
    /// Orders that keepers fill from the order's own account.
    Limit,
    /// Orders in instalments that keepers fill.
    Dca,
    /// Market makers that sign their quote.
    Rfq,
    /// Stake pools and other fixed-price conversions: not a trade.
    Conversion,
    /// A program that venues call: not a venue of its own.
    Part,
    /// A smart account's: it executes instructions as if the account had signed each of them.
    SmartAccount,
}

/// One program that takes part in swaps.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Never reused.
    pub id: u16,
    address: Address,
    /// The venue's common name; several programs may have the same.
    pub name: Arc<str>,
    pub kind: ProgramKind,
    /// Which instructions swap; empty where any may.
    #[serde(default)]
    swaps: Vec<Tag>,
    /// Which instructions of a program that also does other things fill orders in a later
    /// transaction; by name in the table.
    #[serde(default, deserialize_with = "discriminators")]
    fills: Vec<Discriminator>,
    /// Which instructions, called by others, move tokens to or from a position of the wallet.
    #[serde(default)]
    positions: Vec<Tag>,
}

/// The prefix of an instruction's data, and optionally the bytes at one more offset. The table has
/// it as `<hex>` or `<hex>@<offset>=<hex>`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Tag {
    start: Vec<u8>,
    later: Option<(usize, Vec<u8>)>,
}

impl Tag {
    fn parse(text: &str) -> Option<Self> {
        let (start, later) = match text.split_once('@') {
            Some((start, later)) => {
                let (offset, bytes) = later.split_once('=')?;
                (start, Some((offset.parse().ok()?, hex::decode(bytes).ok()?)))
            }
            None => (text, None),
        };
        Some(Self { start: hex::decode(start).ok()?, later })
    }

    fn fits(&self, data: &[u8]) -> bool {
        let later = self.later.as_ref();
        data.starts_with(&self.start)
            && later.is_none_or(|(at, bytes)| {
                data.get(*at..).is_some_and(|behind| behind.starts_with(bytes))
            })
    }
}

impl TryFrom<String> for Tag {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text} is no instruction tag"))
    }
}

/// Why an account receives lamports in addition to a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// A relay's tip for inclusion.
    Tip,
    /// A bot's or a wallet application's fee.
    BotFee,
    /// A venue's fee: part of the swap.
    ProtocolFee,
}

/// Solana's programs and accounts, for the decoder.
#[derive(Debug)]
pub struct SolanaTables {
    programs: HashMap<Key, Program>,
    accounts: HashMap<Key, AccountKind>,
    not_swaps: HashSet<Discriminator>,
    swaps: HashSet<Discriminator>,
}

impl SolanaTables {
    pub fn program(&self, address: &Key) -> Option<&Program> {
        self.programs.get(address)
    }

    pub fn account(&self, address: &Key) -> Option<AccountKind> {
        self.accounts.get(address).copied()
    }

    /// Whether an instruction of a pool with this data only moves liquidity.
    pub fn moves_liquidity(&self, data: &[u8]) -> bool {
        data.first_chunk().is_some_and(|tag| self.not_swaps.contains(tag))
    }

    /// Whether an instruction with this data has a name that swaps have, in a program of no table.
    pub fn names_swap(&self, data: &[u8]) -> bool {
        data.first_chunk().is_some_and(|tag| self.swaps.contains(tag))
    }
}

impl Program {
    /// Whether an instruction may swap; computes its data only where not every instruction may.
    pub fn may_swap<D: AsRef<[u8]>>(&self, data: impl FnOnce() -> D) -> bool {
        if self.swaps.is_empty() {
            return true;
        }
        let data = data();
        self.swaps.iter().any(|tag| tag.fits(data.as_ref()))
    }

    /// Whether an instruction that a swap calls only moves tokens to or from a position of the
    /// wallet.
    pub fn moves_position(&self, data: &[u8]) -> bool {
        self.positions.iter().any(|tag| tag.fits(data))
    }

    /// Whether some of its instructions fill orders.
    pub fn fills_orders(&self) -> bool {
        !self.fills.is_empty()
    }

    /// Whether an instruction fills orders; computes its data only where some of the program's do.
    pub fn fills<D: AsRef<[u8]>>(&self, data: impl FnOnce() -> D) -> bool {
        self.fills_orders()
            && data().as_ref().first_chunk().is_some_and(|tag| self.fills.contains(tag))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VenueFile {
    #[serde(deserialize_with = "discriminators")]
    not_swaps: Vec<Discriminator>,
    #[serde(default, deserialize_with = "discriminators")]
    swaps: Vec<Discriminator>,
    program: Vec<Program>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountFile {
    group: Vec<GroupRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupRow {
    name: String,
    kind: AccountKind,
    accounts: Vec<Address>,
}

pub(super) fn parse(venues: &str, accounts: &str) -> Result<SolanaTables, RegistryError> {
    let file: VenueFile = toml::from_str(venues).map_err(|e| RegistryError::new(VENUES, e))?;
    let not_swaps = file.not_swaps.into_iter().collect();
    let swaps = file.swaps.into_iter().collect();
    let programs = index_programs(file.program)?;
    Ok(SolanaTables { programs, accounts: parse_accounts(accounts)?, not_swaps, swaps })
}

/// Deserializes names of instructions. Anchor's discriminator is the first bytes of a name's hash.
fn discriminators<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Discriminator>, D::Error> {
    let discriminator = |name: String| {
        let digest = Sha256::digest(format!("global:{name}"));
        digest.first_chunk().copied().unwrap_or_default()
    };
    Ok(Vec::deserialize(from)?.into_iter().map(discriminator).collect())
}

fn index_programs(rows: Vec<Program>) -> Result<HashMap<Key, Program>, RegistryError> {
    let (mut programs, mut ids) = (HashMap::default(), HashSet::default());
    for row in rows {
        let address = row.address;
        if row.name.trim().is_empty() {
            return Err(RegistryError::new(VENUES, format!("{address} has no name")));
        }
        if !ids.insert(row.id) {
            return Err(RegistryError::new(VENUES, format!("id {} stands twice", row.id)));
        }
        if programs.insert(key(VENUES, address)?, row).is_some() {
            return Err(RegistryError::new(VENUES, format!("{address} stands twice")));
        }
    }
    Ok(programs)
}

fn parse_accounts(text: &str) -> Result<HashMap<Key, AccountKind>, RegistryError> {
    const TABLE: &str = "accounts-solana";
    let file: AccountFile = toml::from_str(text).map_err(|e| RegistryError::new(TABLE, e))?;
    let mut accounts = HashMap::default();
    for row in file.group {
        if row.name.trim().is_empty() {
            return Err(RegistryError::new(TABLE, "a group has no name"));
        }
        for account in row.accounts {
            if accounts.insert(key(TABLE, account)?, row.kind).is_some() {
                return Err(RegistryError::new(TABLE, format!("{account} stands twice")));
            }
        }
    }
    Ok(accounts)
}

fn key(table: &'static str, address: Address) -> Result<Key, RegistryError> {
    match address {
        Address::Solana(key) => Ok(key),
        Address::Evm(_) | Address::Tron(_) => {
            Err(RegistryError::new(table, format!("{address} is no Solana address")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"
        not_swaps = ["add_liquidity"]
        [[program]]
        id = 1
        address = "675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8"
        name = "Raydium AMM v4"
        kind = "amm"
        swaps = ["09", "0a@2=ff00"]
    "#;
    const TIPS: &str = r#"
        [[group]]
        name = "jito"
        kind = "tip"
        accounts = ["96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5"]
    "#;

    #[test]
    fn a_tag_looks_at_two_places() {
        let tables = parse(ONE, TIPS).unwrap();
        let program = tables.programs.values().next().unwrap();
        for (data, swaps) in [
            (vec![9], true),
            (vec![9, 1], true),
            (vec![10, 0, 255, 0], true),
            (vec![10, 0, 255, 1], false),
            (vec![10, 0, 255], false),
            (vec![], false),
        ] {
            assert_eq!(program.may_swap(|| &data), swaps, "{data:?}");
        }
        // sha256("global:add_liquidity"), as Anchor publishes it in every interface file.
        assert!(tables.moves_liquidity(&[181, 157, 89, 67, 143, 182, 52, 72, 1]));
        assert!(!tables.moves_liquidity(&[181, 157, 89, 67]));
    }

    #[test]
    fn refuses_a_row_that_cannot_be_used() {
        let twice = format!("{ONE}{}", ONE.split_once("]\n").unwrap().1);
        let bad = [
            twice.clone(),
            twice.replacen("id = 1", "id = 2", 1),
            ONE.replace("675k", "0OIl"),
            ONE.replace("\"amm\"", "\"pool\""),
            ONE.replace("Raydium AMM v4", " "),
            ONE.replace("0a@2=ff00", "0a@2"),
            ONE.replace("0a@2=ff00", "0x"),
            format!("{ONE}\n positions = [\"0x\"]"),
            ONE.replace("kind", "sort"),
        ];
        for text in bad {
            assert!(parse(&text, TIPS).is_err(), "{text}");
        }
        assert!(parse(ONE, &format!("{TIPS}{TIPS}")).is_err());
        assert!(parse(ONE, &TIPS.replace("tip", "gift")).is_err());
    }

    #[test]
    fn the_tables_that_ship_can_be_used() {
        let texts = crate::registry::Texts::EMBEDDED;
        let tables = parse(texts.venues_solana, texts.accounts_solana).unwrap();
        assert!(tables.programs.len() > 100 && tables.accounts.len() > 200);
    }
}
