//! OME-Zarr (OME-NGFF 0.1 to 0.5) and plain arrays of Zarr v2 and v3: folders that are one image, with up to the axes t, c, z, y
//! and x. A page is a plane of y and x; the other axes become pages, the last of them fastest. OME-Zarr 0.5 is written.
//!
//! The descriptions are read by own code, because the crate `zarrs` needs a newer Rust than this one and brings more than 100
//! crates; the codecs are those of other formats and `lz4_flex`.

mod array;
pub(super) mod blosc;
mod codecs;
mod decode;
mod describe;
mod encode;
mod json;
mod multiscales;
mod node;
mod options;
mod pyramid;
mod shard_index;
mod streams;

pub use options::{Compression, Options, chunk_side, level_count, shard_side};

use super::format::{Capabilities, Field, Format};
use super::tiff::described::described;
use crate::image::metadata::{Metadata, Own};

/// The tag of the description of a TIFF.
const IMAGE_DESCRIPTION: u16 = 270;

/// OME-Zarr.
pub static FORMAT: Format = Format {
    name: "Zarr",
    id: "zarr",
    title: "OME-Zarr",
    extensions: &["zarr"],
    is_folder: true,
    capabilities: Capabilities {
        channels: &[1, 3],
        alpha: &[],
        fields: &[Field::Resolution],
        ..Capabilities::ALL_SAMPLES
    },
    decoder: |source, _| Ok(Box::new(decode::ZarrDecoder::open(source)?)),
    encoder: Some(|target, options, pages| {
        Ok(Box::new(encode::ZarrEncoder::new(
            target,
            options.zarr,
            pages,
        )?))
    }),
    convert_metadata,
    // The encoder gets them.
    add_axes: Some(|_, _| Ok(())),
    ..Format::DEFAULTS
};

/// Takes what another OME-Zarr and the descriptions of a TIFF say about distances and channels.
fn convert_metadata(metadata: &Metadata, own: Own, leave_out: &mut dyn FnMut(String)) -> Own {
    let (described, left_out) = match own {
        Own::Ome(ome) => return Own::Ome(ome),
        Own::Tiff { mut fields, .. } => {
            let described = described(&fields, metadata.resolution);
            if described.is_some() {
                fields.retain(|field| field.tag != IMAGE_DESCRIPTION);
            }
            let big_endian = false;
            (described, Own::Tiff { big_endian, fields })
        }
        other => (None, other),
    };
    left_out.names().into_iter().for_each(leave_out);
    described.map_or(Own::None, |ome| Own::Ome(Box::new(ome)))
}
