//! The wire forms of `gettransactionbyid` and `gettransactioninfobyid` (java-tron HTTP API,
//! `visible=false`), and their conversion to a [`Transaction`]. Zero fields are omitted on the
//! wire; amounts are 64-bit integers.

use super::transaction::{Asset, AssetMove, NativeTrade, Transaction};
use super::wire::{self, CallFields, Info, Internal, RawContract, TokenId, account};
pub use crate::decode::evm::RawError;
use crate::decode::evm::{self, Account, NativeFlows, NativeMove, Word, bytes};
use crate::decode::json::Reader;
use crate::domain::{Address, Units, UnixSeconds};

/// Bytes that an answer has at most; blocks allow far less.
const BYTES_MAX: usize = 32 << 20;
/// Instructions whose entries state an amount that stays in place: what is staked, and for whom.
const STAKING: [&str; 4] = ["freeze", "unfreeze", "delegate", "unDelegate"];

/// Parses a node's answers about one transaction. A node that does not have it answers `{}`.
pub fn parse(tx: &[u8], info: &[u8]) -> Result<Transaction, RawError> {
    let (tx, info) = (whole(tx, wire::transaction)?, whole(info, wire::info)?);
    let hash = word(tx.id.ok_or(RawError::Missing("transaction"))?)?;
    if word(info.id.ok_or(RawError::Missing("transaction info"))?)? != hash {
        return Err(RawError::Broken("info: it belongs to another transaction"));
    }
    let contract = tx.contract.as_ref().ok_or(RawError::Missing("contract"))?;
    let value = &contract.value;
    let owner = account(value.owner)?;
    let to = value.contract.or(value.to).map(account).transpose()?;
    let mut assets: Vec<AssetMove> = outermost_asset(value, owner, to).into_iter().collect();
    let native = internal_moves(info.internal.as_deref(), &mut assets)?;
    let millis = info.time_millis.ok_or(RawError::Missing("block time"))?;
    let time = u32::try_from(millis / 1000).map_err(|_| RawError::Broken("block time"))?;
    let input = const_hex::decode(value.data).map_err(|_| RawError::Broken("input"))?;
    let native_trade = native_trade(contract, &info);
    let call = evm::Transaction {
        hash,
        block: info.block,
        index: 0,
        // Tron has no tips to block producers.
        producer: Some(Account::default()),
        from: owner,
        to,
        value: Units::from(sent(contract)),
        selector: input.first_chunk().copied(),
        terms: evm::Terms::default(),
        succeeded: succeeded(tx.results.first().copied().flatten(), &info),
        logs: info.logs,
        native,
    };
    Ok(Transaction { call, time: UnixSeconds(time), input, assets, native_trade })
}

