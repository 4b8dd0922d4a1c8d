//! Samples without a header (`--raw`): the command line says what a header would.

use super::format::{Capabilities, Decoder, Format};
use super::raster::{self, Layout, RasterDecoder};
use super::raw::Order;
use crate::files::Source;
use crate::image::{Depth, Shape};
use crate::metadata::Metadata;
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

/// The names of the types, with the depth, the sign, and whether the most significant byte is first.
const TYPES: [(&str, Depth, bool, bool); 6] = [
    ("u8", Depth::Eight, false, false),
    ("i8", Depth::Eight, true, false),
    ("u16le", Depth::Sixteen, false, false),
    ("u16be", Depth::Sixteen, false, true),
    ("i16le", Depth::Sixteen, true, false),
    ("i16be", Depth::Sixteen, true, true),
];

impl FromStr for Headerless {
    type Err = String;

    fn from_str(text: &str) -> Result<Headerless, String> {
        let number = |text: &str| -> Result<u64, String> {
            let number = text.parse().ok().filter(|_| !text.starts_with('+'));
            number.ok_or(format!("'{text}' is no number"))
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
                    "it begins with WIDTHxHEIGHT, or WIDTHxHEIGHTxCHANNELS (1 to 4)".into(),
                );
            }
        };
        if width == 0 || height == 0 {
            return Err("a side of 0 pixels".into());
        }
        let name = parts.next().unwrap_or_default();
        let kind = TYPES.iter().find(|(known, ..)| *known == name);
        let Some(&(_, depth, signed, big_endian)) = kind else {
            let known = TYPES.map(|(known, ..)| known).join(", ");
            return Err(format!("'{name}' is no type of samples: {known}"));
        };
        let pages = match parts.next().map(number).transpose()? {
            Some(0) => return Err("0 pages".into()),
            pages => pages.map(|pages| pages as usize),
        };
        match parts.next() {
            Some(more) => Err(format!("':{more}' is too much")),
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
        let own = (self.depth, self.signed, self.big_endian);
        let kind = TYPES
            .iter()
            .find(|(_, depth, signed, big)| (*depth, *signed, *big) == own);
        let kind = kind.map_or("", |(name, ..)| name);
        write!(f, "{}x{}x{}:{kind}", self.width, self.height, self.channels)?;
        if let Some(pages) = self.pages {
            write!(f, ":{pages}")?;
        }
        write!(f, "+{}", self.skip)
    }
}

impl Headerless {
    /// A decoder for a file of such samples.
    ///
    /// # Errors
    /// A file that is too short, or whose length does not tell how many pages it has.
    pub fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        let shape = Shape::checked(self.width, self.height, self.channels, self.depth)?;
        let mut layout = Layout::new(shape, self.skip);
        let (there, page) = (source.len().saturating_sub(self.skip), shape.bytes() as u64);
        layout.pages = match self.pages {
            Some(pages) => pages,
            None => {
                ensure!(
                    there.is_multiple_of(page) || there < page || damaged,
                    "{there} bytes are no whole number of pages of {page} bytes (a number of pages \
                     after the type, or bytes to skip: --raw WxH:TYPE:PAGES+SKIP)"
                );
                usize::try_from(there / page)?.max(1)
            }
        };
        layout.order = match self.big_endian {
            true => Order::Big,
            false => Order::Little,
        };
        layout.toggled = self.signed;
        layout.metadata = Metadata {
            signed: self.signed,
            ..Metadata::default()
        };
        Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
    }
}

/// The format of such files, which is none of the list: nothing tells them, and none are written.
#[derive(Debug)]
pub struct Raw;

impl Format for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn id(&self) -> &'static str {
        "raw"
    }

    fn title(&self) -> &'static str {
        "Samples without a header"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["raw"]
    }

    fn sniff(&self, _: &[u8]) -> bool {
        false
    }

    fn capabilities(&self) -> Capabilities {
        raster::READ
    }

    fn decoder<'a>(&self, _: &'a Source, _: bool) -> Result<Box<dyn Decoder + 'a>> {
        bail!("only --raw says what is in such a file")
    }
}
