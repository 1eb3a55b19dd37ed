//! Actions of the System and Token programs' instructions; every other instruction is a call.

use super::base58::Decoder;
use super::keys::{AccountKey, AccountKeys, key, units};
use super::{SYSTEM_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM};
use crate::decode::json::{Reader, Unread};

/// Accounts are indices among the transaction's keys; amounts are lamports or base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Pay {
        from: u8,
        to: u8,
        lamports: u64,
    },
    Create {
        from: u8,
        to: u8,
        lamports: u64,
        space: u64,
    },
    Allocate {
        account: u8,
        space: u64,
    },
    Assign {
        account: u8,
    },
    /// `withheld` is the mint's transfer fee, where the instruction states it.
    Transfer {
        from: u8,
        to: u8,
        amount: u64,
        mint: Option<u8>,
        authority: Option<u8>,
        withheld: u64,
    },
    Mint {
        mint: u8,
        to: u8,
        amount: u64,
    },
    Burn {
        mint: u8,
        from: u8,
        amount: u64,
    },
    Open {
        account: u8,
        mint: u8,
        owner: AccountKey,
    },
    Close {
        account: u8,
        to: u8,
        owner: Option<u8>,
    },
    /// The owner approves, or revokes, a delegate of the account's tokens.
    Approve {
        account: u8,
        owner: u8,
    },
    /// Lamports that leave a wrapped-SOL account; all of them if no amount is given.
    Unwrap {
        from: u8,
        to: u8,
        amount: Option<u64>,
    },
    /// An instruction of the System or Token program that moves nothing.
    Still,
    /// Another program.
    Call,
}

impl Action {
    /// The accounts between which lamports or tokens move.
    pub(super) fn accounts(&self) -> [Option<u8>; 2] {
        match *self {
            Self::Pay { from, to, .. }
            | Self::Create { from, to, .. }
            | Self::Transfer { from, to, .. }
            | Self::Unwrap { from, to, .. } => [Some(from), Some(to)],
            Self::Close { account, to, .. } => [Some(account), Some(to)],
            Self::Allocate { account, .. }
            | Self::Assign { account }
            | Self::Open { account, .. } => [Some(account), None],
            Self::Mint { to, .. } => [Some(to), None],
            Self::Burn { from, .. } => [Some(from), None],
            Self::Approve { .. } | Self::Still | Self::Call => [None, None],
        }
    }
}

pub(super) fn is_token_program(program: &AccountKey) -> bool {
    *program == TOKEN_PROGRAM || *program == TOKEN_2022_PROGRAM
}

/// Whether the program's instructions are parsed as actions.
pub(super) fn is_built_in(program: &AccountKey) -> bool {
    *program == SYSTEM_PROGRAM || is_token_program(program)
}

/// One instruction's actions: several where the Token program was given a batch.
pub(super) fn from_data(
    program: &AccountKey,
    data: &[u8],
    accounts: &[u8],
    keys: &[AccountKey],
    decoder: &mut Decoder,
    mut each: impl FnMut(Action),
) {
    if *program == SYSTEM_PROGRAM {
        let data = decoder.decode(data).unwrap_or_default();
        each(system(data, accounts).unwrap_or(Action::Still));
    } else if is_token_program(program) {
        let data = decoder.decode(data).unwrap_or_default();
        match data.split_first() {
            Some((&tag::BATCH, rest)) => batch(rest, accounts, keys, each),
            _ => each(token(data, accounts, keys).unwrap_or(Action::Still)),
        }
    } else {
        each(Action::Call);
    }
}

/// Each instruction of a batch is its number of accounts, the length of its data, and the data.
fn batch(mut data: &[u8], mut accounts: &[u8], keys: &[AccountKey], mut each: impl FnMut(Action)) {
    while let [count, len, rest @ ..] = data {
        let Some((inner, behind)) = rest.split_at_checked(usize::from(*len)) else { return };
        let Some((listed, others)) = accounts.split_at_checked(usize::from(*count)) else { return };
        each(token(inner, listed, keys).unwrap_or(Action::Still));
        (data, accounts) = (behind, others);
    }
}

