//! Checks a JSON value against a schema of the `OpenAPI` document. Only the keywords that the
//! document uses are known, so that none is ignored.

use serde_json::Value;

/// Keywords that do not constrain a value.
const NOTES: [&str; 5] = ["description", "examples", "default", "title", "example"];

/// Every violation, with its place.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    check_at(document, schema, value, "$")
}

fn check_at(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{at}: {what}, in {value}"));
    for (word, rule) in schema.as_object().unwrap() {
        match word.as_str() {
            "$ref" => {
                let target = document.pointer(&rule.as_str().unwrap()[1..]).unwrap();
                check_at(document, target, value, at)?;
            }
            "type" => {
                let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !kinds.iter().any(|kind| is_of(value, kind.as_str().unwrap())) {
                    return wrong(format!("is no {rule}"));
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => {
                return wrong("is none of the values".to_owned());
            }
            "const" if rule != value => return wrong(format!("is not {rule}")),
            "minimum" if value.as_i64() < rule.as_i64() => return wrong("is too small".to_owned()),
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return wrong(format!("lacks {name}"));
                    }
                }
            }
            "properties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    match rule.get(name) {
                        Some(rule) => check_at(document, rule, member, &format!("{at}.{name}"))?,
                        None if schema["additionalProperties"] == false => {
                            return wrong(format!("{name} is not described"));
                        }
                        None => {}
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check_at(document, rule, item, &format!("{at}[{index}]"))?;
                }
            }
            "oneOf" => {
                let fits = rule.as_array().unwrap().iter();
                let fits = fits.filter(|rule| check_at(document, rule, value, at).is_ok()).count();
                if fits != 1 {
                    return wrong(format!("fits {fits} of the forms"));
                }
            }
            "enum" | "const" | "minimum" | "additionalProperties" => {}
            note if NOTES.contains(&note) => {}
            other => panic!("{at}: {other} is not understood"),
        }
    }
    Ok(())
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => panic!("{kind} is no type"),
    }
}
