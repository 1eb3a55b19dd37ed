//! The wire forms of `gettransactionbyid` and `gettransactioninfobyid` (java-tron HTTP API,
//! `visible=false`), and their conversion to a [`Transaction`]. Zero fields are omitted on the
//! wire; amounts are 64-bit integers.

use serde::Deserialize;

use super::envelope::{ContractCall, RawTransaction, Ret, Text};
use super::transaction::{Asset, AssetMove, NativeTrade, Transaction};
pub use crate::decode::evm::RawError;
use crate::decode::evm::{self, Account, Log, NativeFlows, NativeMove, Word, bytes};
use crate::domain::{Address, Family, Units, UnixSeconds};

/// Bounds of one answer; blocks allow far less.
struct Limits {
    bytes: usize,
    logs: usize,
    internal: usize,
}

const LIMITS: Limits = Limits { bytes: 32 << 20, logs: 65_536, internal: 65_536 };

/// An event has at most four topics (the LOG4 instruction).
const TOPIC_COUNT_MAX: usize = 4;

/// The used fields of all kinds of contract.
#[derive(Deserialize)]
struct Value<'a> {
    #[serde(borrow)]
    owner_address: Text<'a>,
    #[serde(borrow)]
    contract_address: Option<Text<'a>>,
    #[serde(borrow)]
    to_address: Option<Text<'a>>,
    data: Option<&'a [u8]>,
    #[serde(default, rename = "call_value")]
    called_with: u64,
    #[serde(default)]
    amount: u64,
    #[serde(default, rename = "call_token_value")]
    called_with_token: u64,
    token_id: Option<TokenId<'a>>,
    #[serde(borrow)]
    asset_name: Option<Text<'a>>,
    new_contract: Option<NewContract>,
    #[serde(default)]
    exchange_id: u64,
    #[serde(default)]
    quant: u64,
    #[serde(borrow)]
    sell_token_id: Option<Text<'a>>,
    #[serde(borrow)]
    buy_token_id: Option<Text<'a>>,
}

/// A number for a call's token, text for an exchange's.
#[derive(Deserialize)]
#[serde(untagged)]
enum TokenId<'a> {
    Number(u64),
    #[serde(borrow)]
    Text(Text<'a>),
}

#[derive(Deserialize)]
struct NewContract {
    #[serde(default)]
    call_value: u64,
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(rename = "blockNumber", default)]
    block: u64,
    #[serde(rename = "blockTimeStamp")]
    time_millis: Option<u64>,
    #[serde(borrow)]
    result: Option<Text<'a>>,
    #[serde(borrow)]
    receipt: Option<Receipt<'a>>,
    #[serde(borrow, default)]
    log: Vec<RawLog<'a>>,
    #[serde(borrow)]
    internal_transactions: Option<Vec<Internal<'a>>>,
    #[serde(default)]
    exchange_received_amount: u64,
    #[serde(rename = "orderDetails", default)]
    order_details: Vec<OrderDetail>,
}

#[derive(Deserialize)]
struct Receipt<'a> {
    #[serde(borrow)]
    result: Option<Text<'a>>,
}

/// Long hex is lent as bytes: as text each digit would be looked at once more than it is decoded.
#[derive(Deserialize)]
struct RawLog<'a> {
    #[serde(borrow)]
    address: Text<'a>,
    #[serde(borrow, default)]
    topics: Vec<&'a [u8]>,
    #[serde(default)]
    data: &'a [u8],
}

#[derive(Deserialize)]
struct Internal<'a> {
    #[serde(borrow)]
    caller_address: Text<'a>,
    #[serde(borrow, rename = "transferTo_address")]
    to_address: Option<Text<'a>>,
    #[serde(borrow, rename = "callValueInfo", default)]
    values: Vec<CallValue<'a>>,
    #[serde(default)]
    rejected: bool,
}

#[derive(Deserialize)]
struct CallValue<'a> {
    #[serde(rename = "callValue", default)]
    value: u64,
    #[serde(borrow, rename = "tokenId")]
    token: Option<TokenId<'a>>,
}

#[derive(Deserialize)]
struct OrderDetail {
    #[serde(rename = "fillSellQuantity", default)]
    sold: u64,
    #[serde(rename = "fillBuyQuantity", default)]
    bought: u64,
}

