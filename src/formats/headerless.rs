//! Samples without a header (`--raw`): the command line says what a header would.

use super::format::{Decoder, Format};
use super::raster::{Layout, RasterDecoder};
use super::raw::Order;
use crate::image::metadata::Metadata;
use crate::image::{Depth, Shape};
use crate::os::Source;
use anyhow::{Result, bail, ensure};
use std::fmt;
use std::str::FromStr;

/// What `--raw` says of all inputs: `640x480:u16le`, `640x480x3:u8:25+1024`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headerless {
    width: u64,
    height: u64,
    channels: usize,
    depth: Depth,
    signed: bool,
    big_endian: bool,
    /// The number of pages; without it the file is full of them.
    pages: Option<usize>,
    /// Bytes before the first sample.
    skip: u64,
}

/// The names of the types of more than 8 bits without the byte order, and those of 8 bits; with the
/// depth and the sign of integers.
const TYPES: [(&str, Depth, bool); 8] = [
    ("u8", Depth::Eight, false),
    ("i8", Depth::Eight, true),
    ("u16", Depth::Sixteen, false),
    ("i16", Depth::Sixteen, true),
    ("u32", Depth::ThirtyTwo, false),
    ("i32", Depth::ThirtyTwo, true),
    ("f32", Depth::Float, false),
    ("f64", Depth::Double, false),
];

/// The endings of their names where the least significant byte is first, and where the most is.
const ORDERS: [&str; 2] = ["le", "be"];

impl FromStr for Headerless {
    type Err = String;

    fn from_str(text: &str) -> Result<Headerless, String> {
        let number = |text: &str| -> Result<u64, String> {
            let number = text.parse().ok().filter(|_| !text.starts_with('+'));
            number.ok_or(format!("'{text}' is not a number"))
        };
        let (rest, skip) = match text.split_once('+') {
            Some((rest, skip)) => (rest, number(skip)?),
            None => (text, 0),
        };
        let mut parts = rest.split(':');
        let sides = parts.next().unwrap_or_default();
        let sides = sides
            .split('x')
            .map(number)
            .collect::<Result<Vec<u64>, String>>()?;
        let (width, height, channels) = match sides[..] {
            [width, height] => (width, height, 1),
            [width, height, channels @ 1..=4] => (width, height, channels as usize),
            _ => {
                return Err(
                    "expected WIDTHxHEIGHT or WIDTHxHEIGHTxCHANNELS (1 to 4 channels) first".into(),
                );
            }
        };
        if width == 0 || height == 0 {
            return Err("width and height must not be 0".into());
        }
        let name = parts.next().unwrap_or_default();
        let all = TYPES
            .iter()
            .flat_map(|kind| ORDERS.map(|order| (kind, order)));
        let mut all =
            all.map(|(kind, order)| (type_name(kind.0, kind.1, order), kind, order == ORDERS[1]));
        let Some((_, &(_, depth, signed), big_endian)) = all.find(|(known, ..)| known == name)
        else {
            return Err(format!(
                "unknown sample type '{name}': expected u8, i8, or u16, i16, u32, i32, f32, f64 followed by le or be"
            ));
        };
        let pages = match parts.next().map(number).transpose()? {
            Some(0) => return Err("0 pages".into()),
            pages => pages.map(|pages| pages as usize),
        };
        match parts.next() {
            Some(more) => Err(format!("unexpected ':{more}'")),
            None => Ok(Headerless {
                width,
                height,
                channels,
                depth,
                signed,
                big_endian,
                pages,
                skip,
            }),
        }
    }
}

impl fmt::Display for Headerless {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let own = (self.depth, self.signed);
        let kind = TYPES
            .iter()
            .find(|(_, depth, signed)| (*depth, *signed) == own);
        let order = ORDERS[usize::from(self.big_endian)];
        let kind = kind.map_or(String::new(), |kind| type_name(kind.0, kind.1, order));
        write!(f, "{}x{}x{}:{kind}", self.width, self.height, self.channels)?;
        if let Some(pages) = self.pages {
            write!(f, ":{pages}")?;
        }
        write!(f, "+{}", self.skip)
    }
}

/// The name of a type in a byte order, of which 8 bits have none.
fn type_name(name: &str, depth: Depth, order: &str) -> String {
    match depth {
        Depth::Eight => name.into(),
        _ => format!("{name}{order}"),
    }
}

impl Headerless {
    /// Bytes of a frame in a stream: of one page, or of as many as were named.
    ///
    /// # Errors
    /// Pixels that memory cannot address, and bytes to skip, of which a stream has none.
    pub fn page_bytes(&self) -> Result<u64> {
        ensure!(
            self.skip == 0 && self.pages.is_none_or(|pages| pages == 1),
            "--raw with pages or bytes to skip is for files: frames of a stream come one after the other"
        );
        let shape = Shape::checked(self.width, self.height, self.channels, self.depth)?;
        Ok(Layout::new(shape, 0).page_bytes())
    }

    /// A decoder for a file of such samples.
    ///
    /// # Errors
    /// A file that is too short, or whose length does not tell how many pages it has.
    pub fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        let shape = Shape::checked(self.width, self.height, self.channels, self.depth)?;
        let mut layout = Layout::new(shape, self.skip);
        let (there, page) = (source.len().saturating_sub(self.skip), layout.page_bytes());
        layout.pages = match self.pages {
            Some(pages) => pages,
            None => {
                ensure!(
                    there.is_multiple_of(page) || there < page || damaged,
                    "{there} bytes are not a whole number of pages of {page} bytes (a number of pages \
                     after the type, or bytes to skip: --raw WxH:TYPE:PAGES+SKIP)"
                );
                usize::try_from(there / page)?.max(1)
            }
        };
        layout.order = Order::new(self.big_endian);
        layout.toggled = self.signed;
        layout.metadata = Metadata {
            signed: self.signed,
            ..Metadata::default()
        };
        Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
    }
}

/// The format of such files, which is none of the list: nothing tells them, and none are written.
pub static FORMAT: Format = Format {
    name: "raw",
    id: "raw",
    title: "Samples without a header",
    extensions: &["raw"],
    decoder: |_, _| bail!("only --raw describes the content of such a file"),
    ..Format::DEFAULTS
};
