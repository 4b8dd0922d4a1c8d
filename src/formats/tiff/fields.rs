//! Reads and writes the fields of a directory that hold metadata, rather than the layout of the
//! samples.

use super::description;
use super::ifd::{Ifd, Lost, essential_name, name, tag};
use super::shape::Form;
use crate::formats::raw::Order;
use crate::image::metadata::{Alpha, Diagnostics, Field, Metadata, Own, Resolution, Unit, Value};
use crate::image::{Depth, Shape};
use anyhow::Result;

/// Types of values; TIFF 6.0, section 2, and BigTIFF.
pub const BYTE: u16 = 1;
pub const ASCII: u16 = 2;
pub const SHORT: u16 = 3;
pub const LONG: u16 = 4;
pub const RATIONAL: u16 = 5;
pub const UNDEFINED: u16 = 7;
pub const IFD: u16 = 13;
pub const LONG8: u16 = 16;
pub const DOUBLE: u16 = 12;

/// Whether a field describes the layout of samples in the file, which the output's own fields describe
/// anew, or is meaningless without such a field.
pub fn is_layout(tag: u16) -> bool {
    matches!(
        tag,
        254..=259 | 262..=266 | 273 | 274 | 277..=279 | 281..=284 | 288..=290 | 292 | 293 | 296
            | 317 | 320 | 322..=325 | 330 | 338 | 339 | 347 | 512..=521 | 529..=531 | 32997 | 32998
    )
}

/// The name of a private field that holds offsets into the file, which mean nothing in another file.
fn field_of_offsets(tag: u16) -> Option<&'static str> {
    match tag {
        33628..=33631 => Some("MetaMorph's own metadata (UIC, tags 33628 to 33631)"),
        34412 => Some("Zeiss's own metadata (LSM, tag 34412)"),
        33560 => Some("Olympus's own metadata (SIS, tag 33560)"),
        _ => None,
    }
}

/// The metadata that follow from the type of the samples alone.
pub fn from_form(form: &Form) -> Metadata {
    let scaled = form.bits < 8 && !form.palette;
    let short = form.bits > 8 && form.bits < 16;
    Metadata {
        signed: form.signed,
        white_is_zero: form.white_is_zero,
        alpha: form.alpha,
        maxval: short.then(|| ((1u32 << form.bits) - 1) as u16),
        significant: scaled.then(|| vec![form.bits as u8; form.shape.channels]),
        ..Metadata::default()
    }
}

/// Reads all metadata of a page.
pub fn read(ifd: &Ifd, form: &Form, diagnostics: &mut Diagnostics) -> Metadata {
    let mut metadata = from_form(form);
    let mut cut = Vec::new();
    let mut number = |tag| or_cut(ifd.number(tag), &mut cut);
    let photometric = number(tag::PHOTOMETRIC);
    metadata.orientation = number(tag::ORIENTATION)
        .map(|value| value as u16)
        .filter(|value| (1..=8).contains(value));
    // A MaxSampleValue of 2ⁿ − 1 states a number of bits, for which TIFF has no other field; any
    // other value is only the maximum of one image, and says nothing about the range (TIFF 6.0,
    // section 8, MaxSampleValue).
    let narrow = !form.shape.depth.is_wide();
    let below_full = |max: &u64| narrow && (1..form.shape.depth.full().into()).contains(max);
    let most = number(tag::MAX_SAMPLE_VALUE).filter(below_full);
    let stated = !form.signed && !form.palette && metadata.maxval.is_none();
    let most = most.filter(|_| stated);
    metadata.maxval = metadata.maxval.or(most
        .filter(|max| (max + 1).is_power_of_two())
        .map(|max| max as u16));
    let is_statistic = most.is_some() && metadata.maxval.is_none();
    let unit = match number(tag::RESOLUTION_UNIT).unwrap_or(2) {
        2 => Unit::Inch,
        3 => Unit::Centimetre,
        _ => Unit::None,
    };
    let no_data = ifd.text(tag::GDAL_NODATA).ok().flatten();
    let no_data = no_data.and_then(|text| text.trim().parse().ok());
    metadata.no_data = Vec::from_iter(no_data);
    let mut fraction = |tag| or_cut(ifd.fraction(tag), &mut cut);
    let fractions = fraction(tag::X_RESOLUTION).zip(fraction(tag::Y_RESOLUTION));
    metadata.resolution = fractions.map(|(x, y)| Resolution { x, y, unit });
    if ifd.count(tag::SUB_IFDS) > 0 {
        let thumbnails = match larger_inside(ifd, form) {
            None => "smaller copies of the image inside the page (SubIFDs) are left out",
            Some(_) => "a larger image inside the page (SubIFDs) is left out",
        };
        diagnostics.warnings.push(thumbnails.into());
    }
    let mut offset_fields = Vec::new();
    // The range of components that are converted to RGB (ReferenceBlackWhite).
    let is_ycbcr_range = |tag| tag == 532 && photometric == Some(6);
    let (mut fields, lost) = ifd.fields(|tag| {
        let kept = tag == tag::MAX_SAMPLE_VALUE && is_statistic;
        is_layout(tag) && !kept || is_ycbcr_range(tag)
    });
    fields.retain(|field| {
        let name = field_of_offsets(field.tag);
        offset_fields.extend(name);
        name.is_none()
    });
    offset_fields.dedup();
    for name in offset_fields {
        let warning = format!("{name} are left out: they hold offsets into the input file");
        diagnostics.warnings.push(warning);
    }
    for field in lost {
        report_lost(field, diagnostics);
    }
    for sentence in cut {
        if !diagnostics.lost.contains(&sentence) {
            diagnostics.lost.push(sentence);
        }
    }
    metadata.own = Own::Tiff {
        big_endian: ifd.order() == Order::Big,
        fields,
    };
    metadata
}

