//! What a GPU decodes from the zlib and gzip chunks of a Zarr array is what the CPU decodes, and what the CPU refuses no GPU accepts.

use crate::support::batch::tree;
use crate::support::gpu_pages::{processed, started};
use crate::support::png::zlib;
use crate::support::png_gpu_decode::{same_source_verdict, source_on_cpu, source_on_gpu};
use crate::support::{Numbers, gpu, placed};
use crate::tiff_gpu::MAKERS;
use gpuimg::internals::formats::{Reader, Reading};
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::gpu::{Choice, Devices};
use gpuimg::internals::ops::Operation;
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::os::Source;
use serde_json::json;
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

/// How an array is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    /// Zarr v2 with the compressor zlib.
    Zlib,
    /// Zarr v3 with the codec gzip.
    Gzip,
    /// Zarr v3 with shards of 2 × 2 chunks, each compressed with gzip.
    GzipInShards,
}

const LAYOUTS: [Layout; 3] = [Layout::Zlib, Layout::Gzip, Layout::GzipInShards];

/// The types of samples: the names of Zarr v3 and v2, the bytes, and whether the order is big-endian.
const TYPES: [(&str, &str, usize, bool); 8] = [
    ("uint8", "|u1", 1, false),
    ("int8", "|i1", 1, false),
    ("uint16", "<u2", 2, false),
    ("uint16", ">u2", 2, true),
    ("int16", ">i2", 2, true),
    ("uint32", "<u4", 4, false),
    ("int32", "<i4", 4, false),
    ("float32", ">f4", 4, true),
];

struct Array {
    layout: Layout,
    sample: (&'static str, &'static str, usize, bool),
    sides: [usize; 2],
    chunk: [usize; 2],
    zlib: fn(&[u8]) -> Vec<u8>,
}

impl Array {
    /// Rows and columns of chunks.
    fn grid(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.sides[axis].div_ceil(self.chunk[axis]))
    }

    /// The chunks from left to right and then down, encoded.
    fn chunks(&self) -> Vec<Vec<u8>> {
        let [down, across] = self.grid();
        let mut numbers = Numbers::new(7);
        let chunk = |place: usize| {
            let count = self.chunk[0] * self.chunk[1] * self.sample.2;
            let noise = numbers.next();
            // Ramps with a little noise: matches, literals, and no value that is not a number.
            let byte = |i: usize| (i / 3 + place * 11) as u8 & 63 | (noise >> (i % 61)) as u8 & 3;
            let bytes: Vec<u8> = (0..count).map(byte).collect();
            match self.layout {
                Layout::Zlib => (self.zlib)(&bytes),
                Layout::Gzip | Layout::GzipInShards => gzip(&bytes, self.zlib),
            }
        };
        (0..down * across).map(chunk).collect()
    }

    /// The files of the store with these chunks.
    fn files(&self, chunks: &[Vec<u8>]) -> Files {
        let [down, across] = self.grid();
        let (name, old_name, _, is_big) = self.sample;
        let mut files = Files::new();
        if self.layout == Layout::Zlib {
            let array = json!({"zarr_format": 2, "shape": self.sides, "chunks": self.chunk, "dtype": old_name,
                "compressor": {"id": "zlib", "level": 1}, "fill_value": 0, "order": "C", "filters": null});
            files.insert(".zarray".into(), array.to_string().into_bytes());
            for (place, chunk) in chunks.iter().enumerate() {
                files.insert(
                    format!("{}.{}", place / across, place % across),
                    chunk.clone(),
                );
            }
            return files;
        }
        let bytes = json!({"name": "bytes", "configuration": {"endian": if is_big { "big" } else { "little" }}});
        let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
        let in_shards = self.layout == Layout::GzipInShards;
        let (file_sides, codecs) = if in_shards {
            let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
            let sharding = json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": self.chunk, "codecs": [bytes, gzip], "index_codecs": index}});
            (self.chunk.map(|side| 2 * side), json!([sharding]))
        } else {
            (self.chunk, json!([bytes, gzip]))
        };
        let array = json!({"zarr_format": 3, "node_type": "array", "shape": self.sides, "data_type": name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": file_sides}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": codecs});
        files.insert("zarr.json".into(), array.to_string().into_bytes());
        if !in_shards {
            for (place, chunk) in chunks.iter().enumerate() {
                files.insert(
                    format!("c/{}/{}", place / across, place % across),
                    chunk.clone(),
                );
            }
            return files;
        }
        for y in 0..down.div_ceil(2) {
            for x in 0..across.div_ceil(2) {
                let (mut shard, mut index) = (Vec::<u8>::new(), Vec::<u8>::new());
                for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let (row, column) = (2 * y + row, 2 * x + column);
                    let entry = if row < down && column < across {
                        let chunk = &chunks[row * across + column];
                        shard.extend(chunk);
                        [(shard.len() - chunk.len()) as u64, chunk.len() as u64]
                    } else {
                        [u64::MAX; 2]
                    };
                    index.extend(entry.map(u64::to_le_bytes).as_flattened());
                }
                shard.extend(index);
                files.insert(format!("c/{y}/{x}"), shard);
            }
        }
        files
    }

    fn store(&self) -> Source {
        store(self.files(&self.chunks()))
    }
}

