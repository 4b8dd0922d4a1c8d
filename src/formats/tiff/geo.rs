//! Updates the fields that give the positions of pixels on the earth after a symmetry, or of an image
//! that was made smaller: GeoTIFF's transformation, and rational polynomial coefficients.

use super::fields::{DOUBLE, SHORT, field};
use crate::formats::raw::Order;
use crate::image::metadata::{Diagnostics, Effect, Field, PixelMap, Transform, Value};

/// GeoTIFF's fields for the positions of pixels on the earth (GeoTIFF 1.1, section 7.1).
const PIXEL_SCALE: u16 = 33550;
const TIEPOINT: u16 = 33922;
const TRANSFORMATION: u16 = 34264;
/// GeoTIFF's keys, which mean nothing without one of those fields.
const GEO_KEYS: std::ops::RangeInclusive<u16> = 34735..=34737;
/// The directory of keys: a header of four numbers, then four numbers a key (section 7.1.2).
const KEY_DIRECTORY: u16 = 34735;
/// The key GTRasterTypeGeoKey: whether whole numbers are the corners of pixels (1) or their centres
/// (2).
const RASTER_TYPE: u16 = 1025;
const PIXEL_IS_POINT: u16 = 2;
/// Intergraph's transformation, older than GeoTIFF.
const INTERGRAPH: u16 = 33920;
/// Rational polynomial coefficients (the extension of GeoTIFF, "RPCs in GeoTIFF"): 92 numbers.
const RPC: u16 = 50844;

/// Updates the positions of the pixels after a transform that changes them, or removes them.
pub fn update(
    fields: &mut Vec<Field>,
    order: Order,
    transform: &Transform,
    diagnostics: &mut Diagnostics,
) {
    place(fields, order, transform, diagnostics);
    rational_polynomials(fields, order, transform, diagnostics);
    let before = fields.len();
    fields.retain(|field| field.tag != INTERGRAPH);
    if fields.len() < before {
        let warning = format!(
            "its geolocation (tag {INTERGRAPH}) is left out: it describes the previous positions"
        );
        diagnostics.warnings.push(warning);
    }
}

/// Old pixels of one new pixel, across and down.
fn steps(transform: &Transform) -> (f64, f64) {
    let Transform { from, to, .. } = transform;
    (
        from.width as f64 / to.width as f64,
        from.height as f64 / to.height as f64,
    )
}

/// The coordinates in the input of a point of the result. Whole numbers are the centres of pixels if `is_point`, otherwise
/// their corners.
fn source(transform: &Transform, is_point: bool, x: f64, y: f64) -> (f64, f64) {
    match transform.effect {
        Effect::Moves(turn) => {
            // If coordinates are those of pixel corners, mirroring moves column x to width − x; if
            // they are those of centres, to width − 1 − x.
            let off = if is_point { 1.0 } else { 0.0 };
            let (width, height) = (transform.to.width as f64, transform.to.height as f64);
            let x = if turn.mirror_x { width - off - x } else { x };
            let y = if turn.mirror_y { height - off - y } else { y };
            if turn.transposed { (y, x) } else { (x, y) }
        }
        Effect::Cropped { left, top } => (x + left as f64, y + top as f64),
        _ => {
            let off = if is_point { 0.5 } else { 0.0 };
            let (across, down) = steps(transform);
            ((x + off) * across - off, (y + off) * down - off)
        }
    }
}

/// Updates GeoTIFF's transformation, or removes it.
fn place(
    fields: &mut Vec<Field>,
    order: Order,
    transform: &Transform,
    diagnostics: &mut Diagnostics,
) {
    let is_place = |tag| matches!(tag, PIXEL_SCALE | TIEPOINT | TRANSFORMATION);
    if !fields.iter().any(|field| is_place(field.tag)) {
        return;
    }
    let (matrix, is_point) = (matrix(fields, order), is_point(fields, order));
    fields.retain(|field| !is_place(field.tag));
    let Some(matrix) = matrix else {
        fields.retain(|field| !GEO_KEYS.contains(&field.tag));
        let warning = "its geolocation (GeoTIFF) is left out: it cannot be updated for the output";
        diagnostics.warnings.push(warning.into());
        return;
    };
    let source = |x: f64, y: f64| source(transform, is_point, x, y);
    let (origin, across, down) = (source(0.0, 0.0), source(1.0, 0.0), source(0.0, 1.0));
    let mut new = matrix;
    for row in 0..3 {
        let along = |to: (f64, f64)| {
            matrix[4 * row] * (to.0 - origin.0) + matrix[4 * row + 1] * (to.1 - origin.1)
        };
        new[4 * row] = along(across);
        new[4 * row + 1] = along(down);
        new[4 * row + 3] += matrix[4 * row] * origin.0 + matrix[4 * row + 1] * origin.1;
    }
    let values: Vec<u64> = new.iter().map(|value| value.to_bits()).collect();
    fields.push(field(order, TRANSFORMATION, DOUBLE, &values));
}

