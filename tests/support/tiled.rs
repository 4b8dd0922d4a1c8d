//! FITS images in compressed tiles, as tables and heaps that astropy 8.0 wrote.

/// A part of a FITS file: records and data, both padded.
pub fn fits_part(records: &[&str], data: &[u8]) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    for record in records.iter().chain(&["END"]) {
        file.extend(format!("{record:<80}").bytes());
    }
    file.resize(file.len().next_multiple_of(2880), b' ');
    file.extend(data);
    file.resize(file.len().next_multiple_of(2880), 0);
    file
}

/// A file to write, after an empty first part; a test changes what it is about.
#[derive(Clone)]
pub struct Tiled {
    pub bitpix: i32,
    /// The axes of the image and of a tile, that of a row first.
    pub axes: Vec<usize>,
    pub tile: Vec<usize>,
    pub compression: &'static str,
    /// Names and forms.
    pub columns: Vec<(&'static str, &'static str)>,
    /// Bytes of a row of the table, its rows, and bytes of the heap.
    pub table: (usize, usize, usize),
    /// The table and the heap.
    pub data: Vec<u8>,
    pub more: Vec<&'static str>,
}

impl Tiled {
    pub fn file(&self) -> Vec<u8> {
        let (row, rows, heap) = self.table;
        let integer = |name: &str, value: usize| format!("{name:<8}= {value:>20}");
        let text = |name: &str, value: &str| format!("{name:<8}= '{value:<8}'");
        let mut records = vec![
            text("XTENSION", "BINTABLE"),
            integer("BITPIX", 8),
            integer("NAXIS", 2),
            integer("NAXIS1", row),
            integer("NAXIS2", rows),
            integer("PCOUNT", heap),
            integer("GCOUNT", 1),
            integer("TFIELDS", self.columns.len()),
        ];
        for (index, (name, form)) in self.columns.iter().enumerate() {
            records.push(text(&format!("TTYPE{}", index + 1), name));
            records.push(text(&format!("TFORM{}", index + 1), form));
        }
        records.push("ZIMAGE  =                    T".into());
        records.push(text("ZCMPTYPE", self.compression));
        records.push(text("EXTNAME", "COMPRESSED_IMAGE"));
        records.push(format!("ZBITPIX = {:>20}", self.bitpix));
        records.push(integer("ZNAXIS", self.axes.len()));
        for (index, (axis, tile)) in self.axes.iter().zip(&self.tile).enumerate() {
            records.push(integer(&format!("ZNAXIS{}", index + 1), *axis));
            records.push(integer(&format!("ZTILE{}", index + 1), *tile));
        }
        records.extend(self.more.iter().map(|&record| record.into()));
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let empty = [
            "SIMPLE  =                    T",
            "BITPIX  =                    8",
            "NAXIS   =                    0",
        ];
        [fits_part(&empty, b""), fits_part(&records, &self.data)].concat()
    }
}

/// The sample in a column and a row of an image of integers.
pub fn sample(x: usize, y: usize) -> i32 {
    ((x * 37 + y * 101) % 1000) as i32 - 300
}

/// 7 × 5 integers in one tile.
fn integers(compression: &'static str, heap: usize, data: &[u8]) -> Tiled {
    Tiled {
        bitpix: 16,
        axes: vec![7, 5],
        tile: vec![7, 5],
        compression,
        columns: vec![("COMPRESSED_DATA", "1PB(99)")],
        table: (8, 1, heap),
        data: data.into(),
        more: Vec::new(),
    }
}

/// Words in tiles of 4 × 3.
pub fn rice_words() -> Tiled {
    Tiled {
        tile: vec![4, 3],
        table: (8, 4, 44),
        more: vec![
            "ZNAME1  = 'BLOCKSIZE'",
            "ZVAL1   =                   32",
            "ZNAME2  = 'BYTEPIX '",
            "ZVAL2   =                    2",
            "OBJECT  = 'M 31    '",
        ],
        ..integers("RICE_1", 0, b"\0\0\0\x0E\0\0\0\0\0\0\0\x0B\0\0\0\x0E\0\0\0\x0A\0\0\0\x19\0\0\0\x09\0\0\0#\xFE\xD4h\x0A\x8A\x8A\
            \xB3***\xCC\xA8\xA8\xA8\xFFhh\x0A\x8A\x9B\x15\x156**\0\x03h\x0A\x8A\x8A\xB3***\0\x97h\x0A\x8A\x9B\x15\x15\0")
    }
}

/// The low bytes of the samples.
pub fn rice_bytes() -> Tiled {
    Tiled {
        bitpix: 8,
        more: vec!["ZNAME1  = 'BYTEPIX '", "ZVAL1   =                    1"],
        ..integers(
            "RICE_1",
            37,
            b"\0\0\0%\0\0\0\0\xD4\xE0\x09IIIII^)IIIII^)IIIII^)IIIII^)II]))(",
        )
    }
}

