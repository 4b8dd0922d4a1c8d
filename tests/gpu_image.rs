//! Images in the memory of a GPU: their samples, metadata, sums and files are those of the CPU.

use crate::support::{counted, folder, gpu, sample};
use gpuimg::{
    Device, GpuArray, GpuImage, GpuReader, Image, Operations, ReadOptions, SampleType, WriteOptions,
};

/// Real images, one of them with several pages.
const FILES: [&str; 4] = [
    "nuclei-stack.tif",
    "nuclei.tif",
    "photo-rgb16.png",
    "thermal.tif",
];

fn image(width: usize, height: usize, channels: usize) -> Image {
    let count = width * height * channels;
    let samples = (0..count).map(|i| (i * 7919 % 60000 + i / 64) as u16);
    Image::new(width, height, channels, samples.collect::<Vec<u16>>()).expect("an image")
}

#[test]
fn a_cpu_has_no_images_of_a_gpu() {
    for device in [Device::cpu(), Device::auto()] {
        let error = GpuImage::upload(image(3, 2, 1), &device).expect_err("no GPU");
        let wanted =
            format!("an image in the memory of a GPU needs the device gpu or gpu:N, not {device}");
        assert_eq!(error.to_string(), wanted);
    }
}

/// Files of this image, large enough for a GPU to decode, and a small one.
fn written(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let large = image(1280, 1024, 1);
    let colours = image(1100, 1000, 3);
    let files: [(&str, &Image, WriteOptions); 8] = [
        ("grey.png", &large, WriteOptions::new()),
        ("colours.png", &colours, WriteOptions::new()),
        (
            "deflate.tif",
            &large,
            WriteOptions::new().tiff("deflate").expect("deflate"),
        ),
        (
            "lzw.tif",
            &colours,
            WriteOptions::new().tiff("lzw").expect("LZW"),
        ),
        (
            "none.tif",
            &large,
            WriteOptions::new().tiff("none").expect("none"),
        ),
        ("grey.npy", &large, WriteOptions::new()),
        ("small.png", &image(31, 17, 4), WriteOptions::new()),
        ("small.pgm", &image(5, 7, 1), WriteOptions::new()),
    ];
    let write = |(name, image, options): (&str, &Image, WriteOptions)| {
        let path = folder.join(name);
        gpuimg::write_stack(&path, std::slice::from_ref(image), &options).expect("written");
        path
    };
    files.into_iter().map(write).collect()
}

#[test]
fn files_are_read_into_the_memory_of_a_gpu() {
    let folder = folder(&[]);
    let mut files = written(folder.path());
    files.extend(FILES.map(sample));
    if gpu(files.len()).is_none() {
        return;
    }
    let device = Device::gpu();
    // Twice, so that streams and memory are used again.
    for path in files.iter().chain(&files) {
        // The description of a stack is that of one page afterwards.
        let on_cpu = gpuimg::read(path).expect("read");
        let on_cpu = Operations::new().run(on_cpu, &Device::cpu()).expect("run");
        let on_gpu = GpuImage::read(path, &ReadOptions::new(), &device).expect("read");
        assert_eq!(
            on_gpu.download().expect("copied"),
            on_cpu,
            "{}",
            path.display()
        );
        assert_eq!(on_gpu.metadata(), on_cpu.metadata(), "{}", path.display());
        assert_eq!(on_gpu.path(), Some(path.as_path()));
    }
    let missing = folder.path().join("missing.png");
    let error = GpuImage::read(&missing, &ReadOptions::new(), &device).expect_err("missing");
    assert_eq!(
        error.to_string(),
        gpuimg::read(&missing).expect_err("missing").to_string()
    );
}

