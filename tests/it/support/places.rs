//! The places of a JSON document.

use serde_json::Value;

/// Shows every place with the steps that lead there, what is inside of one before itself.
pub(crate) fn each_place(value: &Value, at: &str, see: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                each_place(inner, &format!("{at}/{index}"), see);
            }
        }
        Value::Object(map) => {
            for (name, inner) in map {
                each_place(inner, &format!("{at}/{name}"), see);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    see(at, value);
}
