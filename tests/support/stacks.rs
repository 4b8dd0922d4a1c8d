//! Files of several pages, and what is in them.

use crate::support::tiff_images::written;
use gpuimg::internals::formats::tiff::{Compression, TiffEncoder};
use gpuimg::internals::formats::{Encoder, PageSurvey};
use gpuimg::internals::image::Image;
use gpuimg::internals::image::metadata::Metadata;
use std::borrow::Cow;
use tiff::decoder::{Decoder, DecodingResult};
use tiff::tags::Tag;

/// A page's size, samples and description.
pub type Page = ((u32, u32), Vec<u16>, Option<String>);

/// Every page, as the `tiff` crate reads it.
pub fn pages(file: &[u8]) -> Vec<Page> {
    let mut decoder = Decoder::new(std::io::Cursor::new(file)).unwrap();
    let mut pages = Vec::new();
    loop {
        let size = decoder.dimensions().unwrap();
        let told = decoder.find_tag(Tag::ImageDescription).unwrap();
        let told = told.map(|value| value.into_string().unwrap());
        let samples = match decoder.read_image().unwrap() {
            DecodingResult::U16(samples) => samples,
            DecodingResult::U8(samples) => samples.into_iter().map(u16::from).collect(),
            _ => panic!("other samples"),
        };
        pages.push((size, samples, told));
        if !decoder.more_images() {
            return pages;
        }
        decoder.next_image().unwrap();
    }
}

/// A file of these pages.
pub fn stack(images: &[Image], metadata: &Metadata) -> Vec<u8> {
    written(|target| {
        let pages = images.iter().map(|image| PageSurvey::from(image.shape()));
        let pages: Vec<PageSurvey> = pages.collect();
        let mut writer = TiffEncoder::new(target, Compression::None, &pages);
        for image in images {
            writer.page(Cow::Borrowed(image), metadata)?;
        }
        Ok(writer.length())
    })
    .unwrap()
}

pub fn stretched(values: &[u16], (min, max): (u16, u16), full: u32) -> Vec<u16> {
    let d = u32::from(max - min);
    let one = |&p: &u16| ((u32::from(p - min) * full + d / 2) / d) as u16;
    values.iter().map(one).collect()
}

pub fn range(values: &[u16]) -> (u16, u16) {
    (*values.iter().min().unwrap(), *values.iter().max().unwrap())
}