/// Reads an answer of bounded size.
fn whole<'a, T>(
    json: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, RawError>,
) -> Result<T, RawError> {
    if json.len() > BYTES_MAX {
        return Err(RawError::TooMany("bytes"));
    }
    let mut reader = Reader::new(json);
    let value = read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Contract types without code have no execution result, nor do early transactions.
fn succeeded(result: Option<&[u8]>, info: &Info<'_>) -> bool {
    let is_good = |result: Option<&[u8]>| result.is_none_or(|result| result == b"SUCCESS");
    info.result != Some(b"FAILED") && is_good(info.contract_result) && is_good(result)
}

/// TRX that the owner sent with it.
fn sent(contract: &RawContract<'_>) -> u64 {
    match contract.kind {
        b"TriggerSmartContract" => contract.value.called_with,
        b"CreateSmartContract" => contract.value.created_with,
        b"TransferContract" => contract.value.amount,
        _ => 0,
    }
}

/// TRC-10 tokens that the owner sent with it.
fn outermost_asset(
    value: &CallFields<'_>,
    from: Account,
    to: Option<Account>,
) -> Option<AssetMove> {
    let (token, amount) = match (value.token_id, value.asset_name) {
        (Some(TokenId::Number(number)), _) => (trc10(number), value.called_with_token),
        (_, Some(name)) => (named(name), value.amount),
        (Some(TokenId::Text(_)) | None, None) => return None,
    };
    let (Some(Asset::Trc10(token)), Some(to), true) = (token, to, amount > 0) else {
        return None;
    };
    Some(AssetMove { from, to, token, value: Units::from(amount) })
}

/// The movements of internal transactions. A node that does not store them, which is java-tron's
/// default (`vm.saveInternalTx`), reports none.
fn internal_moves(
    internal: Option<&[Internal<'_>]>,
    assets: &mut Vec<AssetMove>,
) -> Result<NativeFlows, RawError> {
    let Some(internal) = internal else { return Ok(NativeFlows::Unknown) };
    let mut calls = Vec::new();
    let moves =
        |inner: &&Internal<'_>| !inner.rejected && !inner.values.is_empty() && !stakes(inner);
    for inner in internal.iter().filter(moves) {
        let Some(to) = inner.to.filter(|to| !to.is_empty()) else { continue };
        let (from, to) = (account(inner.from)?, account(to)?);
        for &(value, token) in inner.values.iter().filter(|_| from != to) {
            let value = Units::from(value);
            match token.map(asset_id) {
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

/// Whether an entry states an amount that was staked or delegated, which did not move.
fn stakes(inner: &Internal<'_>) -> bool {
    let names = |note: &[u8]| STAKING.iter().any(|name| note.starts_with(name.as_bytes()));
    let hex = |note| const_hex::decode(note).is_ok_and(|note| names(&note));
    inner.note.is_some_and(|note| names(note) || hex(note))
}

fn native_trade(contract: &RawContract<'_>, info: &Info<'_>) -> Option<NativeTrade> {
    let value = &contract.value;
    match contract.kind {
        b"ExchangeTransactionContract" => {
            let sold = asset_id(value.token_id?)?;
            let (paid, got) = (Units::from(value.quant), Units::from(info.exchange_received));
            let exchange = value.exchange_id;
            Some(NativeTrade::Exchange { exchange, sold, paid, bought: None, got })
        }
        b"MarketSellAssetContract" => {
            let total = |of: fn(&(u64, u64)) -> u64| {
                info.orders.iter().map(|one| Units::from(of(one))).sum::<Units>()
            };
            let (paid, got) = (total(|one| one.0), total(|one| one.1));
            let (sold, bought) = (named(value.sell_token_id?)?, named(value.buy_token_id?)?);
            Some(NativeTrade::Market { sold, paid, bought, got })
        }
        _ => None,
    }
}

fn word(digits: impl AsRef<[u8]>) -> Result<Word, RawError> {
    bytes(digits, "word")
}

fn asset_id(id: TokenId<'_>) -> Option<Asset> {
    match id {
        TokenId::Number(number) => trc10(number),
        TokenId::Text(name) => named(name),
    }
}

fn named(name: &[u8]) -> Option<Asset> {
    asset(std::str::from_utf8(name).ok()?)
}

fn trc10(number: u64) -> Option<Asset> {
    let number = u32::try_from(number).ok()?;
    Address::is_tron_asset(number).then_some(Asset::Trc10(number))
}

/// Parses an asset's name, as text or as the hex of that text: `_` is TRX, digits are a TRC-10
/// token. The names of tokens from before numbers are ambiguous.
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
        // More than a double represents exactly.
        assert_eq!(tx.call.value, Units::from(9_007_199_254_740_993_u64));
        assert_eq!(tx.call.selector, Some([0x18, 0xcb, 0xaf, 0xe5]));
        assert_eq!(tx.call.logs[0].address, [0xcc; 20]);
        let (from, to) = ([0xcc; 20], [0xaa; 20]);
        let paid = NativeMove { from, to, value: Units::from(7) };
        assert_eq!(tx.call.native, NativeFlows::Calls(vec![paid]));
        let value = Units::from(5);
        assert_eq!(tx.assets, [AssetMove { from, to, token: 1_002_000, value }]);
    }

    /// java-tron names the instruction of each entry (`Program.java`): what is staked for an account,
    /// or delegated to it, stays where it is.
    #[test]
    fn staked_coin_does_not_move() {
        let moved = |note: &str| {
            let more = format!(
                r#","internal_transactions":[{{"caller_address":"{ROUTER}","note":"{}",
                "transferTo_address":"{OWNER}","callValueInfo":[{{"callValue":7}}]}}]"#,
                hex::encode(note)
            );
            let NativeFlows::Calls(calls) = call(&more).unwrap().call.native else {
                panic!("{note}")
            };
            calls.len()
        };
        for note in ["call", "create", "suicide", "withdrawExpireUnfreezeWhileSuiciding", ""] {
            assert_eq!(moved(note), 1, "{note}");
        }
        // Servers may write anything there.
        for note in ["7", "{}", "null"] {
            let more = r#","internal_transactions":[{"caller_address":"","note":"#;
            assert!(call(&format!("{more}{note}}}]")).is_ok(), "{note}");
        }
        for note in [
            "freezeForEnergy",
            "unfreezeForBandwidth",
            "freezeBalanceV2ForEnergy",
            "delegateResourceOfEnergy",
            "unDelegateResourceOfBandwidth",
        ] {
            assert_eq!(moved(note), 0, "{note}");
        }
    }

    #[test]
    fn names_with_escapes_are_no_assets() {
        let named = format!(r#""to_address":"{ROUTER}","amount":12,"asset_name":"\u0031\"0\"""#);
        assert_eq!(parsed("TransferAssetContract", &named, "").unwrap().assets, []);
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
}
