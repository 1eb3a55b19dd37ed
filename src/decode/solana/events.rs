//! Reads events of the few programs for which balances are not enough. A program logs an event by
//! calling itself with the event as data; the same tag means different things in different
//! programs.

use super::WRAPPED_SOL;
use super::action::u64_at;
use super::base58::address;
use super::keys::AccountKey;
use super::transaction::{Instruction, Transaction};

const PUMP_FUN: AccountKey = address("6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P");
const JUPITER_DCA: AccountKey = address("DCA265Vj8a9CEuX1eb1LWRnDT7uK6q1xMipnNyatn23M");
const PHOENIX: AccountKey = address("PhoeNiXZ8ByJGLkxNfZRnkUfjvmuYqLR89jjFHGqdXY");
/// The prefix of every event that Anchor emits by a call.
const CPI_EVENT: [u8; 8] = [0xe4, 0x45, 0xa5, 0x2e, 0x51, 0xcb, 0x9a, 0x1d];

/// A fill of a Jupiter DCA order.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) user: AccountKey,
    pub(super) input: AccountKey,
    pub(super) output: AccountKey,
    pub(super) given: u64,
    /// Before the fee.
    pub(super) got: u64,
    pub(super) fee_mint: AccountKey,
    pub(super) fee: u64,
}

impl Filled {
    const TAG: [u8; 8] = [0x86, 0x04, 0x11, 0x3f, 0xdd, 0x2d, 0xb1, 0xad];

    pub(super) fn read(tx: &Transaction, call: &Instruction) -> Option<Self> {
        let data = data(tx, call, &JUPITER_DCA)?;
        let body = body(&data, Self::TAG)?;
        Some(Self {
            user: key(body, 0)?,
            input: key(body, 64)?,
            output: key(body, 96)?,
            given: u64_at(body, 128)?,
            got: u64_at(body, 136)?,
            fee_mint: key(body, 144)?,
            fee: u64_at(body, 176)?,
        })
    }
}

/// A sale to a Pump.fun curve.
#[derive(Debug)]
pub(super) struct CurveSale {
    pub(super) user: AccountKey,
    /// Lamports that the user received: the price less the fees.
    pub(super) paid: u64,
}

impl CurveSale {
    const TAG: [u8; 8] = [0xbd, 0xdb, 0x7f, 0xd3, 0x4e, 0xe6, 0x61, 0xee];

    /// `None` for purchases, for events before May 2025, which contain no fees, and for sales for
    /// another token.
    pub(super) fn read(tx: &Transaction, call: &Instruction) -> Option<Self> {
        let data = data(tx, call, &PUMP_FUN)?;
        let body = body(&data, Self::TAG)?;
        let price = u64_at(body, 32)?;
        let (fee, creator_fee) = (u64_at(body, 161)?, u64_at(body, 209)?);
        let is_sale = body.get(48) == Some(&0) && quote(body).is_none_or(|mint| is_sol(&mint));
        let paid = price.checked_sub(fee)?.checked_sub(creator_fee)?;
        let cashback = cashback_at(body).and_then(|at| u64_at(body, at));
        let paid = paid.checked_sub(cashback.unwrap_or(0))?;
        is_sale.then_some(Self { user: key(body, 49)?, paid })
    }
}

/// Where the creator's share stands, if it is set aside for the user (cashback); `None` in older
/// events, which are shorter. It follows the instruction's name, a flag and a rate.
fn cashback_at(body: &[u8]) -> Option<usize> {
    usize::try_from(u32_at(body, 250)?).ok()?.checked_add(254 + 9)
}

/// The mint of which the amounts are, in newer events: behind the cashback, a rate, a fee, and the
/// list of those who share the creator's, each with a part.
fn quote(body: &[u8]) -> Option<AccountKey> {
    let sharers = cashback_at(body)?.checked_add(24)?;
    let length = usize::try_from(u32_at(body, sharers)?).ok()?.checked_mul(32 + 2)?;
    key(body, sharers.checked_add(4)?.checked_add(length)?)
}

/// Recorded events of curves for SOL leave the mint empty; their calls name wrapped SOL.
fn is_sol(mint: &AccountKey) -> bool {
    *mint == WRAPPED_SOL || *mint == AccountKey::default()
}

/// The base and quote lots that an order took at Phoenix, as its log in this call states them; the
/// quote includes the fee. The fill summary comes last: tag, index, order number, then the lots.
pub(super) fn taken_at_phoenix(tx: &Transaction, call: &Instruction) -> Option<[u64; 2]> {
    const LOG: u8 = 0x0f;
    const SUMMARY: u8 = 6;
    const SUMMARY_LENGTH: usize = 1 + 2 + 16 + 3 * 8;
    let data = data(tx, call, &PHOENIX)?;
    let summary = data.get(data.len().checked_sub(SUMMARY_LENGTH)?..)?;
    let (base, quote) = (u64_at(summary, 19)?, u64_at(summary, 27)?);
    let is_summary = data.first() == Some(&LOG) && summary.first() == Some(&SUMMARY);
    (is_summary && base > 0).then_some([base, quote])
}

/// The data of a call of this program; `None` for other programs.
fn data(tx: &Transaction, call: &Instruction, program: &AccountKey) -> Option<Vec<u8>> {
    (tx.key(call.program)? == program).then(|| tx.data_of(call))
}

/// The body of an event that a program in no table logs by a call of itself, behind any tag.
pub(super) fn logged(tx: &Transaction, call: &Instruction) -> Option<Vec<u8>> {
    let data = tx.data_of(call);
    Some(data.strip_prefix(&CPI_EVENT)?.get(8..)?.to_vec())
}

fn body(data: &[u8], tag: [u8; 8]) -> Option<&[u8]> {
    data.strip_prefix(&CPI_EVENT)?.strip_prefix(&tag)
}

fn key(body: &[u8], at: usize) -> Option<AccountKey> {
    body.get(at..at.checked_add(32)?)?.try_into().ok()
}

fn u32_at(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(body.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
