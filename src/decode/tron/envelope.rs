//! The wire shape of a transaction, as java-tron's HTTP API and the index over it give it: around
//! the fields of its contract that a reader looks at (`V`).

use std::borrow::Cow;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct RawTransaction<'a, V> {
    #[serde(borrow, rename = "txID")]
    pub(crate) id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) ret: Vec<Ret<'a>>,
    #[serde(borrow)]
    pub(crate) raw_data: Option<RawData<'a, V>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ret<'a> {
    #[serde(borrow, rename = "contractRet")]
    pub(crate) contract_ret: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawData<'a, V> {
    #[serde(borrow)]
    pub(crate) contract: Vec<Contract<'a, V>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Contract<'a, V> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    pub(crate) parameter: Parameter<V>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Parameter<V> {
    pub(crate) value: V,
}
