//! Decodes JPEG-LS (ITU-T T.87): lossless and near-lossless samples of 2 to 16 bits. It shares only its markers with other
//! JPEG, and no maintained crate without C code decodes it alone.

mod bits;
mod contexts;
mod scan;

use anyhow::{Context, Result, bail, ensure};
use contexts::Parameters;
use scan::Scan;

/// The most pixels that a byte of an image makes: those of one colour.
pub const EXPANSION: u64 = 1 << 14;

/// Bytes of memory for a sample that is decoded, beside the sample.
pub const SAMPLE: u64 = 2;

/// The size of an image, as the file that contains it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples of a pixel.
    pub channels: usize,
    /// The most bits of a sample.
    pub bits: u32,
}

/// The samples of a component.
struct Component {
    /// The number by which scans name it.
    name: u8,
    /// Whether a scan had it.
    is_decoded: bool,
}

/// Decodes an image of the size `wanted`: the samples of a pixel together.
///
/// # Errors
/// Damaged data, another kind of JPEG, and an image of another size.
pub fn decode(file: &[u8], wanted: &Size) -> Result<Vec<u16>> {
    let rest = file.strip_prefix(b"\xFF\xD8");
    let mut rest = rest.context("it is not a JPEG-LS image")?;
    let mut header: Option<(u32, Vec<Component>)> = None;
    let mut parameters = None;
    let mut samples = Vec::new();
    loop {
        let (marker, segment) = segment(&mut rest)?;
        match marker {
            0xF7 => {
                samples = vec![0; wanted.width * wanted.height * wanted.channels];
                header = Some(frame(segment, wanted)?);
            }
            0xF8 => parameters = Some(Parameters::read(segment)?),
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCF => {
                bail!("it is a JPEG image of another kind (marker FF{marker:02X})")
            }
            0xD9 => bail!("its JPEG-LS data end before their last scan"),
            0xDD => bail!("JPEG-LS with restart markers is not supported"),
            0xE8 if segment.starts_with(b"mrfx") && segment.get(4) != Some(&0) => {
                bail!("JPEG-LS with a transform of colours (mrfx) is not supported")
            }
            0xDA => {
                let (bits, components) = header.as_mut().context("a scan without a header")?;
                let about = scan_header(segment, components)?;
                let scan = Scan {
                    parameters: parameters.unwrap_or_default().complete(*bits, about.near)?,
                    width: wanted.width,
                    channels: wanted.channels,
                    takes_turns: about.takes_turns,
                    components: about.components,
                };
                rest = scan.decode(rest, &mut samples)?;
                if components.iter().all(|component| component.is_decoded) {
                    return Ok(samples);
                }
            }
            _ => {}
        }
    }
}

/// Reads the next marker and its segment.
fn segment<'a>(rest: &mut &'a [u8]) -> Result<(u8, &'a [u8])> {
    let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
    let marker = rest.get(fill).context("truncated before a marker")?;
    ensure!(fill > 0, "it is damaged: no marker where one is expected");
    let after = &rest[fill + 1..];
    if *marker == 0xD9 {
        return Ok((*marker, &[]));
    }
    let length = after
        .first_chunk()
        .map(|length| u16::from_be_bytes(*length).into());
    let segment = length.and_then(|length: usize| after.get(2..length));
    let segment = segment.context("damaged or truncated within a segment")?;
    *rest = &after[2 + segment.len()..];
    Ok((*marker, segment))
}

/// Reads the header of the frame: the bits of a sample, and the components.
fn frame(segment: &[u8], wanted: &Size) -> Result<(u32, Vec<Component>)> {
    let [bits, y1, y2, x1, x2, count, components @ ..] = segment else {
        bail!("its header is too short");
    };
    let number = |bytes: [u8; 2]| usize::from(u16::from_be_bytes(bytes));
    let size = Size {
        width: number([*x1, *x2]),
        height: number([*y1, *y2]),
        channels: usize::from(*count),
        bits: u32::from(*bits),
    };
    ensure!(
        (size.width, size.height, size.channels) == (wanted.width, wanted.height, wanted.channels),
        "the size of its JPEG-LS image differs from that in the header"
    );
    ensure!(
        (2..=wanted.bits).contains(&size.bits),
        "its JPEG-LS image has {} bits, and its header {}",
        size.bits,
        wanted.bits
    );
    let components = components.as_chunks::<3>().0;
    ensure!(
        components.len() == size.channels && components.iter().all(|it| it[1] == 0x11),
        "JPEG-LS whose components have fewer pixels than the image is not supported"
    );
    let component = |&[name, ..]: &[u8; 3]| Component {
        name,
        is_decoded: false,
    };
    Ok((size.bits, components.iter().map(component).collect()))
}

/// What the header of a scan says.
struct ScanHeader {
    /// The numbers of its components.
    components: Vec<usize>,
    /// The most by which a sample differs from the original.
    near: i32,
    /// Whether the samples of its components take turns.
    takes_turns: bool,
}

/// Reads the header of a scan.
fn scan_header(segment: &[u8], components: &mut [Component]) -> Result<ScanHeader> {
    let [count, rest @ ..] = segment else {
        bail!("the header of a scan is too short");
    };
    let named = rest.get(..2 * usize::from(*count));
    let named = named.context("the header of a scan is too short")?;
    let [near, interleave, shift] = rest[named.len()..] else {
        bail!("the header of a scan has another length");
    };
    let mut places = Vec::new();
    for &[name, table] in named.as_chunks().0 {
        let place = components.iter().position(|it| it.name == name);
        let place = place.with_context(|| format!("a scan has the unknown component {name}"))?;
        ensure!(
            !std::mem::replace(&mut components[place].is_decoded, true),
            "it has two scans of component {name}"
        );
        ensure!(
            table == 0 && shift == 0,
            "JPEG-LS with a table of values or shifted samples is not supported"
        );
        places.push(place);
    }
    let takes_turns = match (interleave, places.len()) {
        (_, 1) | (1, 2..) => false,
        (2, 2..) => true,
        (order, count) => bail!("a scan of {count} components in the order {order} is damaged"),
    };
    Ok(ScanHeader {
        components: places,
        near: near.into(),
        takes_turns,
    })
}
