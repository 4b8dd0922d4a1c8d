//! Updates GDAL's private field (GDAL's GeoTIFF driver, GDAL_METADATA): an XML list of items, some
//! of which describe the samples' values.

use super::fields::ASCII;
use crate::image::metadata::{Diagnostics, Field, Transform, Value};

/// The tag GDAL_METADATA.
pub const METADATA: u16 = 42112;

/// Removes the items that are no longer true; returns whether any are left. A field that is not a
/// list of items is removed if it could be untrue.
pub fn update(field: &mut Field, transform: &Transform, diagnostics: &mut Diagnostics) -> bool {
    let Value::Bytes(bytes) = &mut field.value else {
        return false;
    };
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut left_out: Vec<String> = Vec::new();
    let untrue = |item: &str| {
        let is_untrue = (transform.changes_values() && describes_values(item))
            || (transform.changes_size() && is_statistic(item))
            || (transform.changes_places() && describes_positions(item));
        let name = attribute(item, "name").unwrap_or("an item");
        if is_untrue && !left_out.iter().any(|known| known == name) {
            left_out.push(name.into());
        }
        is_untrue
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
        "{} of GDAL's metadata {} left out: no longer true of the image",
        left_out.join(", "),
        if left_out.len() == 1 { "is" } else { "are" },
    ));
    *bytes = [kept.as_bytes(), b"\0"].concat();
    field.kind = ASCII;
    kept.contains("<Item")
}

/// Whether an item describes the meaning or the distribution of values.
fn describes_values(item: &str) -> bool {
    let role = attribute(item, "role").unwrap_or_default();
    matches!(role, "scale" | "offset" | "unittype") || is_statistic(item)
}

/// Whether an item describes the distribution of values.
fn is_statistic(item: &str) -> bool {
    attribute(item, "name").is_some_and(|name| name.starts_with("STATISTICS_"))
}

/// Whether an item describes positions of pixels.
fn describes_positions(item: &str) -> bool {
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
        let end = if rest[..head].ends_with('/') {
            head + 1
        } else {
            head + rest[head..].find("</Item>")? + "</Item>".len()
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

/// The end of the list.
const END: &str = "</GDALMetadata>";

/// The name of the item that records how values were scaled.
const STRETCH: &str = "GPUIMG_STRETCH";

/// The text of a field, up to its zero.
pub fn text(field: &Field) -> Option<&str> {
    match &field.value {
        Value::Bytes(bytes) => str::from_utf8(bytes.split(|&byte| byte == 0).next()?).ok(),
        Value::Directory(_) => None,
    }
}

/// Removes the item that records how values were scaled, and returns its text. A list without other items is removed too.
pub fn take_stretch(fields: &mut Vec<Field>) -> Option<Vec<u8>> {
    let at = fields.iter().position(|field| field.tag == METADATA)?;
    let list = text(&fields[at])?.to_string();
    let is_stretch = |item: &str| attribute(item, "name") == Some(STRETCH);
    let mut heads = Vec::new();
    let kept = without(&list, |item| {
        if is_stretch(item) {
            heads.push(item.to_string());
        }
        is_stretch(item)
    })?;
    let head = heads.first()?;
    let (_, after) = list.split_once(head.as_str())?;
    let text = after.split('<').next()?.into();
    if kept.contains("<Item") {
        fields[at].value = Value::Bytes([kept.as_bytes(), b"\0"].concat())
    } else {
        drop(fields.remove(at))
    }
    Some(text)
}

/// Adds an item that records how values were scaled to the list, or a new list. Returns false if the list cannot be read.
pub fn add_stretch(fields: &mut Vec<Field>, stretch: &str) -> bool {
    let item = format!("  <Item name=\"{STRETCH}\">{stretch}</Item>\n{END}");
    let known = fields.iter_mut().find(|field| field.tag == METADATA);
    let list = match &known {
        Some(field) => text(field).map(String::from),
        None => Some(format!("<GDALMetadata>\n{END}")),
    };
    let Some((before, after)) = list.as_deref().and_then(split_at_end) else {
        return false;
    };
    let field = Field {
        tag: METADATA,
        kind: ASCII,
        value: Value::Bytes([&before, &item, after, "\0"].concat().into_bytes()),
    };
    match known {
        Some(known) => *known = field,
        None => {
            fields.push(field);
            fields.sort_by_key(|field| field.tag);
        }
    }
    true
}

/// Splits a list before its end tag, and returns the text before and after the tag. The beginning of an empty list,
/// `<GDALMetadata/>`, is changed to one that an item may follow.
fn split_at_end(list: &str) -> Option<(String, &str)> {
    let name = END.trim_end_matches('>');
    let (before, rest) = match list.rsplit_once(name) {
        Some((before, rest)) => (before.to_string(), rest),
        None => {
            let at = list.find("<GDALMetadata")?;
            let (head, rest) = list[at..].split_once('/')?;
            (format!("{}{}>\n", &list[..at], head.trim_end()), rest)
        }
    };
    let (between, after) = rest.split_once('>')?;
    between.trim().is_empty().then_some((before, after))
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
    fn a_range_was_not_written_into_lists_of_another_form() {
        for (list, expected) in [
            ("<GDALMetadata/>", Some("<GDALMetadata>\n+")),
            ("<GDALMetadata />\n", Some("<GDALMetadata>\n+\n")),
            (
                "<GDALMetadata>\n</GDALMetadata >\n",
                Some("<GDALMetadata>\n+\n"),
            ),
            (
                "<GDALMetadata><Item name='a'/></GDALMetadata>",
                Some("<GDALMetadata><Item name='a'/>+"),
            ),
            ("<GDALMetadata>", None),
            ("<GDALMetadata x/y>", None),
            ("", None),
        ] {
            let found = split_at_end(list).map(|(before, after)| format!("{before}+{after}"));
            assert_eq!(found.as_deref(), expected, "{list}");
        }
    }

    #[test]
    fn items_are_distinguished() {
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