/// Words of 32 bits in tiles of a row.
pub fn rice_long_words() -> Tiled {
    Tiled {
        bitpix: 32,
        tile: vec![7, 1],
        table: (8, 5, 60),
        ..integers("RICE_1", 0, b"\0\0\0\x0C\0\0\0\0\0\0\0\x0C\0\0\0\x0C\0\0\0\x0C\0\0\0\x18\0\0\0\x0C\0\0\0$\0\0\0\x0C\0\0\x000\
            \xFF\xFF\xFE\xD44\x05EEEEE@\xFF\xFF\xFF94\x05EEEEE@\xFF\xFF\xFF\x9E4\x05EEEEE@\0\0\0\x034\x05EEEEE@\0\0\0h4\x05EEEEE@")
    }
}

pub fn gzip_shuffled() -> Tiled {
    integers("GZIP_2", 66, b"\0\0\0B\0\0\0\0\x1F\x8B\x08\0\x87\xA6\x06k\x02\xFF\xFB\xF7\xEF?\x020\x800\x1A`d\xBC\xF2S\xCE9\xA3w\
        \x93e\\\xF3\x8A\xB3\x9F\xC4\xE7\x1D~\xC1k\x14^\xC3\xAC\xE1[4}\xCFC\xA0\xF8\xF5?\x8An\0\xE9\xA1\xD9\xE5F\0\0\0")
}

/// The samples that are positive, as multiples of 50, in tiles of two rows.
pub fn plio() -> Tiled {
    Tiled {
        tile: vec![7, 2],
        columns: vec![("COMPRESSED_DATA", "1PI(17)")],
        table: (8, 3, 78),
        ..integers("PLIO_1", 0, b"\0\0\0\x08\0\0\0\0\0\0\0\x11\0\0\0\x10\0\0\0\x0E\0\0\x002\0\0\0\x07\xFF\x9C\0\x08\0\0\0\0\0\0\0\x0E\
            \0\0\0\x07\xFF\x9C\0\x11\0\0\0\0\0\0 1\0\x04@\x02`202P\x03`2 2@\x02`2\0\0\0\x07\xFF\x9C\0\x0E\0\0\0\0\0\0 c@\x02`2`2 2@\x02`2")
    }
}

pub fn hcompress() -> Tiled {
    integers("HCOMPRESS_1", 76, b"\0\0\0L\0\0\0\0\xDD\x99\0\0\0\x05\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\x06p\x0B\x08\0\xF7\xAF\xAB U\x81\
        \xF7'\xEEt\x05\xD8\x1Fa\x03^\x07\xE9\x0F\x0B\xFE\xFF\x83\xEB#\xFE\xFF\x83\xEB#\xFE\x0F\xAC\x8F\xF8?\xC3\xFF\xFE\xFF\x83\xFF\
        \xFE\x0F\xFF\xF8\0\0\0\0\0")
}

/// 9 × 4 samples of floating point, of which number 21 has no value, rounded to integers.
pub fn rounded() -> Tiled {
    Tiled {
        bitpix: -32,
        axes: vec![9, 4],
        tile: vec![9, 4],
        columns: vec![
            ("COMPRESSED_DATA", "1PB(135)"),
            ("GZIP_COMPRESSED_DATA", "1PB(0)"),
            ("ZSCALE", "1D"),
            ("ZZERO", "1D"),
        ],
        table: (32, 1, 135),
        more: vec!["ZBLANK  =          -2147483648"],
        ..integers("RICE_1", 0, b"\0\0\0\x87\0\0\0\0\0\0\0\0\0\0\0\0?\xEADT\xD5\x17|\x1E\0\0\0\0\0\0\0\0\0\0\0y\xD0\0\0\0\0\0\0\0 \0\0\0(\0\
            \0\0\0\0\0\0\x08\0\0\0\x10\0\0\0 \0\0\0\x18\0\0\0 \0\0\0p\0\0\x08\x08\0\0\x07@\0\0\0\xC0\0\0\0H\0\0\0H\0\0\0p\0\0\0(\0\0\0\
            \x18\0\0\0\0\0\0\0\x18\0\0\0G\xFF\xFF\xF8g\xFF\xFF\xF8h\0\0\0 \0\0\0`\0\0\0\xB8\0\0\0`\0\0\0\x18\0\0\0(\0\0\0\0\0\0\0@\0\0\0\
            \x10\x8C\x8B")
    }
}

/// The same with dithering, of which number 10 stays 0.
pub fn dithered() -> Tiled {
    Tiled {
        table: (32, 1, 36),
        data: b"\0\0\0$\0\0\0\0\0\0\0\0\0\0\0\0?\xEADT\xD5\x17|\x1EA\xDADT\xD2\xD5\x9C\xD4\x80\0\0\x844\x12K\x041M\x1CW\0f\x03\xAE)\
            \x9E\xE9\xE5\x8A:\0)\0\x9Ak7\xB29`\xA2!\x19\x09\x80"
            .into(),
        more: vec![
            "ZBLANK  =          -2147483648",
            "ZQUANTIZ= 'SUBTRACTIVE_DITHER_2'",
            "ZDITHER0=                    7",
        ],
        ..rounded()
    }
}

/// Each of them.
pub fn all() -> Vec<Tiled> {
    vec![
        rice_words(),
        rice_bytes(),
        rice_long_words(),
        gzip_shuffled(),
        plio(),
        hcompress(),
        rounded(),
        dithered(),
    ]
}
