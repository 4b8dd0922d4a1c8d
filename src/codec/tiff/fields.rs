//! The fields of a directory that tell of an image more than how to read it, read and written.

use super::ifd::{Ifd, tag};
use super::shape::Form;
use crate::codec::raw::Order;
use crate::image::Shape;
use crate::metadata::{Alpha, Field, Metadata, Own, Remarks, Resolution, Unit, Value};

/// Types of values; TIFF 6.0, section 2, and BigTIFF.
pub const ASCII: u16 = 2;
pub const SHORT: u16 = 3;
pub const LONG: u16 = 4;
pub const RATIONAL: u16 = 5;
pub const UNDEFINED: u16 = 7;
pub const IFD: u16 = 13;
pub const LONG8: u16 = 16;
pub const DOUBLE: u16 = 12;

/// Fields that say how samples lie in the file, which the output's own fields say anew, and those
/// that mean nothing without them.
pub fn is_layout(tag: u16) -> bool {
    matches!(
        tag,
        254..=259 | 262..=266 | 273 | 274 | 277..=279 | 281..=284 | 288..=290 | 292 | 293 | 296
            | 317 | 320 | 322..=325 | 330 | 338 | 339 | 347 | 512..=521 | 529..=531
    )
}

/// What the samples mean, without any field that only tells about them.
pub fn meaning(form: &Form) -> Metadata {
    let scaled = form.bits < 8;
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

/// Everything that a page says beside its samples.
pub fn read(ifd: &Ifd, form: &Form, remarks: &mut Remarks) -> Metadata {
    let mut metadata = meaning(form);
    let number = |tag| ifd.value(tag).ok().flatten();
    metadata.orientation = number(tag::ORIENTATION)
        .map(|value| value as u16)
        .filter(|value| (1..=8).contains(value));
    // Of unsigned samples of 16 bits it can tell what the format has no other word for.
    if !form.signed
        && let Some(max) = number(tag::MAX_SAMPLE_VALUE)
        && max > 0
        && max < form.shape.depth.full().into()
    {
        metadata.maxval = metadata.maxval.or(Some(max as u16));
    }
    let unit = match number(tag::RESOLUTION_UNIT).unwrap_or(2) {
        2 => Unit::Inch,
        3 => Unit::Centimetre,
        _ => Unit::None,
    };
    let fractions = (ifd.fraction(tag::X_RESOLUTION)).zip(ifd.fraction(tag::Y_RESOLUTION));
    metadata.resolution = fractions.map(|(x, y)| Resolution { x, y, unit });
    if number(tag::SUB_IFDS).is_some() {
        let thumbnails = "smaller copies of the image inside the page (SubIFDs) are left out";
        remarks.warnings.push(thumbnails.into());
    }
    let (fields, lost) = ifd.fields(is_layout);
    for tag in lost {
        let warning = format!("tag {tag} cannot be read and is left out");
        remarks.warnings.push(warning);
    }
    metadata.own = Own::Tiff {
        big_endian: ifd.order() == Order::Big,
        fields,
    };
    metadata
}

/// A field of numbers in a byte order: a RATIONAL is two, a DOUBLE is its bits.
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
    let bytes = number.to_le_bytes();
    match order {
        Order::Little => file.extend(&bytes[..size]),
        Order::Big => file.extend(bytes[..size].iter().rev()),
    }
}

/// The fields that tell what was read, but for those about how the samples lie in the file.
pub fn written(metadata: &Metadata, shape: &Shape, order: Order) -> Vec<Field> {
    let number = |tag, kind, value: u64| field(order, tag, kind, &[value]);
    let rational = |tag, (n, d): (u32, u32)| field(order, tag, RATIONAL, &[n.into(), d.into()]);
    let photometric = match (shape.colours(), metadata.white_is_zero) {
        (3, _) => 2,
        (_, true) => 0,
        _ => 1,
    };
    let sign = if metadata.signed { 2 } else { 1 };
    // Baseline TIFF demands a resolution: 1/1 of no unit says that none is known.
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
            &vec![sign; shape.channels],
        ),
    ]);
    if let Some(orientation) = metadata.orientation {
        fields.push(number(tag::ORIENTATION, SHORT, orientation.into()));
    }
    if let Some(maxval) = metadata.maxval {
        let values = vec![maxval.into(); shape.channels];
        fields.push(field(order, tag::MAX_SAMPLE_VALUE, SHORT, &values));
    }
    if shape.has_alpha() {
        let kind = match metadata.alpha {
            Alpha::Unspecified => 0,
            Alpha::Associated => 1,
            Alpha::Independent => 2,
        };
        fields.push(number(tag::EXTRA_SAMPLES, SHORT, kind));
    }
    fields
}
