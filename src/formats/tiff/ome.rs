//! Updates OME-XML (Open Microscopy Environment, OME model 2016-06) so that it is true of the output.

use crate::image::Depth;
use crate::image::metadata::{Axes, Axis, Effect, Part, Transform};
use anyhow::{Context, Result, ensure};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Attributes of `Pixels` that change places when rows become columns.
const SIDES: [(&str, &str); 3] = [
    ("SizeX", "SizeY"),
    ("PhysicalSizeX", "PhysicalSizeY"),
    ("PhysicalSizeXUnit", "PhysicalSizeYUnit"),
];

/// Updates the attributes of every `Pixels` element, and of every `Channel` if pixels have another number of samples, whatever
/// prefix their namespace has. All other bytes stay as they are. `None` for text that is not well-formed XML.
pub fn update(xml: &str, transform: &Transform) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    let mut new = String::with_capacity(xml.len());
    let mut copied = 0;
    loop {
        let event = reader.read_event().ok()?;
        let element = match &event {
            Event::Eof => break,
            Event::Start(element) | Event::Empty(element) => element,
            _ => continue,
        };
        let updated = match element.local_name().as_ref() {
            "Pixels" => pixels(element, transform)?,
            "Channel" if transform.changes_channels() => channel(element, transform)?,
            _ => continue,
        };
        // The reader borrows from the text, so an address gives the offset in it.
        let start = (element.as_ptr() as usize).checked_sub(xml.as_ptr() as usize)?;
        new.push_str(xml.get(copied..start)?);
        new.push_str(&updated);
        copied = start + element.len();
    }
    new.push_str(xml.get(copied..)?);
    Some(new)
}

/// The name and the updated attributes of a `Pixels` element, without its brackets.
fn pixels(element: &BytesStart, transform: &Transform) -> Option<String> {
    let mut new = String::from(element.name().as_ref());
    for attribute in element.attributes() {
        let attribute = attribute.ok()?;
        let name = attribute.key.as_ref();
        let value = &*attribute.value;
        let name = match SIDES.iter().find(|(x, y)| name == *x || name == *y) {
            Some((x, y)) if transform.is_transposed() => [x, y][usize::from(name == *x)],
            _ => name,
        };
        let value = match (name, value, transform.to.depth) {
            ("Type", "uint32" | "int32" | "float" | "double", Depth::Eight) => "uint8",
            ("Type", "uint32" | "int32" | "float" | "double", Depth::Sixteen) => "uint16",
            ("Type", "uint8" | "uint16", Depth::Eight) => "uint8",
            ("Type", "uint8" | "uint16", Depth::Sixteen) => "uint16",
            ("Type", "int8" | "int16", Depth::Eight) => "int8",
            ("Type", "int8" | "int16", Depth::Sixteen) => "int16",
            ("SignificantBits", _, depth) if transform.changes_values() => match depth {
                Depth::Eight => "8",
                Depth::Sixteen => "16",
                Depth::ThirtyTwo | Depth::Float => "32",
                Depth::Double => "64",
            },
            _ => value,
        };
        let smaller = transform.changes_size();
        let reduced = smaller.then(|| reduced(name, value, transform)).flatten();
        let samples = (name == "SizeC" && transform.changes_channels())
            .then(|| all_samples(value, transform))
            .flatten();
        let value = reduced.as_deref().or(samples.as_deref()).unwrap_or(value);
        // In single quotes the value may have double ones.
        let value = value.replace('"', "&quot;");
        new.push_str(&format!(" {name}=\"{value}\""));
    }
    Some(new)
}

/// The number of samples of all channels, which SizeC states, for pixels with another number of samples.
fn all_samples(value: &str, transform: &Transform) -> Option<String> {
    let samples: usize = value.trim().parse().ok()?;
    let pages = samples.div_ceil(transform.from.channels);
    Some(pages.checked_mul(transform.to.channels)?.to_string())
}

/// The name and the identifier of a `Channel` element of pixels with another number of samples. The other attributes, as its
/// colour and its dye, describe the previous channel.
fn channel(element: &BytesStart, transform: &Transform) -> Option<String> {
    let id = element.try_get_attribute("ID").ok()?;
    let id = id.map(|id| format!(" ID=\"{}\"", id.value.replace('"', "&quot;")));
    Some(format!(
        "{}{} SamplesPerPixel=\"{}\"",
        element.name().as_ref(),
        id.unwrap_or_default(),
        transform.to.channels
    ))
}