fn system(data: &[u8], accounts: &[u8]) -> Option<Action> {
    let (kind, rest) = data.split_first_chunk()?;
    let first = || accounts.first().copied();
    let second = || accounts.get(1).copied();
    Some(match u32::from_le_bytes(*kind) {
        0 => Action::Create {
            from: first()?,
            to: second()?,
            lamports: u64_at(rest, 0)?,
            space: u64_at(rest, 8)?,
        },
        1 | 10 => Action::Assign { account: first()? },
        // A transfer, and a withdrawal from a nonce account.
        2 | 5 => Action::Pay { from: first()?, to: second()?, lamports: u64_at(rest, 0)? },
        3 => {
            let seed = usize::try_from(u64_at(rest, 32)?).ok()?;
            let behind = seed.checked_add(40)?;
            Action::Create {
                from: first()?,
                to: second()?,
                lamports: u64_at(rest, behind)?,
                space: u64_at(rest, behind.checked_add(8)?)?,
            }
        }
        8 => Action::Allocate { account: first()?, space: u64_at(rest, 0)? },
        9 => {
            let seed = usize::try_from(u64_at(rest, 32)?).ok()?;
            Action::Allocate { account: first()?, space: u64_at(rest, seed.checked_add(40)?)? }
        }
        11 => Action::Pay {
            from: first()?,
            to: accounts.get(2).copied()?,
            lamports: u64_at(rest, 0)?,
        },
        // `createAccountAllowPrefund`: the optional payer is the second account.
        13 => {
            let to = first()?;
            let (lamports, space) = (u64_at(rest, 0)?, u64_at(rest, 8)?);
            match second() {
                Some(from) => Action::Create { from, to, lamports, space },
                None => Action::Allocate { account: to, space },
            }
        }
        _ => return None,
    })
}

/// First byte of a Token instruction.
mod tag {
    pub(super) const INITIALIZE_ACCOUNT: u8 = 1;
    pub(super) const TRANSFER: u8 = 3;
    pub(super) const APPROVE: u8 = 4;
    pub(super) const REVOKE: u8 = 5;
    pub(super) const MINT_TO: u8 = 7;
    pub(super) const BURN: u8 = 8;
    pub(super) const CLOSE_ACCOUNT: u8 = 9;
    pub(super) const TRANSFER_CHECKED: u8 = 12;
    pub(super) const APPROVE_CHECKED: u8 = 13;
    pub(super) const MINT_TO_CHECKED: u8 = 14;
    pub(super) const BURN_CHECKED: u8 = 15;
    pub(super) const INITIALIZE_ACCOUNT_2: u8 = 16;
    pub(super) const INITIALIZE_ACCOUNT_3: u8 = 18;
    pub(super) const TRANSFER_FEE_EXTENSION: u8 = 26;
    pub(super) const TRANSFER_CHECKED_WITH_FEE: u8 = 1;
    pub(super) const UNWRAP_LAMPORTS: u8 = 45;
    pub(super) const BATCH: u8 = 255;
}

fn token(data: &[u8], accounts: &[u8], keys: &[AccountKey]) -> Option<Action> {
    let (kind, rest) = data.split_first()?;
    let account = |at: usize| accounts.get(at).copied();
    let transfer = |mint: Option<usize>, to: usize, amount: u64, withheld: u64| {
        Some(Action::Transfer {
            from: account(0)?,
            to: account(to)?,
            amount,
            mint: mint.and_then(account),
            authority: account(to + 1),
            withheld,
        })
    };
    let open = |owner: Option<AccountKey>| {
        Some(Action::Open { account: account(0)?, mint: account(1)?, owner: owner? })
    };
    match *kind {
        tag::INITIALIZE_ACCOUNT => open(keys.get(usize::from(account(2)?)).copied()),
        tag::INITIALIZE_ACCOUNT_2 | tag::INITIALIZE_ACCOUNT_3 => open(rest.first_chunk().copied()),
        tag::TRANSFER => transfer(None, 1, u64_at(rest, 0)?, 0),
        tag::TRANSFER_CHECKED => transfer(Some(1), 2, u64_at(rest, 0)?, 0),
        tag::TRANSFER_FEE_EXTENSION => {
            let (&tag::TRANSFER_CHECKED_WITH_FEE, rest) = rest.split_first()? else { return None };
            transfer(Some(1), 2, u64_at(rest, 0)?, u64_at(rest, 9)?)
        }
        tag::MINT_TO | tag::MINT_TO_CHECKED => {
            Some(Action::Mint { mint: account(0)?, to: account(1)?, amount: u64_at(rest, 0)? })
        }
        tag::BURN | tag::BURN_CHECKED => {
            Some(Action::Burn { from: account(0)?, mint: account(1)?, amount: u64_at(rest, 0)? })
        }
        tag::CLOSE_ACCOUNT => {
            Some(Action::Close { account: account(0)?, to: account(1)?, owner: account(2) })
        }
        tag::APPROVE => Some(Action::Approve { account: account(0)?, owner: account(2)? }),
        tag::REVOKE => Some(Action::Approve { account: account(0)?, owner: account(1)? }),
        tag::APPROVE_CHECKED => Some(Action::Approve { account: account(0)?, owner: account(3)? }),
        tag::UNWRAP_LAMPORTS => {
            let amount = if rest.first() == Some(&1) { u64_at(rest, 1) } else { None };
            Some(Action::Unwrap { from: account(0)?, to: account(1)?, amount })
        }
        _ => None,
    }
}