/// Parses a node's answers about one transaction. A node that does not have it answers `{}`.
pub fn parse(tx: &[u8], info: &[u8]) -> Result<Transaction, RawError> {
    if tx.len().max(info.len()) > LIMITS.bytes {
        return Err(RawError::TooMany("bytes"));
    }
    let json = |error: serde_json::Error| RawError::Json(error.to_string());
    let tx: RawTransaction<'_, Value<'_>> = serde_json::from_slice(tx).map_err(json)?;
    let info: Info<'_> = serde_json::from_slice(info).map_err(json)?;
    let hash = word(tx.id.as_deref().ok_or(RawError::Missing("transaction"))?)?;
    if word(info.id.as_deref().ok_or(RawError::Missing("transaction info"))?)? != hash {
        return Err(RawError::Broken("info: it belongs to another transaction"));
    }
    let contract = tx.raw_data.as_ref().and_then(|data| data.contract.first());
    let contract = contract.ok_or(RawError::Missing("contract"))?;
    let value = &contract.parameter.value;
    let owner = account(&value.owner_address)?;
    let target = value.contract_address.as_ref().or(value.to_address.as_ref());
    let to = target.map(|to| account(to)).transpose()?;
    let mut assets: Vec<AssetMove> = outermost_asset(value, owner, to).into_iter().collect();
    let native = internal_moves(info.internal_transactions.as_deref(), &mut assets)?;
    let millis = info.time_millis.ok_or(RawError::Missing("block time"))?;
    let time = u32::try_from(millis / 1000).map_err(|_| RawError::Broken("block time"))?;
    let input =
        const_hex::decode(value.data.unwrap_or_default()).map_err(|_| RawError::Broken("input"))?;
    let call = evm::Transaction {
        hash,
        block: info.block,
        index: 0,
        from: owner,
        to,
        value: Units::from(sent(contract)),
        selector: input.first_chunk().copied(),
        terms: evm::Terms::default(),
        succeeded: succeeded(&tx.ret, &info),
        logs: logs(&info.log)?,
        native,
    };
    let native_trade = native_trade(contract, &info);
    Ok(Transaction { call, time: UnixSeconds(time), input, assets, native_trade })
}

