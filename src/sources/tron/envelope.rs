//! The wire form of a transaction in java-tron's HTTP API and in the index, with the fields that
//! lists need.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

/// A string borrowed from the answer, copied only if it has escapes. Within `Option` and `Vec`
/// serde would copy every `Cow`.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ListedTransaction<'a> {
    #[serde(borrow, rename = "txID")]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) ret: Vec<Ret<'a>>,
    #[serde(borrow)]
    pub(super) raw_data: Option<RawData<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Ret<'a> {
    #[serde(borrow, rename = "contractRet")]
    pub(super) contract_ret: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawData<'a> {
    #[serde(borrow)]
    pub(super) contract: Vec<ContractCall<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ContractCall<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) parameter: Parameter<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Parameter<'a> {
    #[serde(borrow)]
    pub(super) value: ListedCall<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListedCall<'a> {
    #[serde(borrow, default)]
    pub(super) owner_address: Text<'a>,
    #[serde(borrow)]
    pub(super) contract_address: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) data: Option<Text<'a>>,
}