/// A value; `None` with the reason added to `cut` if it is not all in the file.
fn or_cut<T>(value: Result<Option<T>>, cut: &mut Vec<String>) -> Option<T> {
    value.unwrap_or_else(|error| {
        cut.push(format!("{error:#}"));
        None
    })
}

/// Reports a field that cannot be read: as damage if it is essential, otherwise as a warning.
fn report_lost(field: Lost, diagnostics: &mut Diagnostics) {
    match field.cut {
        Some(cut) if !field.is_inside && essential_name(field.tag).is_some() => {
            diagnostics.lost.push(cut);
        }
        Some(cut) => diagnostics.warnings.push(format!("{cut}, and is left out")),
        None => {
            let warning = format!("{} cannot be read and is left out", name(field.tag));
            diagnostics.warnings.push(warning);
        }
    }
}

/// The fields of a page, none at first.
pub fn of_page(own: &mut Own) -> Option<&mut Vec<Field>> {
    if *own == Own::None {
        *own = Own::Tiff {
            big_endian: false,
            fields: Vec::new(),
        };
    }
    match own {
        Own::Tiff { fields, .. } => Some(fields),
        _ => None,
    }
}

/// Removes a description of the axes of all pages (by OME-XML, ImageJ or tifffile), which is not true of pages that
/// are one channel each; returns whether there was one.
pub fn without_axes(metadata: &mut Metadata) -> bool {
    let Own::Tiff { fields, .. } = &mut metadata.own else {
        return false;
    };
    let before = fields.len();
    fields.retain(|field| match &field.value {
        Value::Bytes(bytes) if field.tag == tag::IMAGE_DESCRIPTION => {
            let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            !description::describes_all_pages(&String::from_utf8_lossy(text))
        }
        _ => true,
    });
    fields.len() < before
}

/// Copies metadata about all pages from the first directory to a later page that lacks them: the
/// first selected page describes the whole stack.
pub fn add_from_first_page(metadata: &mut Metadata, first: &Ifd, diagnostics: &mut Diagnostics) {
    let text = or_cut(first.text(tag::IMAGE_DESCRIPTION), &mut diagnostics.lost);
    let Some(text) = text else {
        return;
    };
    let Own::Tiff { fields, .. } = &mut metadata.own else {
        return;
    };
    if !description::describes_all_pages(&text) {
        let note = "the description of page 1, which is not selected, is left out";
        diagnostics.notes.push(note.into());
        return;
    }
    let described_tags = [
        tag::IMAGE_DESCRIPTION,
        tag::IMAGEJ_LENGTHS,
        tag::IMAGEJ_ENTRIES,
    ];
    if fields
        .iter()
        .any(|field| described_tags.contains(&field.tag))
    {
        return;
    }
    let (described, lost) = first.fields(|tag| !described_tags.contains(&tag));
    for field in lost {
        report_lost(field, diagnostics);
    }
    fields.extend(described);
    fields.sort_by_key(|field| field.tag);
}

