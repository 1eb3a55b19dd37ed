//! Parameters of calls, and the errors of nodes for invalid ones.

use serde_json::Value;

use crate::domain::Height;

use super::keys::ModelKey;
pub(super) use crate::demo::rpc::DemoError;

pub(super) fn key(params: &[Value], at: usize) -> Result<ModelKey, DemoError> {
    let text = string(params, at)?;
    let mut key = [0; 32];
    let wrong = || match bs58::decode(text).into_vec() {
        Ok(_) => DemoError::invalid("Invalid param: WrongSize"),
        Err(_) => DemoError::invalid("Invalid param: Invalid"),
    };
    five8::decode_32(text.as_bytes(), &mut key).map(|()| key).map_err(|_| wrong())
}

pub(super) fn signature(text: &str) -> Result<[u8; 64], DemoError> {
    let mut bytes = [0; 64];
    let decoded = five8::decode_64(text.as_bytes(), &mut bytes);
    decoded.map(|()| bytes).map_err(|_| DemoError::invalid("Invalid param: WrongSize"))
}

pub(super) fn string(params: &[Value], at: usize) -> Result<&str, DemoError> {
    params.get(at).and_then(Value::as_str).ok_or_else(|| {
        DemoError::invalid("invalid type: expected a string, or the parameter is missing")
    })
}

pub(super) fn number(params: &[Value], at: usize) -> Result<u64, DemoError> {
    let number = params.get(at).and_then(Value::as_u64);
    number.ok_or_else(|| DemoError::invalid("invalid type: expected u64"))
}

/// The options object of a call, at any parameter position.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParamOptions<'a>(pub(super) Option<&'a Value>);

impl<'a> ParamOptions<'a> {
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    pub(super) fn number(self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }

    /// The encoding, which some methods also take in place of the object.
    pub(super) fn encoding(self) -> Option<&'a str> {
        self.0.and_then(Value::as_str).or_else(|| self.text("encoding"))
    }

    /// How far above the finalized head the commitment is, in slots.
    pub(super) fn commitment(self) -> Result<u64, DemoError> {
        match self.text("commitment") {
            None | Some("finalized") => Ok(0),
            Some("confirmed") => Ok(20),
            Some("processed") => Ok(32),
            Some(other) => Err(DemoError::invalid(format!("unknown variant `{other}`"))),
        }
    }

    pub(super) fn min_context_slot(self, head: Height) -> Result<(), DemoError> {
        match self.number("minContextSlot") {
            Some(least) if least > head => Err(DemoError {
                code: -32016,
                message: "Minimum context slot has not been reached".to_owned(),
                data: Some(format!("{{\"contextSlot\":{head}}}")),
            }),
            _ => Ok(()),
        }
    }
}

/// For methods that require at least `confirmed`.
pub(super) fn at_least_confirmed(options: ParamOptions<'_>) -> Result<u64, DemoError> {
    if options.text("commitment") == Some("processed") {
        let message = "Method does not support commitment below `confirmed`";
        return Err(DemoError::invalid(message));
    }
    options.commitment()
}
