//! HDF5 and NeXus, read: datasets of 2 to 5 axes with integers of 8, 16 and 32 bits or floating point of 32 and 64. The last two
//! axes are the rows and columns of a page; the others become pages, the last of them fastest.
//!
//! The crate `hdf5-reader` reads the structure of the file and the chunks (deflate, shuffle, Fletcher-32, szip, n-bit and
//! scale-offset); `filters` adds bitshuffle, LZ4, Blosc and Zstandard. It reads parts of a file at any offset, and refuses chunks and headers above a limit before it takes memory.
//! `hdf5-pure` was not taken: it is four times as large, most of it for writing.

mod datasets;
mod decode;
mod filters;
mod library;

use super::format::{Capabilities, Format};

/// Hierarchical Data Format 5.
pub static FORMAT: Format = Format {
    name: "HDF5",
    id: "hdf5",
    title: "HDF5 and NeXus; FILE:/entry/data is the dataset /entry/data",
    extensions: &["h5", "hdf5", "nxs", "hdf"],
    capabilities: Capabilities {
        channels: &[1],
        alpha: &[],
        ..Capabilities::ALL_SAMPLES
    },
    // A file may have a block of the user's before its signature, as MATLAB writes it.
    sniff: |head| {
        [0, 512]
            .iter()
            .any(|&at| head.get(at..at + 8) == Some(b"\x89HDF\r\n\x1a\n"))
    },
    decoder: |source, damaged| Ok(Box::new(decode::Hdf5Decoder::open(source, damaged)?)),
    addresses: Some(datasets::addresses),
    ..Format::DEFAULTS
};