/// The value of an attribute of `Pixels` in an image that was made smaller or cropped, if it has another one.
fn reduced(name: &str, value: &str, transform: &Transform) -> Option<String> {
    let Transform { from, to, .. } = transform;
    let larger = |from: usize, to: usize| {
        let size: f64 = value.trim().parse().ok()?;
        Some((size * from as f64 / to as f64).to_string())
    };
    match name {
        "SizeX" => Some(to.width.to_string()),
        "SizeY" => Some(to.height.to_string()),
        _ if transform.effect != Effect::Reduced => None,
        "PhysicalSizeX" => larger(from.width, to.width),
        "PhysicalSizeY" => larger(from.height, to.height),
        _ => None,
    }
}

/// The axes of the only image's pages.
///
/// # Errors
/// XML that is not well-formed, several images, and pages in an order of their own.
pub fn axes(xml: &str) -> Result<Axes> {
    let damaged = "it has OME-XML that is not well-formed";
    let mut reader = Reader::from_str(xml);
    let mut axes = None;
    loop {
        let event = reader.read_event().context(damaged)?;
        let element = match &event {
            Event::Eof => break,
            Event::Start(element) | Event::Empty(element) => element,
            _ => continue,
        };
        match element.local_name().as_ref() {
            "Pixels" => {
                ensure!(axes.is_none(), "its OME-XML describes several images");
                axes = Some(order(element).context(damaged)?);
            }
            "TiffData" => {
                let axes = axes.as_ref().context(damaged)?;
                ensure!(
                    is_in_order(element, axes).context(damaged)?,
                    "its OME-XML lists the pages in an unusual order"
                );
            }
            _ => {}
        }
    }
    axes.context("its OME-XML describes no image")
}

/// The number in an attribute.
fn number(element: &BytesStart, name: &str) -> Option<usize> {
    let attribute = element.try_get_attribute(name).ok()??;
    attribute.value.parse().ok()
}

/// The axes of a `Pixels` element: its DimensionOrder is as XYCZT.
fn order(element: &BytesStart) -> Option<Axes> {
    let order = element.try_get_attribute("DimensionOrder").ok()??;
    let axis = |letter: char| {
        let (axis, name) = match letter {
            'Z' => (Axis::Z, "SizeZ"),
            'T' => (Axis::T, "SizeT"),
            'C' => (Axis::C, "SizeC"),
            _ => return None,
        };
        Some((axis, number(element, name).filter(|size| *size > 0)?))
    };
    let letters = order.value.strip_prefix("XY")?.chars();
    let axes: Vec<(Axis, usize)> = letters.map(axis).collect::<Option<_>>()?;
    let axes: [(Axis, usize); 3] = axes.try_into().ok()?;
    let each = [Axis::Z, Axis::T, Axis::C];
    let has = |axis: &Axis| axes.iter().any(|(known, _)| known == axis);
    each.iter().all(has).then_some(Axes(axes))
}

/// Whether a `TiffData` element states the default: that the plane at its position is the page of its number.
fn is_in_order(element: &BytesStart, axes: &Axes) -> Option<bool> {
    let (mut page, mut stride) = (0usize, 1usize);
    for (axis, size) in axes.0 {
        let first = match axis {
            Axis::Z => "FirstZ",
            Axis::T => "FirstT",
            Axis::C => "FirstC",
        };
        let first = number(element, first).unwrap_or(0);
        page = page.checked_add(first.checked_mul(stride)?)?;
        stride = stride.checked_mul(size)?;
    }
    Some(number(element, "IFD").unwrap_or(0) == page)
}

/// Updates OME-XML after a projection of the pages along `axis`. `None` for text that is not well-formed XML.
pub fn collapse(xml: &str, axis: Axis) -> Option<String> {
    let (size, steps): (_, &[&str]) = match axis {
        Axis::Z => ("SizeZ", &["PhysicalSizeZ", "PhysicalSizeZUnit"]),
        Axis::T => ("SizeT", &["TimeIncrement", "TimeIncrementUnit"]),
        Axis::C => ("SizeC", &[]),
    };
    let attribute = |name: &str, value: &str| match name {
        _ if name == size => Some("1".into()),
        _ if steps.contains(&name) => None,
        _ => Some(value.into()),
    };
    for_other_pages(xml, attribute, |channel| axis != Axis::C || channel == 0)
}

