//! Small Zarr stores: those that gpuimg writes, and arrays of Zarr v2 and v3 by hand.

use super::images;
use crate::store::{Files, packed};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use gpuimg::internals::formats::{self, encode, zarr};
use gpuimg::internals::image::Image;
use gpuimg::internals::os::Target;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Stores of every kind.
pub fn of_zarr() -> Vec<Vec<u8>> {
    let images = images(true).into_iter();
    let mut all: Vec<Vec<u8>> = images
        .filter(|image| [1, 3].contains(&image.shape().channels))
        .flat_map(|image| {
            [
                (zarr::Compression::None, None),
                (zarr::Compression::Zstd, Some(8)),
                (zarr::Compression::Blosc, None),
            ]
            .map(|(compression, shard)| written(&image, compression, shard))
        })
        .collect();
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes every byte");
        encoder.finish().expect("memory takes every byte")
    };
    let zlib = |bytes: &[u8]| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes every byte");
        encoder.finish().expect("memory takes every byte")
    };
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).expect("it is compressed");
    let chunk: Vec<u8> = (0..48).collect();
    let blosc = |inner: &str| {
        format!(r#"{{"id":"blosc","cname":"{inner}","clevel":5,"shuffle":1,"blocksize":0}}"#)
    };
    for (compressor, bytes) in [
        ("null".into(), chunk.clone()),
        (r#"{"id":"gzip","level":1}"#.into(), gzip(&chunk)),
        (r#"{"id":"zlib","level":1}"#.into(), zlib(&chunk)),
        (r#"{"id":"zstd","level":1}"#.into(), zstd(&chunk)),
        (blosc("lz4"), stored_blosc(&chunk)),
        (blosc("zstd"), blosc_of(4, &zstd(&chunk), chunk.len())),
        (blosc("zlib"), blosc_of(3, &zlib(&chunk), chunk.len())),
        (
            blosc("lz4"),
            blosc_of(1, &[&[0xF0, 33][..], &chunk].concat(), chunk.len()),
        ),
        (
            blosc("blosclz"),
            blosc_of(
                0,
                &[&[31][..], &chunk[..32], &[15], &chunk[32..]].concat(),
                chunk.len(),
            ),
        ),
    ] {
        let array = format!(
            r#"{{"zarr_format":2,"shape":[2,5,4],"chunks":[1,6,4],"dtype":"<u2","compressor":{compressor},"fill_value":7,"order":"C","filters":null,"dimension_separator":"/"}}"#
        );
        let group = r#"{"multiscales":[{"version":"0.4","axes":[{"name":"z","type":"space"},{"name":"y","type":"space"},{"name":"x","type":"space"}],"datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1,0.5,0.5]}]}]}]}"#;
        all.push(store(&[
            (".zgroup", br#"{"zarr_format":2}"#),
            (".zattrs", group.as_bytes()),
            ("0/.zarray", array.as_bytes()),
            ("0/0/0/0", &bytes),
        ]));
        all.push(store(&[
            (".zarray", array.replace("\"/\"", "\".\"").as_bytes()),
            ("0.0.0", &bytes),
        ]));
    }
    let array = |codecs: &str| {
        format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":[5,4],"data_type":"int16","chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[6,4]}}}},"chunk_key_encoding":{{"name":"v2"}},"fill_value":-5,"codecs":[{{"name":"bytes","configuration":{{"endian":"big"}}}}{codecs}]}}"#
        )
    };
    for (codecs, bytes) in [
        ("", chunk.clone()),
        (
            r#",{"name":"gzip","configuration":{"level":1}}"#,
            gzip(&chunk),
        ),
        (r#",{"name":"crc32c"}"#, [&chunk[..], &[0; 4]].concat()),
        (
            r#",{"name":"blosc","configuration":{"cname":"lz4"}}"#,
            stored_blosc(&chunk),
        ),
    ] {
        all.push(store(&[
            ("zarr.json", array(codecs).as_bytes()),
            ("0.0", &bytes),
        ]));
    }
    all
}

fn store(files: &[(&str, &[u8])]) -> Vec<u8> {
    let files = files
        .iter()
        .map(|(name, bytes)| (name.to_string(), bytes.to_vec()));
    packed(&files.collect())
}

/// The store that gpuimg writes of an image, with two levels.
fn written(image: &Image, compression: zarr::Compression, shard: Option<usize>) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seed.zarr");
    let options = formats::Options {
        zarr: zarr::Options {
            compression,
            chunk: 4,
            shard,
            levels: Some(2),
        },
        ..Default::default()
    };
    let write = || -> anyhow::Result<()> {
        let target = Target::create(&path, false)?;
        let length = encode(image, &zarr::FORMAT, &options, &target)?;
        target.commit(length)?;
        Ok(())
    };
    write().expect("every image here can be written");
    let mut files = Files::new();
    add_files(&path, "", &mut files);
    packed(&files)
}

/// Adds the files below a folder, whose names begin with `prefix`.
fn add_files(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            add_files(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(&path).expect("a file"));
        }
    }
}

/// A Blosc buffer with these flags: version, flags, the size of a sample, and the numbers of bytes.
fn blosc_header(flags: u8, size: usize, stored: usize) -> Vec<u8> {
    let numbers = [size, size, stored].map(|number| (number as u32).to_le_bytes());
    [&[2, 1, flags, 2][..], numbers.as_flattened()].concat()
}

fn stored_blosc(bytes: &[u8]) -> Vec<u8> {
    [
        blosc_header(2, bytes.len(), 16 + bytes.len()),
        bytes.to_vec(),
    ]
    .concat()
}

/// A Blosc buffer of one block that one stream has, compressed by the method with this number.
fn blosc_of(method: u8, stream: &[u8], size: usize) -> Vec<u8> {
    let mut buffer = blosc_header(method << 5 | 17, size, 24 + stream.len());
    buffer.extend_from_slice(&20u32.to_le_bytes());
    buffer.extend_from_slice(&(stream.len() as u32).to_le_bytes());
    buffer.extend_from_slice(stream);
    buffer
}
