//! The wire format of `alchemy_getAssetTransfers`: transfers, and the key of the next page.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::list_row::{ListRow, What, without_repeats};
use super::sent::SentNonce;
use super::texts;
use crate::decode::evm::{Account, NativeMove};
use crate::domain::{Units, UnixSeconds};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPage<'a> {
    #[serde(borrow)]
    transfers: Vec<RawTransfer<'a>>,
    page_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTransfer<'a> {
    block_num: &'a RawValue,
    hash: &'a str,
    unique_id: Option<&'a str>,
    from: &'a str,
    to: Option<&'a str>,
    category: &'a str,
    raw_contract: Option<RawContract<'a>>,
    metadata: Option<Metadata<'a>>,
}

/// The field `value` is a float and not used.
#[derive(Deserialize)]
struct RawContract<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    block_timestamp: Option<&'a str>,
}

pub(super) struct TransferPage {
    pub(super) rows: Vec<ListRow>,
    pub(super) key: Option<String>,
}

pub(super) fn page<'a>(raw: &'a RawValue) -> Option<TransferPage> {
    let raw: RawPage<'_> = serde_json::from_str(raw.get()).ok()?;
    let marked = |raw: &RawTransfer<'a>| Some((raw.unique_id, row(raw)?));
    let rows = raw.transfers.iter().map(marked).collect::<Option<Vec<_>>>()?;
    let rows = without_repeats(rows);
    Some(TransferPage { rows, key: raw.page_key.filter(|key| !key.is_empty()) })
}

fn row(raw: &RawTransfer<'_>) -> Option<ListRow> {
    let from = texts::account(raw.from)?;
    let to = raw.to.and_then(texts::account);
    let value = raw.raw_contract.as_ref().and_then(|contract| texts::scalar(contract.value));
    let time = raw.metadata.as_ref().and_then(|metadata| metadata.block_timestamp).and_then(time);
    Some(ListRow {
        hash: texts::word(raw.hash)?,
        block: texts::number(texts::scalar(Some(raw.block_num))?)?,
        index: None,
        time,
        sent: SentNonce::No,
        what: what(raw.category, (from, to), value.and_then(texts::units)),
    })
}

fn what(category: &str, (from, to): (Account, Option<Account>), value: Option<Units>) -> What {
    match (category, to, value) {
        // The API does not report the kind of call.
        ("external", to, value) => {
            What::Outer { from, to, value: value.unwrap_or_default(), selector: None }
        }
        (_, _, Some(Units::ZERO)) => What::Nothing,
        // For some tokens the API reports no amount.
        ("erc20", Some(to), _) => What::Token { from, to },
        ("internal", Some(to), Some(value)) if from != to => {
            What::Call(NativeMove { from, to, value })
        }
        _ => What::Nothing,
    }
}

fn time(text: &str) -> Option<UnixSeconds> {
    let seconds = text.parse::<jiff::Timestamp>().ok()?.as_second();
    u32::try_from(seconds).ok().map(UnixSeconds)
}