/// Contract types without code have no execution result; neither have early ones.
fn succeeded(ret: &[Ret<'_>], info: &Info<'_>) -> bool {
    let is_good = |result: Option<&Text<'_>>| result.is_none_or(|result| &**result == "SUCCESS");
    let of_contract = info.receipt.as_ref().and_then(|receipt| receipt.result.as_ref());
    info.result.as_deref() != Some("FAILED")
        && is_good(of_contract)
        && is_good(ret.first().and_then(|ret| ret.contract_ret.as_ref()))
}

/// TRX that the owner sent with it.
fn sent(contract: &ContractCall<'_, Value<'_>>) -> u64 {
    let value = &contract.parameter.value;
    match &*contract.kind {
        "TriggerSmartContract" => value.called_with,
        "CreateSmartContract" => value.new_contract.as_ref().map_or(0, |new| new.call_value),
        "TransferContract" => value.amount,
        _ => 0,
    }
}

/// TRC-10 tokens that the owner sent with it.
fn outermost_asset(value: &Value<'_>, from: Account, to: Option<Account>) -> Option<AssetMove> {
    let (token, amount) = match (&value.token_id, &value.asset_name) {
        (Some(TokenId::Number(number)), _) => (trc10(*number), value.called_with_token),
        (_, Some(name)) => (asset(name), value.amount),
        (Some(TokenId::Text(_)) | None, None) => return None,
    };
    let (Some(Asset::Trc10(token)), Some(to), true) = (token, to, amount > 0) else {
        return None;
    };
    Some(AssetMove { from, to, token, value: Units::from(amount) })
}

/// Movements of internal transactions. A node that does not keep them, which is java-tron's default
/// (`vm.saveInternalTx`), reports none.
fn internal_moves(
    internal: Option<&[Internal<'_>]>,
    assets: &mut Vec<AssetMove>,
) -> Result<NativeFlows, RawError> {
    let Some(internal) = internal else { return Ok(NativeFlows::Unknown) };
    if internal.len() > LIMITS.internal {
        return Err(RawError::TooMany("internal transactions"));
    }
    let mut calls = Vec::new();
    for inner in internal.iter().filter(|inner| !inner.rejected) {
        let Some(to) = inner.to_address.as_deref().filter(|to| !to.is_empty()) else { continue };
        let (from, to) = (account(&inner.caller_address)?, account(to)?);
        for moved in inner.values.iter().filter(|moved| moved.value > 0 && from != to) {
            let value = Units::from(moved.value);
            match moved.token.as_ref().map(asset_id) {
                None | Some(Some(Asset::Trx)) => calls.push(NativeMove { from, to, value }),
                Some(Some(Asset::Trc10(token))) => {
                    assets.push(AssetMove { from, to, token, value });
                }
                Some(None) => return Err(RawError::Broken("token of an internal transaction")),
            }
        }
    }
    Ok(NativeFlows::Calls(calls))
}

fn native_trade(contract: &ContractCall<'_, Value<'_>>, info: &Info<'_>) -> Option<NativeTrade> {
    let value = &contract.parameter.value;
    match &*contract.kind {
        "ExchangeTransactionContract" => {
            let sold = asset_id(value.token_id.as_ref()?)?;
            let (paid, got) =
                (Units::from(value.quant), Units::from(info.exchange_received_amount));
            let exchange = value.exchange_id;
            Some(NativeTrade::Exchange { exchange, sold, paid, bought: None, got })
        }
        "MarketSellAssetContract" => {
            let total = |of: fn(&OrderDetail) -> u64| {
                info.order_details.iter().map(|one| Units::from(of(one))).sum::<Units>()
            };
            let (paid, got) = (total(|one| one.sold), total(|one| one.bought));
            let sold = asset(value.sell_token_id.as_deref()?)?;
            let bought = asset(value.buy_token_id.as_deref()?)?;
            Some(NativeTrade::Market { sold, paid, bought, got })
        }
        _ => None,
    }
}

fn logs(raw: &[RawLog<'_>]) -> Result<Vec<Log>, RawError> {
    if raw.len() > LIMITS.logs {
        return Err(RawError::TooMany("logs"));
    }
    raw.iter().map(log).collect()
}

fn log(raw: &RawLog<'_>) -> Result<Log, RawError> {
    if raw.topics.len() > TOPIC_COUNT_MAX {
        return Err(RawError::TooMany("topics"));
    }
    Ok(Log {
        address: account(&raw.address)?,
        topics: raw.topics.iter().map(|topic| word(topic).map(masked)).collect::<Result<_, _>>()?,
        data: const_hex::decode(raw.data).map_err(|_| RawError::Broken("log data"))?,
    })
}

fn word(digits: impl AsRef<[u8]>) -> Result<Word, RawError> {
    bytes(digits, "word")
}

/// The last 20 bytes of an address in any of its forms: 21 bytes behind `41`, 20 bytes, or `T…`.
pub fn account(text: &str) -> Result<Account, RawError> {
    if let (true, Ok(Address::Tron(account))) =
        (text.starts_with('T'), Address::parse(Family::Tron, text))
    {
        return Ok(account);
    }
    let hex = text.strip_prefix("0x").unwrap_or(text);
    bytes(if hex.len() == 42 { hex.get(2..).unwrap_or_default() } else { hex }, "address")
}

/// An address in a topic without the `41` prefix that callers may leave in: contracts read only the
/// last 20 bytes.
fn masked(mut topic: Word) -> Word {
    const PREFIXED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x41];
    if topic.starts_with(&PREFIXED)
        && let Some(padding) = topic.first_chunk_mut()
    {
        *padding = [0; 12];
    }
    topic
}

fn asset_id(id: &TokenId<'_>) -> Option<Asset> {
    match id {
        TokenId::Number(number) => trc10(*number),
        TokenId::Text(text) => asset(text),
    }
}

fn trc10(number: u64) -> Option<Asset> {
    let number = u32::try_from(number).ok()?;
    Address::is_tron_asset(number).then_some(Asset::Trc10(number))
}

/// An asset's name: `_` is TRX, digits are a TRC-10 token; as text, or as the hex of that text.
/// Tokens from before numbers have ambiguous names.
pub fn asset(name: &str) -> Option<Asset> {
    let plain = |text: &str| match text {
        "_" => Some(Asset::Trx),
        digits => trc10(digits.parse().ok()?),
    };
    plain(name).or_else(|| plain(std::str::from_utf8(&hex::decode(name).ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1111111111111111111111111111111111111111111111111111111111111111";
    const TOPIC: &str = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    const OWNER: &str = "41aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const ROUTER: &str = "41cccccccccccccccccccccccccccccccccccccccc";

    fn tx_json(kind: &str, value: &str) -> String {
        format!(
            r#"{{"ret":[{{"contractRet":"SUCCESS"}}],"txID":"{ID}","raw_data":{{"contract":[
            {{"type":"{kind}","parameter":{{"type_url":"x","value":{{"owner_address":"{OWNER}",
            {value}}}}}}}]}}}}"#
        )
    }

    fn info_json(more: &str) -> String {
        format!(
            r#"{{"id":"{ID}","blockNumber":60000190,"blockTimeStamp":1735812182000,"fee":13000000
            {more}}}"#
        )
    }

    fn parsed(kind: &str, value: &str, more: &str) -> Result<Transaction, RawError> {
        parse(tx_json(kind, value).as_bytes(), info_json(more).as_bytes())
    }

    fn call(more: &str) -> Result<Transaction, RawError> {
        let value = format!(
            r#""contract_address":"{ROUTER}","call_value":9007199254740993,"data":"18cbafe500""#
        );
        parsed("TriggerSmartContract", &value, more)
    }

    #[test]
    fn reads_a_call_with_what_it_did() {
        let tx = call(&format!(
            r#","receipt":{{"result":"SUCCESS"}},
            "log":[{{"address":"cccccccccccccccccccccccccccccccccccccccc","topics":["{TOPIC}"]}}],
            "internal_transactions":[
            {{"hash":"00","caller_address":"{ROUTER}","transferTo_address":"{OWNER}",
              "callValueInfo":[{{"callValue":7}}],"note":"63616c6c"}},
            {{"hash":"00","caller_address":"{ROUTER}","transferTo_address":"{OWNER}",
              "callValueInfo":[{{}}]}},
            {{"hash":"00","caller_address":"{ROUTER}","transferTo_address":"{OWNER}",
              "callValueInfo":[{{"callValue":9}}],"rejected":true}},
            {{"hash":"00","caller_address":"{ROUTER}","transferTo_address":"{OWNER}",
              "callValueInfo":[{{"callValue":5,"tokenId":"1002000"}}]}}]"#
        ))
        .unwrap();
        assert_eq!(
            (tx.call.block, tx.time, tx.call.succeeded),
            (60_000_190, UnixSeconds(1_735_812_182), true)
        );
        assert_eq!((tx.call.from, tx.call.to), ([0xaa; 20], Some([0xcc; 20])));
        // More than a float holds.
        assert_eq!(tx.call.value, Units::from(9_007_199_254_740_993_u64));
        assert_eq!(tx.call.selector, Some([0x18, 0xcb, 0xaf, 0xe5]));
        assert_eq!(tx.call.logs[0].address, [0xcc; 20]);
        let (from, to) = ([0xcc; 20], [0xaa; 20]);
        let paid = NativeMove { from, to, value: Units::from(7) };
        assert_eq!(tx.call.native, NativeFlows::Calls(vec![paid]));
        let value = Units::from(5);
        assert_eq!(tx.assets, [AssetMove { from, to, token: 1_002_000, value }]);
    }

    #[test]
    fn without_internal_transactions_inner_calls_are_unknown() {
        assert_eq!(call("").unwrap().call.native, NativeFlows::Unknown);
        let none = call(r#","internal_transactions":[]"#).unwrap();
        assert_eq!(none.call.native, NativeFlows::Calls(Vec::new()));
    }

    #[test]
    fn reads_what_failed() {
        assert!(!call(r#","receipt":{"result":"OUT_OF_ENERGY"}"#).unwrap().call.succeeded);
        assert!(!call(r#","result":"FAILED""#).unwrap().call.succeeded);
        let reverted = tx_json("TransferContract", r#""to_address":"","amount":1"#)
            .replace("SUCCESS", "REVERT")
            .replace(r#""to_address":"","#, "");
        assert!(!parse(reverted.as_bytes(), info_json("").as_bytes()).unwrap().call.succeeded);
    }

    #[test]
    fn reads_what_the_other_kinds_move() {
        let trx = format!(r#""to_address":"{ROUTER}","amount":12"#);
        assert_eq!(parsed("TransferContract", &trx, "").unwrap().call.value, Units::from(12));
        let named = format!(r#""to_address":"{ROUTER}","amount":12,"asset_name":"31303032303030""#);
        let tx = parsed("TransferAssetContract", &named, "").unwrap();
        assert_eq!((tx.call.value, tx.assets[0].token), (Units::ZERO, 1_002_000));
        let created = parsed("CreateSmartContract", r#""new_contract":{"call_value":5}"#, "");
        let created = created.unwrap().call;
        assert_eq!((created.to, created.value), (None, Units::from(5)));
        let token =
            format!(r#""contract_address":"{ROUTER}","call_token_value":3,"token_id":1000226"#);
        let tx = parsed("TriggerSmartContract", &token, "").unwrap();
        assert_eq!((tx.assets[0].token, tx.assets[0].value), (1_000_226, Units::from(3)));
    }

    #[test]
    fn reads_the_trades_of_the_protocol_itself() {
        let sale = r#""exchange_id":9,"token_id":"5f","quant":100,"expected":1"#;
        let got = r#","exchange_received_amount":42"#;
        let mut tx = parsed("ExchangeTransactionContract", sale, got).unwrap();
        assert_eq!(tx.unresolved_exchange(), Some(9));
        tx.set_exchange_assets([Asset::Trc10(1_000_226), Asset::Trx]);
        assert_eq!(tx.unresolved_exchange(), None);
        let bought = Some(Asset::Trc10(1_000_226));
        let (paid, got) = (Units::from(100), Units::from(42));
        let expected = NativeTrade::Exchange { exchange: 9, sold: Asset::Trx, paid, bought, got };
        assert_eq!(tx.native_trade, Some(expected));

        let order = r#""sell_token_id":"31303030323236","sell_token_quantity":90,
            "buy_token_id":"5f","buy_token_quantity":9"#;
        let fills = r#","orderId":"00","orderDetails":[
            {"fillSellQuantity":30,"fillBuyQuantity":3},{"fillSellQuantity":20,"fillBuyQuantity":4}]"#;
        let tx = parsed("MarketSellAssetContract", order, fills).unwrap();
        let (sold, bought) = (Asset::Trc10(1_000_226), Asset::Trx);
        let (paid, got) = (Units::from(50), Units::from(7));
        assert_eq!(tx.native_trade, Some(NativeTrade::Market { sold, paid, bought, got }));
    }

    #[test]
    fn refuses_what_is_no_transaction() {
        let (tx, info) = (tx_json("TransferContract", r#""amount":1"#), info_json(""));
        let check = |tx: &str, info: &str| parse(tx.as_bytes(), info.as_bytes()).unwrap_err();
        assert_eq!(check("{}", &info), RawError::Missing("transaction"));
        assert_eq!(check(&tx, "{}"), RawError::Missing("transaction info"));
        assert!(matches!(check(&tx, "["), RawError::Json(_)));
        assert!(matches!(check(&tx, &info.replace("11111", "21111")), RawError::Broken(_)));
        // An item of an internal transaction, as index lists have them.
        let item = format!(r#"{{"txID":"{ID}"}}"#);
        assert_eq!(check(&item, &info), RawError::Missing("contract"));
    }

    #[test]
    fn reads_addresses_in_all_spellings() {
        let usdt = "a614f803b6fd780986a42c78ec9c7f77e6ded13c";
        let expected = account(usdt).unwrap();
        for text in
            [format!("41{usdt}"), format!("0x{usdt}"), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t".into()]
        {
            assert_eq!(account(&text).unwrap(), expected);
        }
        assert!(account("41").is_err() && account("T9").is_err());
    }
}