pub(super) fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    let end = at.checked_add(8)?;
    Some(u64::from_le_bytes(data.get(at..end)?.try_into().ok()?))
}

/// The `jsonParsed` form of instructions of known programs.
#[derive(Default)]
struct Parsed<'a> {
    kind: &'a [u8],
    info: Info<'a>,
}

/// Reads one action of a program; `None` where the instruction moves nothing.
type ReadParsed = fn(&Parsed<'_>, &AccountKeys<'_>) -> Option<Action>;

#[derive(Default)]
struct Info<'a> {
    source: Option<&'a [u8]>,
    destination: Option<&'a [u8]>,
    new_account: Option<&'a [u8]>,
    account: Option<&'a [u8]>,
    mint: Option<&'a [u8]>,
    owner: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    multisig_authority: Option<&'a [u8]>,
    lamports: Option<u64>,
    space: Option<u64>,
    amount: Option<&'a [u8]>,
    token_amount: Option<&'a [u8]>,
    fee_amount: Option<&'a [u8]>,
    /// The parts of a batch, not yet parsed. Batches do not nest.
    parts: &'a [u8],
}

impl<'a> Parsed<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, Unread> {
        let mut parsed = Self::default();
        r.object(|r, name| -> Result<(), Unread> {
            match name {
                b"type" => parsed.kind = r.text()?,
                b"info" => parsed.info = Info::read(r)?,
                _ => drop(r.skip()?),
            }
            Ok(())
        })?;
        Ok(parsed)
    }
}

impl<'a> Info<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, Unread> {
        let mut info = Self::default();
        r.object(|r, name| -> Result<(), Unread> {
            match name {
                b"source" => info.source = r.optional(Reader::text)?,
                b"destination" => info.destination = r.optional(Reader::text)?,
                b"newAccount" => info.new_account = r.optional(Reader::text)?,
                b"account" => info.account = r.optional(Reader::text)?,
                b"mint" => info.mint = r.optional(Reader::text)?,
                b"owner" => info.owner = r.optional(Reader::text)?,
                b"authority" => info.authority = r.optional(Reader::text)?,
                b"multisigAuthority" => info.multisig_authority = r.optional(Reader::text)?,
                b"lamports" => info.lamports = r.optional(Reader::unsigned)?,
                b"space" => info.space = r.optional(Reader::unsigned)?,
                b"amount" => info.amount = r.optional(Reader::text)?,
                b"tokenAmount" => info.token_amount = r.optional(amount_within)?,
                b"feeAmount" => info.fee_amount = r.optional(amount_within)?,
                b"instructions" => info.parts = r.skip()?,
                _ => drop(r.skip()?),
            }
            Ok(())
        })?;
        Ok(info)
    }
}