#[test]
fn operations_on_a_gpu_image_give_what_the_cpu_gives() {
    let chains = [
        "normalize",
        "normalize --clip 1:99 + rotate 90",
        "rotate 180",
        "transpose",
        "flip vertical",
        "normalize --per-channel",
        "crop 10,20,21x17",
        "normalize --curve gamma:2.2",
        "normalize --range zscale + transpose",
        "normalize --range stf",
    ];
    let images = [
        image(64, 48, 1),
        image(61, 37, 3),
        image(1030, 1021, 1),
        image(33, 47, 4),
    ];
    if gpu(chains.len() * images.len()).is_none() {
        return;
    }
    let (device, cpu) = (Device::gpu(), Device::cpu());
    for image in &images {
        let resident = GpuImage::upload(image.clone(), &device).expect("copied");
        for chain in chains {
            let operations: Operations = chain.parse().expect("a chain");
            let result = operations.run_on_gpu(&resident).expect("run");
            let wanted = operations.run(image.clone(), &cpu).expect("run");
            assert_eq!(
                result.download().expect("copied"),
                wanted,
                "{chain} {}",
                image.shape()
            );
            assert_eq!(result.report().ranges, wanted.report().ranges, "{chain}");
        }
        // The image itself has not changed.
        assert_eq!(resident.download().expect("copied"), *image);
        assert_eq!(
            resident.sum(None).expect("sums"),
            gpuimg::sum(image, &cpu).expect("sums")
        );
        let histogram = gpuimg::histogram(image, &cpu).expect("counts");
        assert_eq!(resident.histogram().expect("counts"), histogram);
        for format in ["png", "tiff"] {
            let format = format.parse().expect("a format");
            let bytes = resident
                .encode(format, &WriteOptions::new())
                .expect("encoded");
            let decoded = gpuimg::decode(bytes).expect("decoded");
            assert_eq!(decoded.to_bytes(), image.to_bytes());
        }
    }
    // Results that are larger than their input.
    let grey = GpuImage::upload(images[0].clone(), &device).expect("copied");
    for chain in [
        "lut viridis",
        "debayer RGGB",
        "debayer GRBG --method malvar + rotate 90",
    ] {
        let operations: Operations = chain.parse().expect("a chain");
        let result = operations.run_on_gpu(&grey).expect("run");
        let wanted = operations.run(images[0].clone(), &cpu).expect("run");
        assert_eq!(result.download().expect("copied"), wanted, "{chain}");
    }
    let colours = GpuImage::upload(images[1].clone(), &device).expect("copied");
    let channel: Operations = "convert --channel 2".parse().expect("a channel");
    let error = channel
        .run_on_gpu(&colours)
        .expect_err("no kernel")
        .to_string();
    assert!(
        error.contains("GPU") && error.contains("--device cpu"),
        "{error}"
    );
}

const TYPES: [SampleType; 8] = {
    use SampleType::{F32, F64, I8, I16, I32, U8, U16, U32};
    [U8, I8, U16, I16, U32, I32, F32, F64]
};

/// An image of 40×30 pixels with three channels.
fn image_of(sample_type: SampleType) -> Image {
    let fill = |bytes: &mut [u8]| {
        for (i, byte) in bytes.iter_mut().enumerate() {
            // Finite numbers of any type.
            *byte = (i * 37 % 64) as u8;
        }
    };
    Image::of_bytes(40, 30, 3, sample_type, fill).expect("an image")
}

#[test]
fn arrays_of_others_are_copied_from_the_memory_of_a_gpu() {
    if gpu(3 * TYPES.len()).is_none() {
        return;
    }
    let device = Device::gpu();
    for sample_type in TYPES {
        let image = image_of(sample_type);
        let resident = GpuImage::upload(image.clone(), &device).expect("copied");
        for reader in [GpuReader::DefaultStream, GpuReader::AnyStream] {
            let array = GpuArray {
                address: resident.address(reader).expect("an address"),
                sides: [30, 40, 3],
                sample_type,
                strides: [120, 3, 1].map(|samples| samples * sample_type.bytes() as isize),
                stream: Some(1),
            };
            // SAFETY: `resident` keeps its memory, and the default stream exists.
            let copy = unsafe { GpuImage::copy_array(&array, &device) }.expect("copied");
            assert_eq!(copy.download().expect("copied"), image, "{sample_type}");
            let part = GpuArray {
                sides: [29, 20, 3],
                address: array.address + array.strides[0] as u64,
                stream: None,
                ..array
            };
            // SAFETY: as above.
            let part = unsafe { GpuImage::copy_array(&part, &device) }.expect("copied");
            let crop: Operations = "crop 0,1,20x29".parse().expect("a crop");
            let wanted = crop.run(image.clone(), &Device::cpu()).expect("cropped");
            let found = part.download().expect("copied");
            assert_eq!(found.to_bytes(), wanted.to_bytes(), "{sample_type}");
        }
    }
    let array = GpuArray {
        address: (&raw const device).addr() as u64,
        sides: [1, 1, 1],
        sample_type: SampleType::U16,
        strides: [2; 3],
        stream: None,
    };
    // SAFETY: the memory of the host, which is refused, is allocated.
    let error = unsafe { GpuImage::copy_array(&array, &device) }.expect_err("host memory");
    assert_eq!(error.to_string(), "the array is not in the memory of a GPU");
}