fn store(files: Files) -> Source {
    Source::store_in_memory(files).expect("a store")
}

/// A gzip member whose deflate data are those of a maker of zlib streams.
pub fn gzip(bytes: &[u8], zlib: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let stream = zlib(bytes);
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    member.extend(&stream[2..stream.len() - 4]);
    member.extend(crc32fast::hash(bytes).to_le_bytes());
    member.extend((bytes.len() as u32).to_le_bytes());
    member
}

/// The reason why a page is left to the CPU on every machine.
fn reason(source: &Source) -> Option<String> {
    let reader = Reader::open(source, &Reading::default()).expect("a store");
    reader.packed().err().map(|unsuited| unsuited.to_string())
}

/// Decodes on both devices. Returns whether the GPU decoded: it cannot if it does not find where the blocks begin.
fn compare(gpu: &Gpu, array: &Array, what: &str) -> bool {
    let source = array.store();
    let expected = source_on_cpu(&source).expect(what);
    match source_on_gpu(gpu, &source) {
        Ok(found) => assert!(found == expected, "{what}: other samples"),
        Err(why) if why.contains("cannot find the deflate block boundaries") => return false,
        Err(why) => panic!("{what}: left to the CPU, since {why}"),
    }
    true
}

#[test]
fn every_layout_of_chunks() {
    let sizes = [
        ([37, 41], [16, 16]),
        ([64, 96], [32, 48]),
        ([129, 67], [200, 100]),
        ([300, 16], [7, 16]),
    ];
    let cases = sizes.len() * TYPES.len() * LAYOUTS.len() * MAKERS.len();
    let Some(gpu) = gpu(cases) else { return };
    let (mut tried, mut left) = (0, 0);
    for (sides, chunk) in sizes {
        for sample in TYPES {
            for layout in LAYOUTS {
                for (name, zlib) in MAKERS {
                    let array = Array {
                        layout,
                        sample,
                        sides,
                        chunk,
                        zlib,
                    };
                    let what = format!("{sides:?} in {chunk:?}, {sample:?}, {layout:?}, {name}");
                    tried += 1;
                    left += usize::from(!compare(gpu, &array, &what));
                }
            }
        }
    }
    assert_eq!(tried, cases);
    assert!(left <= cases / 15, "{left} of {cases} left to the CPU");
}

/// Of one large chunk, the GPU finds the order of the blocks by itself.
#[test]
fn one_chunk_is_the_image() {
    let Some(gpu) = gpu(2) else { return };
    for layout in [Layout::Zlib, Layout::Gzip] {
        let sides = [1200, 1100];
        let array = Array {
            layout,
            sample: TYPES[2],
            sides,
            chunk: sides,
            zlib: |raw| zlib(raw, 6),
        };
        assert!(compare(gpu, &array, &format!("{layout:?}")));
    }
}

#[test]
fn damaged_chunks_are_accepted_only_with_the_samples_of_the_cpu() {
    let variants = 64;
    let Some(gpu) = gpu(LAYOUTS.len() * MAKERS.len() * variants) else {
        return;
    };
    let (mut numbers, mut refused) = (Numbers::new(41), 0);
    for layout in LAYOUTS {
        for (name, zlib) in MAKERS {
            let array = Array {
                layout,
                sample: TYPES[2],
                sides: [201, 190],
                chunk: [64, 100],
                zlib,
            };
            let chunks = array.chunks();
            for variant in 0..variants {
                let mut damaged = chunks.clone();
                let chunk = &mut damaged[variant % chunks.len()];
                let place = match variant % 4 {
                    0 => numbers.next() as usize % 12,
                    1 => chunk.len() - 1 - numbers.next() as usize % 8,
                    _ => numbers.next() as usize % chunk.len(),
                };
                chunk[place] ^= 1 << (numbers.next() % 8);
                let what = format!("{layout:?}, {name}, bit of byte {place}");
                refused += usize::from(!same_source_verdict(
                    gpu,
                    &store(array.files(&damaged)),
                    &what,
                ));
            }
        }
    }
    // Bits of a gzip header that nobody reads are accepted.
    let all = LAYOUTS.len() * MAKERS.len() * variants;
    assert!(refused > all * 3 / 4 && refused < all, "{refused} of {all}");
}

