//! The wire shape of a transaction, as java-tron's HTTP API and the index over it give it: around
//! the fields of its contract that a reader looks at (`V`).

use std::borrow::Cow;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct RawTransaction<'a, V> {
    #[serde(borrow, rename = "txID")]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub ret: Vec<Ret<'a>>,
    #[serde(borrow)]
    pub raw_data: Option<RawData<'a, V>>,
}

#[derive(Debug, Deserialize)]
pub struct Ret<'a> {
    #[serde(borrow, rename = "contractRet")]
    pub contract_ret: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub struct RawData<'a, V> {
    #[serde(borrow)]
    pub contract: Vec<Contract<'a, V>>,
}

#[derive(Debug, Deserialize)]
pub struct Contract<'a, V> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    pub parameter: Parameter<V>,
}

#[derive(Debug, Deserialize)]
pub struct Parameter<V> {
    pub value: V,
}
