//! A plain DICOM writer for the tests, element by element (PS3.5, chapter 7).

pub const EXPLICIT: &str = "1.2.840.10008.1.2.1";
pub const IMPLICIT: &str = "1.2.840.10008.1.2";
pub const BIG: &str = "1.2.840.10008.1.2.2";
pub const RLE: &str = "1.2.840.10008.1.2.5";
pub const JPEG: &str = "1.2.840.10008.1.2.4.50";
pub const JPEG_LS: &str = "1.2.840.10008.1.2.4.80";

/// The example of JPEG-LS in T.87, H.3: 4 × 4 samples of 8 bits, which meets samples with and without gradients and the end of runs.
pub const EXAMPLE: &[u8] = b"\xFF\xD8\xFF\xF7\0\x0B\x08\0\x04\0\x04\x01\x01\x11\0\xFF\xDA\0\x08\x01\x01\0\0\0\0\
    \xC0\0\0\x6C\x80\x20\x8E\x01\xC0\0\0\x57\x40\0\0\x6E\xE6\0\0\x01\xBC\x18\0\0\x05\xD8\0\0\x91\x60\xFF\xD9";

/// A file to write; a test changes what it is about.
#[derive(Clone)]
pub struct Build {
    pub syntax: &'static str,
    pub columns: u16,
    pub rows: u16,
    pub channels: u16,
    pub photometric: &'static str,
    /// Bits allocated and stored, and whether samples have a sign.
    pub bits: (u16, u16),
    pub signed: bool,
    pub planar: bool,
    /// Further elements of texts.
    pub texts: Vec<((u16, u16), &'static str)>,
    /// Further elements of numbers of 16 bits, and the type of their values.
    pub numbers: Vec<Numbers>,
}

impl Default for Build {
    fn default() -> Build {
        Build {
            syntax: EXPLICIT,
            columns: 3,
            rows: 2,
            channels: 1,
            photometric: "MONOCHROME2",
            bits: (16, 16),
            signed: false,
            planar: false,
            texts: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

/// A tag, the type of its values, and numbers of 16 bits.
pub type Numbers = ((u16, u16), &'static [u8; 2], Vec<u16>);

/// A tag, the type of its value, and the value.
type Element = ((u16, u16), &'static [u8; 2], Vec<u8>);

impl Build {
    pub fn text(mut self, tag: (u16, u16), value: &'static str) -> Build {
        self.texts.push((tag, value));
        self
    }

    pub fn numbers(mut self, tag: (u16, u16), kind: &'static [u8; 2], values: &[u16]) -> Build {
        self.numbers.push((tag, kind, values.to_vec()));
        self
    }

    fn number(&self, value: u16) -> [u8; 2] {
        if self.syntax == BIG {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn long(&self, value: u32) -> [u8; 4] {
        if self.syntax == BIG {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    pub fn element(&self, file: &mut Vec<u8>, tag: (u16, u16), kind: &[u8; 2], value: &[u8]) {
        file.extend([self.number(tag.0), self.number(tag.1)].concat());
        let size = value.len() as u32;
        let is_long = [b"OW", b"OB", b"SQ", b"UN"].contains(&kind);
        match (self.syntax == IMPLICIT, is_long) {
            (true, _) => file.extend(self.long(size)),
            (false, true) => {
                file.extend([&kind[..], &[0, 0], &self.long(size)].concat());
            }
            (false, false) => file.extend([&kind[..], &self.number(size as u16)].concat()),
        }
        file.extend(value);
    }

    /// The file of these pixel data; with fragments, the first of which is the table of offsets.
    pub fn file(&self, pixels: &[u8], fragments: Option<&[&[u8]]>) -> Vec<u8> {
        let mut file = [&[0; 128][..], b"DICM"].concat();
        let meta = Build::default();
        let padded = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(bytes.len().next_multiple_of(2), b' ');
            bytes
        };
        let mut syntax = self.syntax.as_bytes().to_vec();
        syntax.resize(syntax.len().next_multiple_of(2), 0);
        meta.element(&mut file, (2, 0x10), b"UI", &syntax);
        self.element(&mut file, (8, 0x60), b"CS", b"CT");
        // A sequence of undefined length with an item of defined length, which is skipped.
        if self.syntax != IMPLICIT {
            file.extend([self.number(8), self.number(0x1140)].concat());
            file.extend([&b"SQ\0\0"[..], &[0xFF; 4]].concat());
            let mut item = Vec::new();
            self.element(&mut item, (0x28, 0x10), b"US", &self.number(999));
            file.extend([self.number(0xFFFE), self.number(0xE000)].concat());
            file.extend(self.long(item.len() as u32));
            file.extend(item);
            file.extend([self.number(0xFFFE), self.number(0xE0DD)].concat());
            file.extend([0; 4]);
        }
        self.element(&mut file, (0x10, 0x10), b"PN", b"Doe^Jane");
        let mut elements: Vec<Element> = Vec::new();
        for (element, value) in [
            (2, self.channels),
            (6, self.planar.into()),
            (0x10, self.rows),
            (0x11, self.columns),
            (0x100, self.bits.0),
            (0x101, self.bits.1),
            (0x102, self.bits.1 - 1),
            (0x103, self.signed.into()),
        ] {
            elements.push(((0x28, element), b"US", self.number(value).to_vec()));
        }
        elements.push(((0x28, 4), b"CS", padded(self.photometric)));
        for (tag, text) in &self.texts {
            elements.push((*tag, b"DS", padded(text)));
        }
        for (tag, kind, values) in &self.numbers {
            let values = values.iter().flat_map(|&value| self.number(value));
            elements.push((*tag, kind, values.collect()));
        }
        elements.sort();
        for (tag, kind, value) in elements {
            self.element(&mut file, tag, kind, &value);
        }
        let Some(fragments) = fragments else {
            self.element(&mut file, (0x7FE0, 0x10), b"OW", pixels);
            return file;
        };
        file.extend(b"\xE0\x7F\x10\0OB\0\0\xFF\xFF\xFF\xFF");
        for fragment in fragments {
            file.extend(b"\xFE\xFF\0\xE0");
            file.extend((fragment.len() as u32).to_le_bytes());
            file.extend(*fragment);
        }
        file.extend(b"\xFE\xFF\xDD\xE0\0\0\0\0");
        file
    }

    pub fn words(&self, words: &[u16]) -> Vec<u8> {
        let bytes: Vec<u8> = words.iter().flat_map(|&word| self.number(word)).collect();
        self.file(&bytes, None)
    }
}