/// A member with another CRC-32 or length, or with something after it.
#[test]
fn trailers_of_gzip_are_checked() {
    let Some(gpu) = gpu(3) else { return };
    let array = Array {
        layout: Layout::Gzip,
        sample: TYPES[2],
        sides: [64, 64],
        chunk: [32, 32],
        zlib: |raw| zlib(raw, 6),
    };
    let chunks = array.chunks();
    assert!(same_source_verdict(
        gpu,
        &store(array.files(&chunks)),
        "whole"
    ));
    let end = chunks[2].len();
    for (what, change) in [
        (
            "CRC-32",
            &(|chunk: &mut Vec<u8>| chunk[end - 8] ^= 1) as &dyn Fn(&mut Vec<u8>),
        ),
        ("length", &|chunk: &mut Vec<u8>| chunk[end - 4] ^= 1),
        ("a byte more", &|chunk: &mut Vec<u8>| chunk.push(0)),
    ] {
        let mut changed = chunks.clone();
        change(&mut changed[2]);
        let found = source_on_gpu(gpu, &store(array.files(&changed)));
        assert!(found.is_err(), "{what}");
    }
}

/// Missing chunks, chunks with samples of several pages, with names in their headers, and of 64 bits.
#[test]
fn other_chunks_are_left_to_the_cpu() {
    let plain = Array {
        layout: Layout::Gzip,
        sample: TYPES[2],
        sides: [6, 4],
        chunk: [3, 4],
        zlib: |raw| zlib(raw, 6),
    };
    let files = plain.files(&plain.chunks());
    assert_eq!(reason(&store(files.clone())), None);
    let changed = |change: &dyn Fn(&mut Files)| {
        let mut files = files.clone();
        change(&mut files);
        reason(&store(files)).unwrap_or_default()
    };
    let found = changed(&|files| drop(files.remove("c/1/0")));
    assert_eq!(found, "not all of its chunks are stored");
    let found = changed(&|files| files.get_mut("c/0/0").unwrap()[3] = 8);
    assert_eq!(
        found,
        "a chunk is not a zlib stream or a gzip member without a name"
    );
    for replaced in [
        &[("\"gzip\"", "\"zstd\"")][..],
        &[("uint16", "float64")],
        &[("[6,4]", "[2,6,4]"), ("[3,4]", "[2,3,4]")],
    ] {
        let found = changed(&|files| {
            let mut description = String::from_utf8(files["zarr.json"].clone()).unwrap();
            for (from, to) in replaced {
                assert!(description.contains(from), "{description}");
                description = description.replace(from, to);
            }
            files.insert("zarr.json".into(), description.into_bytes());
        });
        assert_eq!(
            found, "its chunks are not zlib or gzip data of one page each",
            "{replaced:?}"
        );
    }
}

/// From a store to a file, with the bytes of the CPU.
#[test]
fn stores_give_the_bytes_of_the_cpu() {
    let Some(_) = gpu(9) else { return };
    let (on_gpu, on_cpu) = (started(), Devices::new(Choice::Cpu));
    let ops: [&dyn Operation; 3] = [
        &Normalize::default(),
        &Symmetry::Rotate90,
        &Symmetry::FlipHorizontal,
    ];
    for layout in LAYOUTS {
        let array = Array {
            layout,
            sample: TYPES[2],
            sides: [1200, 1001],
            chunk: [256, 256],
            zlib: |raw| zlib(raw, 6),
        };
        let files = array.files(&array.chunks()).into_iter();
        let files: Vec<(String, Vec<u8>)> = files
            .map(|(name, bytes)| (format!("in.zarr/{name}"), bytes))
            .collect();
        let root = placed(&files);
        for op in ops {
            let what = format!("{}, {layout:?}", op.properties().name);
            let outputs = ["gpu.zarr", "cpu.zarr"].map(|name| root.path().join(name));
            let input = root.path().join("in.zarr");
            let done = processed(op, &input, &outputs[0], &on_gpu).expect(&what);
            assert!(
                done.device.contains("was decoded"),
                "{what}: {:?}",
                done.notes
            );
            processed(op, &input, &outputs[1], &on_cpu).expect(&what);
            let [found, expected] = outputs.map(|store| tree(&store));
            assert!(found == expected, "{what}");
        }
    }
}