/// Updates OME-XML after a selection of pages. `None` for text that is not well-formed XML.
pub fn select(xml: &str, part: &Part) -> Option<String> {
    let size = |axis: Axis, value: &str| {
        let (before, (_, count)) = (part.whole.size(axis), part.places(axis));
        // A channel on the axis may have several samples.
        let samples = value.trim().parse::<usize>().ok()? / before.max(1);
        Some((samples.max(1) * count).to_string())
    };
    let attribute = |name: &str, value: &str| match name {
        "SizeZ" => size(Axis::Z, value),
        "SizeT" => size(Axis::T, value),
        "SizeC" => size(Axis::C, value),
        _ => Some(value.into()),
    };
    let (first, count) = part.places(Axis::C);
    let all = count == part.whole.size(Axis::C);
    for_other_pages(xml, attribute, |channel| {
        all || (first..first + count).contains(&channel)
    })
}

/// Rewrites OME-XML for other pages, stored in order: changes the attributes of `Pixels`, and keeps the channels for
/// whose numbers `has_channel` is true.
fn for_other_pages(
    xml: &str,
    attribute: impl Fn(&str, &str) -> Option<String>,
    has_channel: impl Fn(usize) -> bool,
) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    let mut new = String::with_capacity(xml.len());
    let (mut copied, mut channels, mut pages) = (0, 0, 0);
    loop {
        let start = usize::try_from(reader.buffer_position()).ok()?;
        let event = reader.read_event().ok()?;
        let (element, is_empty) = match &event {
            Event::Eof => break,
            Event::Start(element) => (element, false),
            Event::Empty(element) => (element, true),
            _ => continue,
        };
        let name = element.local_name();
        let goes = match name.as_ref() {
            "Pixels" => {
                new.push_str(xml.get(copied..start)?);
                new.push('<');
                new.push_str(element.name().as_ref());
                for known in element.attributes() {
                    let known = known.ok()?;
                    let key = known.key.as_ref();
                    if let Some(value) = attribute(key, &known.value) {
                        let value = value.replace('"', "&quot;");
                        new.push_str(&format!(" {key}=\"{value}\""));
                    }
                }
                new.push_str(if is_empty { "/>" } else { ">" });
                copied = usize::try_from(reader.buffer_position()).ok()?;
                continue;
            }
            "Channel" => {
                channels += 1;
                !has_channel(channels - 1)
            }
            "TiffData" => {
                pages += 1;
                true
            }
            // They describe single pages.
            "Plane" => true,
            _ => false,
        };
        if goes {
            new.push_str(xml.get(copied..start)?);
            if name.as_ref() == "TiffData" && pages == 1 {
                new.push_str(&format!("<{}/>", element.name().as_ref()));
            }
            if !is_empty {
                reader.read_to_end(element.name()).ok()?;
            }
            copied = usize::try_from(reader.buffer_position()).ok()?;
        }
    }
    new.push_str(xml.get(copied..)?);
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Shape;
    use crate::image::metadata::PixelMap;

    fn turned() -> Transform {
        let shape = |width, height| Shape {
            width,
            height,
            channels: 1,
            depth: Depth::Sixteen,
        };
        Transform {
            effect: Effect::Moves(PixelMap {
                transposed: true,
                mirror_x: false,
                mirror_y: false,
            }),
            from: shape(3, 2),
            to: shape(2, 3),
            pages: 1,
            whole: true,
        }
    }

    /// Attributes after a line's end, in single quotes, of an element with a prefix, with a > in a value.
    #[test]
    fn elements_written_in_other_ways_stayed_untrue() {
        let xml = "<o:OME xmlns:o=\"x\"><!-- <Pixels SizeX=\"3\"/> --><o:Pixels\n\tSizeX='3' Name='a > \"b\"' SizeY=\"2\" />é</o:OME>";
        let new = "<o:OME xmlns:o=\"x\"><!-- <Pixels SizeX=\"3\"/> --><o:Pixels SizeY=\"3\" Name=\"a > &quot;b&quot;\" SizeX=\"2\"/>é</o:OME>";
        assert_eq!(update(xml, &turned()).as_deref(), Some(new));
        assert_eq!(update("<OME><Pixels SizeX=3></OME>", &turned()), None);
    }
}
