//! A checker of JSON Schema (2020-12) for the keywords that `docs/schemas` uses; any other panics, so
//! that no schema promises what nobody checks. A library for it takes a minute of a processor to build.

use serde_json::{Map, Value};

/// What is wrong with `value` by the whole schema `root`: a line each, with its place.
pub fn faults(root: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(root, root, value, "", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let keywords = schema.as_object().expect("a schema is an object");
    for (keyword, wanted) in keywords {
        let right = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let pointer = wanted.as_str().and_then(|name| name.strip_prefix('#'));
                let named = pointer.and_then(|pointer| root.pointer(pointer));
                check(root, named.expect("a definition"), value, at, faults);
                true
            }
            "oneOf" => {
                let kinds = wanted.as_array().expect("schemas").iter();
                let each: Vec<Vec<String>> = kinds
                    .map(|kind| {
                        let mut faults = Vec::new();
                        check(root, kind, value, at, &mut faults);
                        faults
                    })
                    .collect();
                let fits = each.iter().filter(|faults| faults.is_empty()).count();
                if fits != 1 {
                    faults.push(format!("{at}: is {fits} of its kinds: {each:?}"));
                }
                true
            }
            "const" => value == wanted,
            "enum" => wanted.as_array().expect("values").contains(value),
            "type" => match wanted {
                Value::Array(names) => names.iter().any(|name| is(value, name)),
                name => is(value, name),
            },
            "minimum" => value
                .as_f64()
                .is_none_or(|it| it >= wanted.as_f64().expect("number")),
            "maximum" => value
                .as_f64()
                .is_none_or(|it| it <= wanted.as_f64().expect("number")),
            "minItems" => length(value).is_none_or(|it| it >= wanted.as_u64().expect("number")),
            "maxItems" => length(value).is_none_or(|it| it <= wanted.as_u64().expect("number")),
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}/{i}"), faults);
                }
                true
            }
            "required" => {
                let names = wanted.as_array().expect("names").iter();
                let names = names.map(|name| name.as_str().expect("a name"));
                value
                    .as_object()
                    .is_none_or(|object| names.into_iter().all(|name| object.contains_key(name)))
            }
            "properties" => {
                for (name, schema) in wanted.as_object().expect("schemas") {
                    if let Some(value) = value.get(name) {
                        check(root, schema, value, &format!("{at}/{name}"), faults);
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                let more = additional(value, known);
                if let Value::Object(_) = wanted {
                    for (name, value) in &more {
                        check(root, wanted, value, &format!("{at}/{name}"), faults);
                    }
                }
                wanted != &Value::Bool(false) || more.is_empty()
            }
            other => panic!("{other} is not checked"),
        };
        if !right {
            faults.push(format!("{at}: {keyword} {wanted} does not hold of {value}"));
        }
    }
}

fn is(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("a type's name") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

fn length(value: &Value) -> Option<u64> {
    Some(value.as_array()?.len() as u64)
}

/// The properties of an object that are not known.
fn additional<'a>(
    value: &'a Value,
    known: Option<&Map<String, Value>>,
) -> Vec<(&'a String, &'a Value)> {
    let properties = value.as_object().into_iter().flatten();
    properties
        .filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)))
        .collect()
}
