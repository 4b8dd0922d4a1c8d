//! Updates OME-XML (Open Microscopy Environment, OME model 2016-06) so that it is true of the output.

use crate::image::Depth;
use crate::metadata::Transform;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Attributes of `Pixels` that change places when rows become columns.
const SIDES: [(&str, &str); 3] = [
    ("SizeX", "SizeY"),
    ("PhysicalSizeX", "PhysicalSizeY"),
    ("PhysicalSizeXUnit", "PhysicalSizeYUnit"),
];

/// Updates the attributes of every `Pixels` element, whatever prefix its namespace has. All other bytes
/// stay as they are. `None` for text that is not well-formed XML.
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
        if element.local_name().as_ref() == "Pixels" {
            // The reader borrows from the text, so an address tells the place in it.
            let start = (element.as_ptr() as usize).checked_sub(xml.as_ptr() as usize)?;
            new.push_str(xml.get(copied..start)?);
            new.push_str(&pixels(element, transform)?);
            copied = start + element.len();
        }
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
            ("Type", "uint32" | "int32" | "float", Depth::Eight) => "uint8",
            ("Type", "uint32" | "int32" | "float", Depth::Sixteen) => "uint16",
            ("Type", "uint8" | "uint16", Depth::Eight) => "uint8",
            ("Type", "uint8" | "uint16", Depth::Sixteen) => "uint16",
            ("Type", "int8" | "int16", Depth::Eight) => "int8",
            ("Type", "int8" | "int16", Depth::Sixteen) => "int16",
            ("SignificantBits", _, depth) if transform.changes_values() => match depth {
                Depth::Eight => "8",
                Depth::Sixteen => "16",
                Depth::ThirtyTwo | Depth::Float => "32",
            },
            _ => value,
        };
        // In single quotes the value may have double ones.
        let value = value.replace('"', "&quot;");
        new.push_str(&format!(" {name}=\"{value}\""));
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Shape;
    use crate::metadata::{Effect, PixelMap};

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
