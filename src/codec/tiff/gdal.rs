//! Updates GDAL's private field (GDAL's GeoTIFF driver, GDAL_METADATA): an XML list of items, some
//! of which describe the samples' values.

use super::fields::ASCII;
use crate::metadata::{Diagnostics, Effect, Field, Transform, Value};

/// The tag GDAL_METADATA.
pub const METADATA: u16 = 42112;

/// Removes the items that are no longer true; returns whether any are left. A field that is not a
/// list of items is removed if it could be untrue.
pub fn follow(field: &mut Field, transform: &Transform, diagnostics: &mut Diagnostics) -> bool {
    let turns = matches!(transform.effect, Effect::Moves(_));
    let Value::Bytes(bytes) = &mut field.value else {
        return false;
    };
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut left_out: Vec<String> = Vec::new();
    let untrue = |item: &str| {
        let of_values = is_of_values(item) && transform.changes_values();
        let of_places = turns && is_of_places(item);
        let name = attribute(item, "name").unwrap_or("an item");
        if (of_values || of_places) && !left_out.iter().any(|known| known == name) {
            left_out.push(name.into());
        }
        of_values || of_places
    };
    let Some(kept) = str::from_utf8(text)
        .ok()
        .and_then(|text| without(text, untrue))
    else {
        let warning = "GDAL's metadata (tag 42112) are left out: they cannot be read";
        diagnostics.warnings.push(warning.into());
        return false;
    };
    if left_out.is_empty() {
        return true;
    }
    diagnostics.warnings.push(format!(
        "of GDAL's metadata {} {} left out: true of the image as it was, and not as it is now",
        left_out.join(", "),
        if left_out.len() == 1 { "is" } else { "are" },
    ));
    *bytes = [kept.as_bytes(), b"\0"].concat();
    field.kind = ASCII;
    kept.contains("<Item")
}

/// Whether an item describes the meaning or the distribution of values.
fn is_of_values(item: &str) -> bool {
    let role = attribute(item, "role").unwrap_or_default();
    let name = attribute(item, "name").unwrap_or_default();
    matches!(role, "scale" | "offset" | "unittype") || name.starts_with("STATISTICS_")
}

/// Whether an item describes positions of pixels.
fn is_of_places(item: &str) -> bool {
    matches!(
        attribute(item, "domain"),
        Some("RPC" | "GEOLOCATION" | "xml:GEOLOCATION")
    )
}

/// The list without the items for which `untrue` is true, each passed from `<Item` to its end;
/// `None` if the text is not such a list.
fn without(text: &str, mut untrue: impl FnMut(&str) -> bool) -> Option<String> {
    // GDAL writes neither comments nor CDATA sections, in which an item could hide.
    if !text.contains("<GDALMetadata") || text.contains("<!") {
        return None;
    }
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("<Item") {
        let head = at + rest[at..].find('>')?;
        let end = match rest[..head].ends_with('/') {
            true => head + 1,
            false => head + rest[head..].find("</Item>")? + "</Item>".len(),
        };
        kept.push_str(&rest[..at]);
        if untrue(&rest[at..=head]) {
            kept.truncate(kept.trim_end_matches([' ', '\t', '\r', '\n']).len());
        } else {
            kept.push_str(&rest[at..end]);
        }
        rest = &rest[end..];
    }
    Some(kept + rest)
}

/// The value of an attribute in an element.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    element.match_indices(name).find_map(|(at, _)| {
        let before = element[..at].ends_with(|c: char| c.is_ascii_whitespace());
        let rest = element[at + name.len()..].trim_start().strip_prefix('=')?;
        let rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let value = rest[1..].split(quote).next()?;
        before.then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_apart() {
        let text = "<GDALMetadata>\n  <Item name=\"a\" role=\"scale\">2</Item>\n  <Item name='b'/>\n</GDALMetadata>\n";
        let by_role = |role| move |item: &str| attribute(item, "role") == Some(role);
        let kept = "<GDALMetadata>\n  <Item name='b'/>\n</GDALMetadata>\n";
        assert_eq!(without(text, by_role("scale")).as_deref(), Some(kept));
        assert_eq!(without(text, by_role("offset")).as_deref(), Some(text));
        for broken in [
            "",
            "<GDALMetadata><Item name=",
            "<GDALMetadata><Item>",
            "<GDALMetadata><!-- <Item/> -->",
        ] {
            assert_eq!(without(broken, |_| true), None, "{broken}");
        }
    }
}
