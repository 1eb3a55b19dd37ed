//! The wire form of a transaction in java-tron's HTTP API and the index over it, around the
//! contract fields that a reader needs (`V`).

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

/// A string of an answer: borrowed, and copied only where it has escapes. Inside `Option` and
/// `Vec`, serde copies every `Cow`.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Deserialize)]
pub struct RawTransaction<'a, V> {
    #[serde(borrow, rename = "txID")]
    pub id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub ret: Vec<Ret<'a>>,
    #[serde(borrow)]
    pub raw_data: Option<RawData<'a, V>>,
}

#[derive(Debug, Deserialize)]
pub struct Ret<'a> {
    #[serde(borrow, rename = "contractRet")]
    pub contract_ret: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub struct RawData<'a, V> {
    #[serde(borrow)]
    pub contract: Vec<ContractCall<'a, V>>,
}

#[derive(Debug, Deserialize)]
pub struct ContractCall<'a, V> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    pub parameter: Parameter<V>,
}

#[derive(Debug, Deserialize)]
pub struct Parameter<V> {
    pub value: V,
}