/// Width and height of an image inside the page (a SubIFD) with more pixels than the page itself.
pub fn larger_inside(ifd: &Ifd, form: &Form) -> Option<(u64, u64)> {
    let larger =
        |&(width, height): &(u64, u64)| width.saturating_mul(height) > form.shape.pixels() as u64;
    ifd.inner_images().into_iter().find(larger)
}

/// A field of numbers in a byte order: a RATIONAL takes two numbers, a DOUBLE its bits.
pub fn field(order: Order, tag: u16, kind: u16, values: &[u64]) -> Field {
    let size = match kind {
        SHORT => 2,
        LONG8 | DOUBLE => 8,
        _ => 4,
    };
    let mut bytes = Vec::new();
    for &value in values {
        put(&mut bytes, value, size, order);
    }
    Field {
        tag,
        kind,
        value: Value::Bytes(bytes),
    }
}

/// Appends the low `size` bytes of a number.
pub fn put(file: &mut Vec<u8>, number: u64, size: usize, order: Order) {
    match order {
        Order::Little => file.extend(&number.to_le_bytes()[..size]),
        Order::Big => file.extend(&number.to_be_bytes()[8 - size..]),
    }
}

/// The fields to write for this metadata, without those about sample layout.
pub fn written(metadata: &Metadata, shape: &Shape, order: Order) -> Vec<Field> {
    let number = |tag, kind, value: u64| field(order, tag, kind, &[value]);
    let rational = |tag, (n, d): (u32, u32)| field(order, tag, RATIONAL, &[n.into(), d.into()]);
    let photometric = match (shape.colours(), metadata.white_is_zero) {
        (3, _) if metadata.alpha == Alpha::Black => 5,
        (3, _) => 2,
        (_, true) => 0,
        _ => 1,
    };
    let format = match (shape.depth, metadata.signed) {
        (Depth::Float | Depth::Double, _) => 3,
        (_, true) => 2,
        (_, false) => 1,
    };
    // Baseline TIFF requires a resolution (TIFF 6.0, section 4): 1/1 without a unit means that it
    // is unknown.
    let resolution = metadata.resolution.unwrap_or(Resolution {
        x: (1, 1),
        y: (1, 1),
        unit: Unit::None,
    });
    let (resolution, unit) = match resolution.unit {
        Unit::None => (resolution, 1),
        Unit::Inch => (resolution, 2),
        Unit::Centimetre => (resolution, 3),
        Unit::Metre => (resolution.by_centimetre(), 3),
    };
    let mut fields = match &metadata.own {
        Own::Tiff { fields, .. } => fields.clone(),
        _ => Vec::new(),
    };
    fields.extend([
        number(tag::PHOTOMETRIC, SHORT, photometric),
        rational(tag::X_RESOLUTION, resolution.x),
        rational(tag::Y_RESOLUTION, resolution.y),
        number(tag::RESOLUTION_UNIT, SHORT, unit),
        field(
            order,
            tag::SAMPLE_FORMAT,
            SHORT,
            &vec![format; shape.channels],
        ),
    ]);
    if let Some(orientation) = metadata.orientation {
        fields.push(number(tag::ORIENTATION, SHORT, orientation.into()));
    }
    if let Some(maxval) = metadata.maxval {
        let values = vec![maxval.into(); shape.channels];
        fields.push(field(order, tag::MAX_SAMPLE_VALUE, SHORT, &values));
    }
    let kind = match metadata.alpha {
        Alpha::Unspecified => Some(0),
        Alpha::Associated => Some(1),
        Alpha::Independent => Some(2),
        Alpha::Black => None,
    };
    if let Some(kind) = kind.filter(|_| shape.has_alpha()) {
        fields.push(number(tag::EXTRA_SAMPLES, SHORT, kind));
    }
    fields
}
