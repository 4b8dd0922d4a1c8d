//! Reads what JSON documents have to have, with errors that name it.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

/// A JSON object.
pub type Object = Map<String, Value>;

/// The object in a document.
///
/// # Errors
/// Text that is not JSON, and another value.
pub fn object(document: &[u8], name: &str) -> Result<Object> {
    let value: Value = serde_json::from_slice(document)
        .with_context(|| format!("its description {name} is not JSON"))?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(anyhow::anyhow!("its description {name} is not an object")),
    }
}

/// The elements of a list, `what`.
///
/// # Errors
/// Another value.
pub fn list<'v>(value: Option<&'v Value>, what: &str) -> Result<&'v [Value]> {
    let list = value.and_then(Value::as_array);
    Ok(list.with_context(|| format!("it lacks {what}"))?)
}

/// The whole numbers of a list, `what`.
///
/// # Errors
/// Another value.
pub fn sizes_from_zero(value: Option<&Value>, what: &str) -> Result<Vec<u64>> {
    let numbers = list(value, what)?.iter().map(Value::as_u64);
    let numbers: Option<Vec<u64>> = numbers.collect();
    numbers.with_context(|| format!("{what} is not a list of whole numbers"))
}

/// The positive numbers of a list, `what`.
///
/// # Errors
/// Another value.
pub fn sizes(value: Option<&Value>, what: &str) -> Result<Vec<u64>> {
    let sizes = sizes_from_zero(value, what)?;
    ensure!(sizes.iter().all(|&size| size > 0), "{what} has a size of 0");
    Ok(sizes)
}

/// The name of `what`: a text, or an object with a name.
///
/// # Errors
/// Another value.
pub fn name<'v>(value: &'v Value, what: &str) -> Result<&'v str> {
    let name = value.as_str().or_else(|| value.get("name")?.as_str());
    name.with_context(|| format!("{what} has no name"))
}

/// The configuration of an object with a name; empty if there is none.
pub fn configuration(value: &Value) -> Object {
    let configuration = value.get("configuration").and_then(Value::as_object);
    configuration.cloned().unwrap_or_default()
}
