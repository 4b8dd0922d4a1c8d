//! TIFF and PNM: encoding and decoding on one core and on all, beside the `tiff` and `image`
//! crates and a plain copy of the same bytes. `cargo bench --bench tiff -- [SIDE]`; the files are
//! in the folder for temporary files, so in the page cache when they are read.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a program for the developer"
)]

use gpuimg::codec::tiff::Compression;
use gpuimg::codec::{pnm, tiff};
use gpuimg::files::{Source, Target};
use gpuimg::image::{Depth, Image, Samples, Shape};
use rayon::prelude::*;
use std::io::Cursor;
use std::path::Path;
use std::time::Instant;

/// The best of a few runs, in seconds.
fn best<T>(mut run: impl FnMut() -> T) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            let result = run();
            let time = start.elapsed().as_secs_f64();
            drop(result);
            time
        })
        .fold(f64::INFINITY, f64::min)
}

/// A smooth field with the noise of a camera: the deviation is the root of the signal.
fn camera(side: u64, channels: usize) -> Image {
    let shape = Shape::checked(side, side, channels, Depth::Sixteen).unwrap();
    let mut samples = vec![0u16; shape.samples()];
    samples
        .par_chunks_mut(shape.row())
        .enumerate()
        .for_each(|(y, row)| {
            let mut state = y as u64 + 1;
            for (i, sample) in row.iter_mut().enumerate() {
                let x = (i / channels) as f64 / side as f64;
                let level =
                    20000.0 + 15000.0 * (7.0 * x).sin() * (5.0 * y as f64 / side as f64).cos();
                // Four uniform numbers make a near-normal one.
                let noise: f64 = (0..4)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(1442695040888963407);
                        (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
                    })
                    .sum();
                *sample = (level + noise * 1.7 * level.sqrt()) as u16;
            }
        });
    Image::new(shape, samples.into())
}

fn write(path: &Path, encode: impl Fn(&Target) -> anyhow::Result<u64>) -> u64 {
    let target = Target::create(path, true).unwrap();
    let len = encode(&target).unwrap();
    target.commit(len).unwrap();
    len
}

fn theirs(image: &Image, compression: ::tiff::encoder::Compression) -> Vec<u8> {
    use ::tiff::encoder::{Predictor, TiffEncoder, colortype};
    let shape = image.shape();
    let (width, height) = (shape.width as u32, shape.height as u32);
    let predictor = match compression {
        ::tiff::encoder::Compression::Uncompressed => Predictor::None,
        _ => Predictor::Horizontal,
    };
    let Samples::U16(samples) = image.samples() else {
        unreachable!("the pictures here are of 16 bits")
    };
    let mut bytes = Vec::with_capacity(2 * shape.bytes());
    let mut encoder = TiffEncoder::new(Cursor::new(&mut bytes))
        .unwrap()
        .with_compression(compression)
        .with_predictor(predictor);
    if shape.channels == 1 {
        encoder
            .write_image::<colortype::Gray16>(width, height, samples)
            .unwrap();
    } else {
        encoder
            .write_image::<colortype::RGB16>(width, height, samples)
            .unwrap();
    }
    bytes
}

fn main() {
    let side = std::env::args().skip(1).find_map(|side| side.parse().ok());
    let side: u64 = side.unwrap_or(4096);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.tif");
    let pool = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    };
    let (one, all) = (pool(1), pool(0));
    println!(
        "{side}² 16 bits, MB/s of samples; 1 core, then {} cores",
        all.current_num_threads()
    );

    for (kind, image) in [("grey", camera(side, 1)), ("RGB", camera(side * 9 / 16, 3))] {
        let bytes = image.samples().as_bytes();
        let rate = |time: f64| bytes.len() as f64 / time / 1e6;
        println!(
            "\n{kind:5} {:10} {:>9} {:>9} {:>9} {:>9}  of raw",
            "", "encode", "", "decode", ""
        );
        let row =
            |name: &str, encode: &(dyn Fn() -> u64 + Sync), decode: &(dyn Fn() -> Image + Sync)| {
                let len = encode();
                let times = [&one, &all].map(|pool| rate(pool.install(|| best(encode))));
                let back = [&one, &all].map(|pool| rate(pool.install(|| best(decode))));
                println!(
                    "{:5} {name:10} {:9.0} {:9.0} {:9.0} {:9.0}  {:.4}",
                    "",
                    times[0],
                    times[1],
                    back[0],
                    back[1],
                    len as f64 / bytes.len() as f64
                );
            };
        for (name, compression) in [
            ("none", Compression::None),
            ("deflate", Compression::Deflate),
            ("lzw", Compression::Lzw),
            ("zstd", Compression::Zstd),
        ] {
            row(
                name,
                &|| write(&path, |target| tiff::encode(&image, compression, target)),
                &|| tiff::decode(&Source::open(&path).unwrap()).unwrap(),
            );
        }
        row(
            "pnm",
            &|| write(&path, |target| pnm::encode(&image, target)),
            &|| pnm::decode(&Source::open(&path).unwrap()).unwrap(),
        );

        use ::tiff::encoder::{Compression as Theirs, compression::DeflateLevel};
        for (name, compression) in [
            ("none", Theirs::Uncompressed),
            ("deflate", Theirs::Deflate(DeflateLevel::Fast)),
            ("lzw", Theirs::Lzw),
        ] {
            let packed = theirs(&image, compression);
            let encode = rate(best(|| theirs(&image, compression)));
            let decode = rate(best(|| {
                ::tiff::decoder::Decoder::new(Cursor::new(&packed))
                    .unwrap()
                    .with_limits(::tiff::decoder::Limits::unlimited())
                    .read_image()
                    .unwrap()
            }));
            let ratio = packed.len() as f64 / bytes.len() as f64;
            println!(
                "{:5} tiff crate, {name:8} in memory: encode {encode:.0}, decode {decode:.0}, {ratio:.4}",
                ""
            );
            std::fs::write(&path, &packed).unwrap();
            let ours = [&one, &all].map(|pool| {
                rate(pool.install(|| best(|| tiff::decode(&Source::open(&path).unwrap()).unwrap())))
            });
            println!(
                "{:5} the same file decoded here: {:.0}, {:.0}",
                "", ours[0], ours[1]
            );
        }
        let fresh = rate(best(|| bytes.to_vec()));
        let mut there = bytes.to_vec();
        let warm = rate(best(|| there.copy_from_slice(bytes)));
        let both = rate(all.install(|| {
            best(|| {
                there
                    .par_chunks_mut(1 << 20)
                    .zip(bytes.par_chunks(1 << 20))
                    .for_each(|(to, from)| to.copy_from_slice(from))
            })
        }));
        println!(
            "{:5} copies: into fresh memory {fresh:.0}, into touched {warm:.0}, on all cores {both:.0}",
            ""
        );
    }
}
