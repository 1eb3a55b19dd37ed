//! The sender's fee for executing a transaction, as far as the receipt contains it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::hex_units;
use crate::domain::Units;

/// Rollups whose receipts contain a separate data fee (specification of the OP stack, "L1 Cost";
/// Scroll's documentation, "L1 data fee"): optimism, unichain, worldchain, base, mode, celo, ink,
/// scroll, zora.
const WITH_DATA_FEE: [u64; 9] = [10, 130, 480, 8453, 34443, 42220, 57073, 534_352, 7_777_777];
/// Chains whose whole fee is gas times its price: Ethereum, BNB Smart Chain, Gnosis, Polygon,
/// Sonic, `HyperEVM`, Arbitrum (its data fee is part of the gas), Avalanche, Berachain.
const GAS_ALONE: [u64; 9] = [1, 56, 100, 137, 146, 999, 42_161, 43_114, 80_094];
/// Chains whose fees or balances cannot be derived: mantle (data fee in another coin's unit), blast
/// (balances yield interest).
const NOT_DERIVABLE: [u64; 2] = [5000, 81457];
/// Transaction types that pay no fee, or pay it in a token: OP stack deposits, Celo's own (CIP-64).
const OWN_TYPES: [&str; 2] = ["0x7e", "0x7b"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paid<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    gas_used: &'a str,
    effective_gas_price: Option<&'a str>,
    l1_fee: Option<&'a str>,
    operator_fee: Option<&'a str>,
    blob_gas_used: Option<&'a str>,
    blob_gas_price: Option<&'a str>,
}

/// `None` if the receipt is incomplete: some nodes omit fields.
pub(super) fn fee(chain_id: Option<u64>, receipt: &RawValue) -> Option<Units> {
    let fee: Paid<'_> = serde_json::from_str(receipt.get()).ok()?;
    let is_of = |chains: &[u64]| chain_id.is_some_and(|id| chains.contains(&id));
    let lacks_data_fee = is_of(&WITH_DATA_FEE) && fee.l1_fee.is_none();
    if is_of(&NOT_DERIVABLE)
        || lacks_data_fee
        || fee.kind.is_some_and(|kind| OWN_TYPES.contains(&kind))
    {
        return None;
    }
    let part = |text: Option<&str>| text.map_or(Some(Units::ZERO), hex_units);
    let gas = hex_units(fee.gas_used)?.checked_mul(hex_units(fee.effective_gas_price?)?)?;
    let blobs = part(fee.blob_gas_used)?.checked_mul(part(fee.blob_gas_price)?)?;
    gas.checked_add(part(fee.l1_fee)?)?.checked_add(part(fee.operator_fee)?)?.checked_add(blobs)
}

/// Whether balances on the chain also change by other means than transactions and fees.
pub(super) fn moves_otherwise(chain_id: Option<u64>) -> bool {
    chain_id.is_none_or(|id| NOT_DERIVABLE.contains(&id))
}

/// The fee from a gateway's transaction: its type, gas used and gas price. `None` if other parts
/// may exist: data fees of rollups, blobs, chain-specific types.
pub(super) fn gateway_fee(
    chain_id: Option<u64>,
    kind: Option<u64>,
    gas: Option<(Units, Units)>,
) -> Option<Units> {
    /// Legacy, with access lists, EIP-1559 and EIP-7702.
    const KINDS: [u64; 4] = [0, 1, 2, 4];
    let is_plain = chain_id.is_some_and(|id| GAS_ALONE.contains(&id));
    let is_known = kind.is_some_and(|kind| KINDS.contains(&kind));
    let (used, price) = gas.filter(|_| is_plain && is_known)?;
    used.checked_mul(price)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn costs(chain_id: u64, receipt: &str, expected: Option<u64>) {
        let raw = RawValue::from_string(receipt.to_owned()).unwrap();
        assert_eq!(fee(Some(chain_id), &raw), expected.map(Units::from), "{chain_id} {receipt}");
    }

    #[test]
    fn gas_at_the_price_that_was_paid() {
        costs(1, r#"{"type":"0x2","gasUsed":"0x64","effectiveGasPrice":"0x3"}"#, Some(300));
        costs(1, r#"{"gasUsed":"0x64"}"#, None);
        costs(
            1,
            r#"{"type":"0x3","gasUsed":"0x64","effectiveGasPrice":"0x3","blobGasUsed":"0x2","blobGasPrice":"0x5"}"#,
            Some(310),
        );
    }

    #[test]
    fn a_gateway_shows_the_fee_where_it_is_gas_alone() {
        let gas = Some((Units::from(100_u64), Units::from(3_u64)));
        assert_eq!(gateway_fee(Some(1), Some(2), gas), Some(Units::from(300_u64)));
        // A blob's part, a rollup's data, a type that is not known.
        assert_eq!(gateway_fee(Some(1), Some(3), gas), None);
        assert_eq!(gateway_fee(Some(8453), Some(2), gas), None);
        assert_eq!(gateway_fee(Some(1), None, gas), None);
        assert_eq!(gateway_fee(Some(1), Some(2), None), None);
    }

    #[test]
    fn a_rollup_adds_its_data_fee_or_reports_none() {
        let with = r#"{"gasUsed":"0x64","effectiveGasPrice":"0x3","l1Fee":"0x7"}"#;
        let without = r#"{"gasUsed":"0x64","effectiveGasPrice":"0x3"}"#;
        costs(8453, with, Some(307));
        costs(8453, without, None);
        costs(42161, without, Some(300));
        costs(5000, with, None);
        costs(
            42220,
            r#"{"type":"0x7b","gasUsed":"0x64","effectiveGasPrice":"0x3","l1Fee":"0x0"}"#,
            None,
        );
    }
}
