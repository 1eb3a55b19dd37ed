//! Sample rows for the tests of the formats.

use serde_json::value::RawValue;

use super::ExportSubject;
use crate::cli::args::Format;
use crate::cli::output::TradeLine;

pub(super) fn sample_subject(format: Format) -> ExportSubject {
    ExportSubject {
        wallet: "W".to_owned(),
        chain: "sol".to_owned(),
        native: "SOL".to_owned(),
        format,
        limit: None,
    }
}

pub(super) fn sample_row(token: &str, value: Option<&str>, amount: Option<&str>) -> TradeLine {
    let number =
        |text: Option<&str>| text.and_then(|text| RawValue::from_string(text.to_owned()).ok());
    TradeLine {
        signature: "S".to_owned(),
        side: "buy".to_owned(),
        token: token.to_owned(),
        token_mint: format!("{token}Mint"),
        amount_sol: number(value),
        amount: number(amount),
        dex: "Orca".to_owned(),
        block_time: "2026-11-21T07:05:51+00:00".to_owned(),
    }
}
