//! What the descriptions of ImageJ (`ij.io.TiffDecoder`) and OME-XML (OME model 2016-06) say about the distances of pixels, slices
//! and frames, and about channels.

use super::axes::description;
use super::description::is_ome;
use crate::image::metadata::{Channel, Field, Ome, Resolution, Step, Unit};
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

/// Units by their symbols and words, and their names in OME-Zarr.
const UNITS: [(&str, &str); 21] = [
    ("Å", "angstrom"),
    ("nm", "nanometer"),
    ("µm", "micrometer"),
    // With the Greek letter, and as ImageJ escapes and spells it.
    ("μm", "micrometer"),
    ("\\u00B5m", "micrometer"),
    ("um", "micrometer"),
    ("micron", "micrometer"),
    ("microns", "micrometer"),
    ("mm", "millimeter"),
    ("cm", "centimeter"),
    ("m", "meter"),
    ("in", "inch"),
    ("inch", "inch"),
    ("ns", "nanosecond"),
    ("µs", "microsecond"),
    ("ms", "millisecond"),
    ("s", "second"),
    ("sec", "second"),
    ("min", "minute"),
    ("h", "hour"),
    ("d", "day"),
];

/// What the description of an image says; `None` if it has none of these two kinds. ImageJ stores the distances of rows and columns
/// as the resolution.
pub fn described(fields: &[Field], resolution: Option<Resolution>) -> Option<Ome> {
    let text = description(fields)?;
    if text.starts_with("ImageJ=") {
        Some(imagej(text, resolution))
    } else if is_ome(text) {
        ome(text)
    } else {
        None
    }
}

/// The name of a unit in OME-Zarr.
fn unit_name(unit: &str) -> Option<String> {
    let known = UNITS.iter().find(|(symbol, _)| *symbol == unit.trim());
    known.map(|(_, name)| (*name).into())
}

/// A distance, if it is one.
fn step(size: &str, unit: &str) -> Option<Step> {
    let size = size.trim().parse().ok();
    let size = size.filter(|size: &f64| size.is_finite() && *size > 0.0)?;
    let unit = unit_name(unit);
    Some(Step { size, unit })
}

fn imagej(text: &str, resolution: Option<Resolution>) -> Ome {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value)
    };
    let unit = value("unit").unwrap_or_default();
    // Without a unit of its own, the resolution is in that of the description.
    let sides = resolution.filter(|resolution| resolution.unit == Unit::None);
    let sides = sides.filter(|_| unit_name(unit).is_some());
    let side = |(pixels, length): (u32, u32)| {
        step(&(f64::from(length) / f64::from(pixels)).to_string(), unit)
    };
    Ome {
        x: sides.and_then(|sides| side(sides.x)),
        y: sides.and_then(|sides| side(sides.y)),
        z: value("spacing").and_then(|spacing| step(spacing, unit)),
        t: value("finterval").and_then(|interval| step(interval, value("tunit").unwrap_or("s"))),
        ..Ome::default()
    }
}

fn ome(xml: &str) -> Option<Ome> {
    let mut reader = Reader::from_str(xml);
    let mut ome = Ome::default();
    loop {
        let event = reader.read_event().ok()?;
        let element = match &event {
            Event::Eof => break,
            Event::Start(element) | Event::Empty(element) => element,
            _ => continue,
        };
        match element.local_name().as_ref() {
            "Image" => ome.name = attribute(element, "Name"),
            "Pixels" => {
                let distance = |name: &str, usual_unit: &str| {
                    let unit = attribute(element, &format!("{name}Unit"));
                    step(
                        &attribute(element, name)?,
                        unit.as_deref().unwrap_or(usual_unit),
                    )
                };
                ome.x = distance("PhysicalSizeX", "µm");
                ome.y = distance("PhysicalSizeY", "µm");
                ome.z = distance("PhysicalSizeZ", "µm");
                ome.t = distance("TimeIncrement", "s");
            }
            "Channel" => ome.channels.push(Channel {
                label: attribute(element, "Name"),
                colour: attribute(element, "Color").and_then(|colour| rgb(&colour)),
            }),
            _ => {}
        }
    }
    if ome
        .channels
        .iter()
        .all(|channel| *channel == Channel::default())
    {
        ome.channels.clear();
    }
    Some(ome)
}

/// The text of an attribute, if it has one.
fn attribute(element: &BytesStart, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    let text = unescape(&attribute.value).ok()?.into_owned();
    (!text.is_empty()).then_some(text)
}

/// Six hexadecimal digits of a colour: a number of 32 bits with a sign, whose bytes are red, green, blue and opacity.
fn rgb(colour: &str) -> Option<String> {
    let rgba = colour.trim().parse::<i32>().ok()? as u32;
    Some(format!("{:06X}", rgba >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::metadata::Value;

    fn described_by(text: &str, resolution: Option<Resolution>) -> Option<Ome> {
        let field = Field {
            tag: 270,
            kind: 2,
            value: Value::Bytes([text.as_bytes(), b"\0"].concat()),
        };
        described(&[field], resolution)
    }

    fn known(size: f64, unit: &str) -> Option<Step> {
        let unit = Some(unit.into());
        Some(Step { size, unit })
    }

    #[test]
    fn distances_of_ome_xml_have_units() {
        let xml = r#"<OME><Image Name="a &amp; b"><Pixels PhysicalSizeX="0.5" PhysicalSizeY="250" PhysicalSizeYUnit="nm"
            PhysicalSizeZ="-1" TimeIncrement="2" TimeIncrementUnit="min"><Channel ID="C:0" Name="DAPI" Color="65535"/>
            <Channel ID="C:1" Color="-16776961"/></Pixels></Image></OME>"#;
        let ome = described_by(xml, None).expect("OME-XML");
        assert_eq!(ome.name.as_deref(), Some("a & b"));
        assert_eq!(ome.x, known(0.5, "micrometer"));
        assert_eq!(ome.y, known(250.0, "nanometer"));
        assert_eq!((ome.z, ome.t), (None, known(2.0, "minute")));
        let channel = |label: Option<&str>, colour: &str| Channel {
            label: label.map(String::from),
            colour: Some(colour.into()),
        };
        // 0x0000ffff, and −16776961 = 0xff0000ff.
        let channels = [channel(Some("DAPI"), "0000FF"), channel(None, "FF0000")];
        assert_eq!(ome.channels, channels);
        assert_eq!(described_by("<OME><Pixels", None), None);
        let plain = described_by("<OME><Pixels><Channel ID=\"C:0\"/></Pixels></OME>", None);
        assert_eq!(plain, Some(Ome::default()));
        assert_eq!(described_by("a cell", None), None);
    }

    #[test]
    fn imagej_has_its_unit_in_the_description() {
        let text = "ImageJ=1.54f\nimages=6\nunit=\\u00B5m\nspacing=0.75\nfinterval=0.5\n";
        let resolution = |unit| Resolution {
            x: (4, 1),
            y: (2, 1),
            unit,
        };
        let ome = described_by(text, Some(resolution(Unit::None))).expect("ImageJ's");
        assert_eq!(ome.x, known(0.25, "micrometer"));
        assert_eq!(ome.y, known(0.5, "micrometer"));
        assert_eq!(ome.z, known(0.75, "micrometer"));
        assert_eq!(ome.t, known(0.5, "second"));
        let ome = described_by(text, Some(resolution(Unit::Inch))).expect("ImageJ's");
        assert_eq!((ome.x, ome.y), (None, None));
        let without = described_by("ImageJ=1.54f\nimages=6\n", Some(resolution(Unit::None)));
        assert_eq!(without, Some(Ome::default()));
    }
}