#[test]
fn arrays_with_any_strides_are_copied_from_and_to_the_memory_of_a_gpu() {
    if gpu(2 * TYPES.len()).is_none() {
        return;
    }
    let device = Device::gpu();
    for sample_type in TYPES {
        let image = image_of(sample_type);
        let resident = GpuImage::upload(image.clone(), &device).expect("copied");
        let item = sample_type.bytes() as isize;
        // Backwards from the last pixel.
        let array = GpuArray {
            address: resident.address(GpuReader::AnyStream).expect("an address")
                + (image.to_bytes().len() as u64 - 3 * item as u64),
            sides: [30, 40, 3],
            sample_type,
            strides: [-120 * item, -3 * item, item],
            stream: Some(1),
        };
        // SAFETY: `resident` keeps its memory, and the default stream exists.
        let copy = unsafe { GpuImage::copy_array(&array, &device) }.expect("copied");
        let turned = gpuimg::Image::of_bytes(40, 30, 3, sample_type, |bytes| {
            for (pixel, from) in bytes
                .chunks_mut(3 * item as usize)
                .zip(image.to_bytes().chunks(3 * item as usize).rev())
            {
                pixel.copy_from_slice(from);
            }
        });
        assert_eq!(
            copy.download().expect("copied"),
            turned.expect("an image"),
            "{sample_type}"
        );
        let target = GpuImage::upload(image.clone(), &device).expect("copied");
        let dense = GpuArray {
            address: target.address(GpuReader::AnyStream).expect("an address"),
            strides: [120 * item, 3 * item, item],
            ..array
        };
        // SAFETY: `target` keeps its memory, which nothing else uses.
        unsafe { copy.copy_to(&dense) }.expect("copied");
        // SAFETY: as above.
        let again = unsafe { GpuImage::copy_array(&dense, &device) }.expect("copied");
        assert_eq!(
            again.download().expect("copied"),
            copy.download().expect("copied")
        );
        let narrow = GpuArray {
            sides: [30, 39, 3],
            ..dense
        };
        // SAFETY: as above.
        let error = unsafe { copy.copy_to(&narrow) }.expect_err("other sides");
        assert!(error.to_string().contains("30 × 39 × 3 samples"), "{error}");
    }
}

#[test]
fn images_come_and_go_on_many_threads() {
    if gpu(16).is_none() {
        return;
    }
    let device = Device::gpu();
    let rotate: Operations = "normalize + rotate 90".parse().expect("a chain");
    let images: Vec<Image> = (1..9).map(|i| image(100 * i, 70 * i, 1)).collect();
    let wanted: Vec<Image> = images
        .iter()
        .map(|image| rotate.run(image.clone(), &Device::cpu()).expect("run"))
        .collect();
    counted("16 threads with 20 images each");
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (device, rotate, images, wanted) = (&device, &rotate, &images, &wanted);
            scope.spawn(move || {
                for round in 0..20 {
                    let index = (thread * 5 + round) % images.len();
                    let resident = GpuImage::upload(images[index].clone(), device).expect("copied");
                    let _ = resident
                        .address(GpuReader::DefaultStream)
                        .expect("an address");
                    let result = rotate.run_on_gpu(&resident).expect("run");
                    drop(resident);
                    assert_eq!(result.download().expect("copied"), wanted[index]);
                }
            });
        }
    });
}