fn amount_within<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], Unread> {
    let mut amount = None;
    r.object(|r, name| -> Result<(), Unread> {
        match name {
            b"amount" => amount = Some(r.text()?),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    amount.map_or_else(|| r.fail(), Ok)
}

/// One instruction's actions: several where the Token program was given a batch.
pub(super) fn from_parsed(
    program: &AccountKey,
    parsed: &[u8],
    keys: &AccountKeys<'_>,
    mut each: impl FnMut(Action),
) {
    let read: ReadParsed = if *program == SYSTEM_PROGRAM {
        parsed_system
    } else if is_token_program(program) {
        parsed_token
    } else {
        return each(Action::Call);
    };
    let mut action = |parsed: &Parsed<'_>| each(read(parsed, keys).unwrap_or(Action::Still));
    match Parsed::read(&mut Reader::new(parsed)) {
        Ok(batch) if batch.kind == b"batch" => {
            let each = |r: &mut Reader<'_>| Parsed::read(r).map(|part| action(&part));
            // Parts that cannot be parsed move nothing; the balances then show the gap.
            Reader::new(batch.info.parts).array(each).unwrap_or_default();
        }
        Ok(parsed) => action(&parsed),
        Err(_) => action(&Parsed::default()),
    }
}

fn parsed_system(parsed: &Parsed<'_>, keys: &AccountKeys<'_>) -> Option<Action> {
    let info = &parsed.info;
    let at = |text: Option<&[u8]>| text.and_then(|text| keys.find(text));
    Some(match parsed.kind {
        b"createAccount" | b"createAccountWithSeed" => Action::Create {
            from: at(info.source)?,
            to: at(info.new_account)?,
            lamports: info.lamports?,
            space: info.space?,
        },
        b"transfer" | b"transferWithSeed" => Action::Pay {
            from: at(info.source)?,
            to: at(info.destination)?,
            lamports: info.lamports?,
        },
        b"allocate" | b"allocateWithSeed" => {
            Action::Allocate { account: at(info.account)?, space: info.space? }
        }
        b"assign" | b"assignWithSeed" => Action::Assign { account: at(info.account)? },
        _ => return None,
    })
}

fn parsed_token(parsed: &Parsed<'_>, keys: &AccountKeys<'_>) -> Option<Action> {
    let info = &parsed.info;
    let at = |text: Option<&[u8]>| text.and_then(|text| keys.find(text));
    let amount = || info.amount.or(info.token_amount).and_then(units);
    Some(match parsed.kind {
        b"transfer" | b"transferChecked" | b"transferCheckedWithFee" => Action::Transfer {
            from: at(info.source)?,
            to: at(info.destination)?,
            amount: amount()?,
            mint: at(info.mint),
            authority: at(info.authority.or(info.multisig_authority)),
            withheld: info.fee_amount.and_then(units).unwrap_or(0),
        },
        b"mintTo" | b"mintToChecked" => {
            Action::Mint { mint: at(info.mint)?, to: at(info.account)?, amount: amount()? }
        }
        b"burn" | b"burnChecked" => {
            Action::Burn { mint: at(info.mint)?, from: at(info.account)?, amount: amount()? }
        }
        b"initializeAccount" | b"initializeAccount2" | b"initializeAccount3" => Action::Open {
            account: at(info.account)?,
            mint: at(info.mint)?,
            owner: key(info.owner?).ok()?,
        },
        b"approve" | b"approveChecked" | b"revoke" => {
            Action::Approve { account: at(info.source)?, owner: at(info.owner)? }
        }
        b"closeAccount" => Action::Close {
            account: at(info.account)?,
            to: at(info.destination)?,
            owner: at(info.owner),
        },
        b"unwrapLamports" => {
            Action::Unwrap { from: at(info.source)?, to: at(info.destination)?, amount: amount() }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(program: &AccountKey, bytes: &[u8], accounts: &[u8]) -> Vec<Action> {
        let (mut actions, text) = (Vec::new(), bs58::encode(bytes).into_string());
        let (keys, mut decoder) = ([[7; 32], [8; 32], [9; 32]], Decoder::new());
        from_data(program, text.as_bytes(), accounts, &keys, &mut decoder, |a| actions.push(a));
        actions
    }

    #[test]
    fn a_batch_is_its_parts() {
        // Two transfers of 5 and 6 units, then a close.
        let mut data = vec![255, 3, 9, 3, 5, 0, 0, 0, 0, 0, 0, 0];
        data.extend([3, 9, 3, 6, 0, 0, 0, 0, 0, 0, 0]);
        data.extend([3, 1, 9]);
        let accounts = [0, 1, 2, 1, 0, 2, 0, 2, 2];
        let transfer = |from, to, amount| Action::Transfer {
            from,
            to,
            amount,
            mint: None,
            authority: Some(2),
            withheld: 0,
        };
        let expected = [
            transfer(0, 1, 5),
            transfer(1, 0, 6),
            Action::Close { account: 0, to: 2, owner: Some(2) },
        ];
        assert_eq!(actions(&TOKEN_PROGRAM, &data, &accounts), expected);
    }

    #[test]
    fn data_that_is_cut_short_moves_nothing() {
        assert_eq!(actions(&TOKEN_PROGRAM, &[3, 1], &[0, 1, 2]), [Action::Still]);
        assert_eq!(actions(&SYSTEM_PROGRAM, &[2, 0, 0, 0, 1], &[0, 1]), [Action::Still]);
        // A seed whose length overflows the address space.
        let mut data = vec![3, 0, 0, 0];
        data.extend([0; 32]);
        data.extend(u64::MAX.to_le_bytes());
        assert_eq!(actions(&SYSTEM_PROGRAM, &data, &[0, 1]), [Action::Still]);
    }
}