/// Whether whole numbers are the centres of pixels (section 7.2.2, PixelIsPoint).
fn is_point(fields: &[Field], order: Order) -> bool {
    let keys = fields.iter().find(|field| field.tag == KEY_DIRECTORY);
    let Some(Field {
        kind: SHORT,
        value: Value::Bytes(bytes),
        ..
    }) = keys
    else {
        return false;
    };
    // A key's entry: the key, the tag of its value (0: stored here), the count, the value.
    let keys = bytes.chunks_exact(8).skip(1);
    let is_point =
        [RASTER_TYPE, 0, 1, PIXEL_IS_POINT].map(|number| order.bytes::<2>(number.into()));
    keys.into_iter().any(|key| key == is_point.as_flattened())
}

/// Updates rational polynomials. They give line and sample of pixel centres,
/// divided by a scale and counted from an offset: for a mirrored coordinate the numerator is
/// negated and the offset is counted from the other side; for a transposed image line and sample
/// are exchanged; in a smaller image offsets and scales are smaller.
fn rational_polynomials(
    fields: &mut Vec<Field>,
    order: Order,
    transform: &Transform,
    diagnostics: &mut Diagnostics,
) {
    let Some(at) = fields.iter().position(|field| field.tag == RPC) else {
        return;
    };
    let coefficients = doubles(fields, order, RPC)
        .and_then(|coefficients| <[f64; 92]>::try_from(coefficients).ok());
    let Some(mut coefficients) = coefficients else {
        fields.remove(at);
        let warning = "its rational polynomials (tag 50844) are left out: they are damaged";
        diagnostics.warnings.push(warning.into());
        return;
    };
    // After two error estimates: the offsets of line, sample and three more coordinates, their
    // scales, and for line and for sample 20 coefficients of the numerator and 20 of the
    // denominator.
    const OFFSET: [usize; 2] = [2, 3];
    const SCALE: [usize; 2] = [7, 8];
    const POLYNOMIALS: [usize; 2] = [12, 52];
    let turn = match transform.effect {
        Effect::Moves(turn) => turn,
        Effect::Cropped { left, top } => {
            coefficients[OFFSET[0]] -= top as f64;
            coefficients[OFFSET[1]] -= left as f64;
            PixelMap::NONE
        }
        _ => {
            let (across, down) = steps(transform);
            for (i, step) in [down, across].into_iter().enumerate() {
                coefficients[OFFSET[i]] = (coefficients[OFFSET[i]] + 0.5) / step - 0.5;
                coefficients[SCALE[i]] /= step;
            }
            PixelMap::NONE
        }
    };
    if turn.transposed {
        coefficients.swap(OFFSET[0], OFFSET[1]);
        coefficients.swap(SCALE[0], SCALE[1]);
        for i in 0..40 {
            coefficients.swap(POLYNOMIALS[0] + i, POLYNOMIALS[1] + i);
        }
    }
    let sides = [transform.to.height, transform.to.width];
    for (i, mirrored) in [turn.mirror_y, turn.mirror_x].into_iter().enumerate() {
        if mirrored {
            coefficients[OFFSET[i]] = sides[i] as f64 - 1.0 - coefficients[OFFSET[i]];
            for coefficient in &mut coefficients[POLYNOMIALS[i]..POLYNOMIALS[i] + 20] {
                *coefficient = -*coefficient;
            }
        }
    }
    fields[at] = field(order, RPC, DOUBLE, &coefficients.map(f64::to_bits));
}

/// The values of a DOUBLE field.
fn doubles(fields: &[Field], order: Order, tag: u16) -> Option<Vec<f64>> {
    let field = fields.iter().find(|field| field.tag == tag)?;
    let Value::Bytes(bytes) = &field.value else {
        return None;
    };
    let number = |bytes: &[u8]| f64::from_bits(order.number(bytes));
    (field.kind == DOUBLE).then(|| bytes.chunks_exact(8).map(number).collect())
}

/// The affine map from pixels to the earth, as the 4×4 matrix of GeoTIFF, row by row.
fn matrix(fields: &[Field], order: Order) -> Option<[f64; 16]> {
    let numbers = |tag| doubles(fields, order, tag);
    if let Some(matrix) = numbers(TRANSFORMATION) {
        return matrix.try_into().ok();
    }
    // One tie point and a scale; several tie points do not define an affine map.
    let (scale, tie) = (numbers(PIXEL_SCALE)?, numbers(TIEPOINT)?);
    let &[sx, sy, sz] = &scale[..] else {
        return None;
    };
    let &[i, j, k, x, y, z] = &tie[..] else {
        return None;
    };
    Some([
        sx,
        0.0,
        0.0,
        x - i * sx, //
        0.0,
        -sy,
        0.0,
        y + j * sy, //
        0.0,
        0.0,
        sz,
        z - k * sz, //
        0.0,
        0.0,
        0.0,
        1.0,
    ])
}
