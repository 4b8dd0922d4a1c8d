// Written by kernels/launch.py from the kernels' sources: change those, and run kernels/build.sh.

//! The kernels' arguments, records and constants. `driver::launch` says what a launch checks.

#![allow(missing_docs, reason = "the fields are the parameters, which the kernels' headers explain")]
#![allow(dead_code, reason = "some records are only measured")]

/// kernels/common.cuh
pub mod common {
    /// `BLOCK` of kernels/common.cuh.
    pub const BLOCK: u32 = 256;
    /// `WARPS` of kernels/common.cuh.
    pub const WARPS: u32 = 8;
}

/// kernels/inflate.cuh
pub mod inflate {
    use crate::gpu::driver::launch::record;

    /// `FIRST` of kernels/inflate.cuh.
    pub const FIRST: u32 = 1;
    /// `ENDED` of kernels/inflate.cuh.
    pub const ENDED: u32 = 2;
    /// `UNSETTLED` of kernels/inflate.cuh.
    pub const UNSETTLED: u32 = 4;
    /// `BAD` of kernels/inflate.cuh.
    pub const BAD: u32 = 8;
    /// `LAST` of kernels/inflate.cuh.
    pub const LAST: u32 = 16;
    /// `CODES_FOUND` of kernels/inflate.cuh.
    pub const CODES_FOUND: u32 = 0;
    /// `PARTS_MADE` of kernels/inflate.cuh.
    pub const PARTS_MADE: u32 = 1;
    /// `WRONG` of kernels/inflate.cuh.
    pub const WRONG: u32 = 2;
    /// `USED` of kernels/inflate.cuh.
    pub const USED: u32 = 3;
    /// `END` of kernels/inflate.cuh.
    pub const END: u32 = 4;
    /// `LARGEST` of kernels/inflate.cuh.
    pub const LARGEST: u32 = 5;
    /// `MATCHES` of kernels/inflate.cuh.
    pub const MATCHES: u32 = 6;
    /// `FILTERS` of kernels/inflate.cuh.
    pub const FILTERS: u32 = 7;
    /// `HITS_FOUND` of kernels/inflate.cuh.
    pub const HITS_FOUND: u32 = 13;
    /// `LIKELY_FOUND` of kernels/inflate.cuh.
    pub const LIKELY_FOUND: u32 = 14;
    /// `REPORT` of kernels/inflate.cuh.
    pub const REPORT: u32 = 16;
    /// `CROWDED` of kernels/inflate.cuh.
    pub const CROWDED: u32 = 1;
    /// `TOO_FAR` of kernels/inflate.cuh.
    pub const TOO_FAR: u32 = 2;
    /// `NO_FILTER` of kernels/inflate.cuh.
    pub const NO_FILTER: u32 = 4;
    /// `NO_COLOUR` of kernels/inflate.cuh.
    pub const NO_COLOUR: u32 = 8;
    /// `OTHER_CRC` of kernels/inflate.cuh.
    pub const OTHER_CRC: u32 = 16;
    /// `UNCHAINED` of kernels/inflate.cuh.
    pub const UNCHAINED: u32 = 32;
    /// `BAD_LZW` of kernels/inflate.cuh.
    pub const BAD_LZW: u32 = 64;

    record! {
        /// `Part` of kernels/inflate.cuh.
        Part = 32 { head: u32, begin: u32, limit: u32, codes: u32, start: u32, stop: u32, bytes: u32, found: u32 }
    }

    record! {
        /// `Place` of kernels/inflate.cuh.
        Place = 16 { part: u32, at: u32, matches: u32, first: u32 }
    }

    record! {
        /// `Codes` of kernels/inflate.cuh.
        Codes = 176 { head: u32, data: u32, litlens: u32, all: u32, lengths: [u32; 40] }
    }

    record! {
        /// `Lane` of kernels/inflate.cuh.
        Lane = 12 { start: u32, bytes: u32, matches: u32 }
    }

    record! {
        /// `Match` of kernels/inflate.cuh.
        Match = 8 { at: u32, len: u16, distance: u16 }
    }
}

/// kernels/inflate_symbols.cuh
pub mod inflate_symbols {
    /// `LANES` of kernels/inflate_symbols.cuh.
    pub const LANES: u32 = 128;
    /// `SPAN` of kernels/inflate_symbols.cuh.
    pub const SPAN: u32 = 98_304;
}

/// kernels/png.cuh
pub mod png {
    use crate::gpu::driver::launch::record;

    /// `DEFLATE_BLOCK` of kernels/png.cuh.
    pub const DEFLATE_BLOCK: u32 = 131_072;

    record! {
        /// `Block` of kernels/png.cuh.
        Block = 5800 { start: u64, kind: u32, header_bits: u32, bits: u32, header: [u32; 68], weights: [u32; 288], counts: [u32; 288], codes: [u32; 288], zero: [u32; 512], unused: u32 }
    }

    record! {
        /// `Segment` of kernels/png.cuh.
        Segment = 40 { sum: u64, weighted: u64, filters: u64, matches: u64, bytes: u64 }
    }
}

/// kernels/calibrate.cu
pub mod calibrate {
    use crate::gpu::driver::launch::{arguments, record, Form, View, ViewMut};

    record! {
        /// `Factor` of kernels/calibrate.cu.
        Factor = 32 { whole: f64, up: f64, down: f64, high: f32, low: f32 }
    }

    const FORMS: &[Form] = &[
        Form { name: "u8_c1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u8_c2", sample: 1, channels: 2, pixel: 1 },
        Form { name: "u8_c3", sample: 1, channels: 3, pixel: 1 },
        Form { name: "u8_c4", sample: 1, channels: 4, pixel: 1 },
        Form { name: "u16_c1", sample: 2, channels: 1, pixel: 1 },
        Form { name: "u16_c2", sample: 2, channels: 2, pixel: 1 },
        Form { name: "u16_c3", sample: 2, channels: 3, pixel: 1 },
        Form { name: "u16_c4", sample: 2, channels: 4, pixel: 1 },
    ];

    arguments! {
        /// `calibrate` of kernels/calibrate.cu.
        ///
        /// Lengths `image[samples]`, `dark[has_dark == 0 ? 0 : samples]`, `flat[has_flat == 0 ? 0 : samples]`, `factors[CHANNELS]`, `clamped[1]`.
        ///
        /// Requires `samples % CHANNELS == 0`.
        checked Calibrate<'a> = "calibrate" ["calibrate"] FORMS, 0;
        { image: ViewMut<'a>, samples: u64, dark: View<'a>, flat: View<'a>, factors: View<'a>, has_dark: u32, has_flat: u32, zero: i32, offset: i32, clamped: ViewMut<'a> }
        |it, launch, list| {
            launch.has("image", it.image.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("dark", it.dark.len(), (if u64::from(it.has_dark) == 0 { 0 } else { it.samples }).saturating_mul(launch.form.sample))?;
            launch.has("flat", it.flat.len(), (if u64::from(it.has_flat) == 0 { 0 } else { it.samples }).saturating_mul(launch.form.sample))?;
            launch.has("factors", it.factors.len(), launch.form.channels.saturating_mul(32))?;
            launch.has("clamped", it.clamped.len(), 8)?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
        } { list.push(&it.image); list.push(&it.samples); list.push(&it.dark); list.push(&it.flat); list.push(&it.factors); list.push(&it.has_dark); list.push(&it.has_flat); list.push(&it.zero); list.push(&it.offset); list.push(&it.clamped); }
    }

    arguments! {
        /// `hot` of kernels/calibrate.cu.
        ///
        /// Lengths `src[width * height * CHANNELS]`, `dst[width * height * CHANNELS]`.
        checked Hot<'a> = "calibrate" ["hot"] FORMS, 0;
        { src: View<'a>, dst: ViewMut<'a>, width: u64, height: u64, threshold: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.width.saturating_mul(it.height).saturating_mul(launch.form.channels).saturating_mul(launch.form.sample))?;
            launch.has("dst", it.dst.len(), it.width.saturating_mul(it.height).saturating_mul(launch.form.channels).saturating_mul(launch.form.sample))?;
        } { list.push(&it.src); list.push(&it.dst); list.push(&it.width); list.push(&it.height); list.push(&it.threshold); }
    }
}

/// kernels/cast.cu
pub mod cast {
    use crate::gpu::driver::launch::{arguments, Form};

    /// `WHOLE` of kernels/cast.cu.
    pub const WHOLE: u32 = 0;
    /// `SIGNED` of kernels/cast.cu.
    pub const SIGNED: u32 = 1;
    /// `TOGGLED` of kernels/cast.cu.
    pub const TOGGLED: u32 = 2;
    /// `REAL` of kernels/cast.cu.
    pub const REAL: u32 = 3;
    /// `KEY` of kernels/cast.cu.
    pub const KEY: u32 = 4;

    arguments! {
        /// `cast` of kernels/cast.cu.
        ///
        /// Trusts src and dst, which are addresses of samples that are aligned and in memory, as are all others that the strides lead to.
        trusting Cast = "cast" ["cast"] &[Form::ONLY], 0;
        { src: u64, src_bytes: u32, src_form: u32, src_down: u64, src_across: u64, src_deep: u64, dst: u64, dst_bytes: u32, dst_form: u32, dst_down: u64, dst_across: u64, dst_deep: u64, height: u32, width: u32, channels: u32 }
        |it, launch, list| {
        } { list.push(&it.src); list.push(&it.src_bytes); list.push(&it.src_form); list.push(&it.src_down); list.push(&it.src_across); list.push(&it.src_deep); list.push(&it.dst); list.push(&it.dst_bytes); list.push(&it.dst_form); list.push(&it.dst_down); list.push(&it.dst_across); list.push(&it.dst_deep); list.push(&it.height); list.push(&it.width); list.push(&it.channels); }
    }
}

/// kernels/curve.cu
pub mod curve {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u16", sample: 2, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `curve` of kernels/curve.cu.
        ///
        /// Lengths `image[samples]`, `tables[channels * (sizeof(T) == 1 ? 256 : 65536)]`.
        ///
        /// Requires `channels >= 1`.
        checked Curve<'a> = "curve" ["curve"] FORMS, 0;
        { image: ViewMut<'a>, samples: u64, tables: View<'a>, channels: u32 }
        |it, launch, list| {
            launch.has("image", it.image.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("tables", it.tables.len(), u64::from(it.channels).saturating_mul(if launch.form.sample == 1 { 256 } else { 65536 }).saturating_mul(launch.form.sample))?;
            launch.requires(u64::from(it.channels) >= 1, "channels >= 1")?;
        } { list.push(&it.image); list.push(&it.samples); list.push(&it.tables); list.push(&it.channels); }
    }
}

/// kernels/debayer.cu
pub mod debayer {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    /// `WIDE` of kernels/debayer.cu.
    pub const WIDE: u32 = 64;
    /// `HIGH` of kernels/debayer.cu.
    pub const HIGH: u32 = 16;

    const FORMS: &[Form] = &[
        Form { name: "u8", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u16", sample: 2, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `debayer` of kernels/debayer.cu.
        ///
        /// Lengths `src[width * height]`, `dst[3 * width * height]`.
        ///
        /// Requires `width >= 2`, `height >= 2`.
        checked Debayer<'a> = "debayer" ["debayer"] FORMS, 0;
        { src: View<'a>, dst: ViewMut<'a>, width: u64, height: u64, red_x: u32, red_y: u32, malvar: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.width.saturating_mul(it.height).saturating_mul(launch.form.sample))?;
            launch.has("dst", it.dst.len(), 3_u64.saturating_mul(it.width).saturating_mul(it.height).saturating_mul(launch.form.sample))?;
            launch.requires(it.width >= 2, "width >= 2")?;
            launch.requires(it.height >= 2, "height >= 2")?;
        } { list.push(&it.src); list.push(&it.dst); list.push(&it.width); list.push(&it.height); list.push(&it.red_x); list.push(&it.red_y); list.push(&it.malvar); }
    }
}

/// kernels/depth.cu
pub mod depth {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    arguments! {
        /// `narrow` of kernels/depth.cu.
        ///
        /// Lengths `src[samples]`, `dst[samples]`.
        ///
        /// Requires `channels >= 1`.
        ///
        /// In sets of at most 113 pages.
        checked Narrow<'a> = "depth" ["narrow"] &[Form::ONLY], 113;
        { src: View<'a>, samples: u64, dst: ViewMut<'a>, channels: u32, kept: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(2))?;
            launch.has("dst", it.dst.len(), it.samples)?;
            launch.requires(u64::from(it.channels) >= 1, "channels >= 1")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.dst); list.push(&it.channels); list.push(&it.kept); }
    }
}

/// kernels/fit.cu
pub mod fit {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u16", sample: 2, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `fit` of kernels/fit.cu.
        ///
        /// Lengths `src[width * height * channels]`, `dst[new_width * new_height * channels]`.
        ///
        /// Requires `channels >= 1`, `new_width >= 1`, `new_width <= width`, `new_height >= 1`, `new_height <= height`, `lanes >= 1`, `32 % lanes == 0`.
        checked Fit<'a> = "fit" ["fit"] FORMS, 0;
        { src: View<'a>, width: u64, height: u64, channels: u64, dst: ViewMut<'a>, new_width: u64, new_height: u64, lanes: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.width.saturating_mul(it.height).saturating_mul(it.channels).saturating_mul(launch.form.sample))?;
            launch.has("dst", it.dst.len(), it.new_width.saturating_mul(it.new_height).saturating_mul(it.channels).saturating_mul(launch.form.sample))?;
            launch.requires(it.channels >= 1, "channels >= 1")?;
            launch.requires(it.new_width >= 1, "new_width >= 1")?;
            launch.requires(it.new_width <= it.width, "new_width <= width")?;
            launch.requires(it.new_height >= 1, "new_height >= 1")?;
            launch.requires(it.new_height <= it.height, "new_height <= height")?;
            launch.requires(u64::from(it.lanes) >= 1, "lanes >= 1")?;
            launch.requires(32_u64.is_multiple_of(u64::from(it.lanes)), "32 % lanes == 0")?;
        } { list.push(&it.src); list.push(&it.width); list.push(&it.height); list.push(&it.channels); list.push(&it.dst); list.push(&it.new_width); list.push(&it.new_height); list.push(&it.lanes); }
    }
}

/// kernels/flip.cu
pub mod flip {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "b1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "b2", sample: 1, channels: 1, pixel: 2 },
        Form { name: "b3", sample: 1, channels: 1, pixel: 3 },
        Form { name: "b4", sample: 1, channels: 1, pixel: 4 },
        Form { name: "b6", sample: 1, channels: 1, pixel: 6 },
        Form { name: "b8", sample: 1, channels: 1, pixel: 8 },
    ];

    arguments! {
        /// `flip` of kernels/flip.cu.
        ///
        /// Lengths `src[width * height * PIXEL]`, `dst[width * height * PIXEL]`.
        ///
        /// In sets of at most 92 pages.
        checked Flip<'a> = "flip" ["flip"] FORMS, 92;
        { src: View<'a>, dst: ViewMut<'a>, width: u64, height: u64, reverse_x: u32, reverse_y: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.width.saturating_mul(it.height).saturating_mul(launch.form.pixel))?;
            launch.has("dst", it.dst.len(), it.width.saturating_mul(it.height).saturating_mul(launch.form.pixel))?;
        } { list.push(&it.src); list.push(&it.dst); list.push(&it.width); list.push(&it.height); list.push(&it.reverse_x); list.push(&it.reverse_y); }
    }
}

/// kernels/histogram.cu
pub mod histogram {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8_c1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u8_c2", sample: 1, channels: 2, pixel: 1 },
        Form { name: "u8_c3", sample: 1, channels: 3, pixel: 1 },
        Form { name: "u8_c4", sample: 1, channels: 4, pixel: 1 },
        Form { name: "u16_c1", sample: 2, channels: 1, pixel: 1 },
        Form { name: "u16_c2", sample: 2, channels: 2, pixel: 1 },
        Form { name: "u16_c3", sample: 2, channels: 3, pixel: 1 },
        Form { name: "u16_c4", sample: 2, channels: 4, pixel: 1 },
    ];

    arguments! {
        /// `histogram` of kernels/histogram.cu.
        ///
        /// Lengths `src[samples]`, `bins[CHANNELS * (sizeof(T) == 1 ? 256 : 65536)]`.
        ///
        /// Requires `samples % CHANNELS == 0`.
        ///
        /// In sets of at most 146 pages.
        checked Histogram<'a> = "histogram" ["histogram"] FORMS, 146;
        { src: View<'a>, samples: u64, bins: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("bins", it.bins.len(), launch.form.channels.saturating_mul(if launch.form.sample == 1 { 256 } else { 65536 }).saturating_mul(8))?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.bins); }
    }
}

/// kernels/inflate_adler.cu
pub mod inflate_adler {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    /// `TILE` of kernels/inflate_adler.cu.
    pub const TILE: u32 = 16_384;

    arguments! {
        /// `inflate_adler` of kernels/inflate_adler.cu.
        ///
        /// Lengths `bytes[count + 8]`, `report[REPORT + 4 * ceil(grid.blocks, tiles)]`.
        ///
        /// Requires `tiles >= 1`.
        ///
        /// In sets of at most 92 pages.
        checked InflateAdler<'a> = "inflate_adler" ["inflate_adler"] &[Form::ONLY], 92;
        { bytes: View<'a>, count: u64, each: u64, tiles: u32, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("bytes", it.bytes.len(), it.count.saturating_add(8))?;
            launch.has("report", it.report.len(), 16_u64.saturating_add(4_u64.saturating_mul(launch.blocks().div_ceil(u64::from(it.tiles).max(1)))).saturating_mul(4))?;
            launch.requires(u64::from(it.tiles) >= 1, "tiles >= 1")?;
        } { list.push(&it.bytes); list.push(&it.count); list.push(&it.each); list.push(&it.tiles); list.push(&it.report); }
    }
}

/// kernels/inflate_chain.cu
pub mod inflate_chain {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    arguments! {
        /// `inflate_chain` of kernels/inflate_chain.cu.
        ///
        /// Lengths `stream[bits / 32 + 1]`, `parts[..]`, `places[..]`, `report[REPORT]`.
        ///
        /// Trusts report and parts, as inflate_order and inflate_count leave them: there are as many places as parts.
        ///
        /// In sets of at most 68 pages.
        trusting InflateChain<'a> = "inflate_chain" ["inflate_chain"] &[Form::ONLY], 68;
        { stream: View<'a>, bits: u32, parts: View<'a>, head: u32, bytes: u32, most_matches: u32, places: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), (u64::from(it.bits) / 32).saturating_add(1).saturating_mul(4))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.stream); list.push(&it.bits); list.push(&it.parts); list.push(&it.head); list.push(&it.bytes); list.push(&it.most_matches); list.push(&it.places); list.push(&it.report); }
    }
}

/// kernels/inflate_count.cu
pub mod inflate_count {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    arguments! {
        /// `inflate_count` of kernels/inflate_count.cu.
        ///
        /// Lengths `stream[words]`, `codes[..]`, `parts[to]`, `lanes[to * LANES]`, `report[REPORT]`.
        ///
        /// Trusts parts, whose codes there are; where `to` is 0, report too, as inflate_order leaves it: there are so many parts and their lanes.
        ///
        /// In sets of at most 60 pages.
        trusting InflateCount<'a> = "inflate_count" ["inflate_count"] &[Form::ONLY], 60;
        { stream: View<'a>, words: u32, codes: View<'a>, parts: ViewMut<'a>, lanes: ViewMut<'a>, from: u32, to: u32, rounds: u32, report: View<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("parts", it.parts.len(), u64::from(it.to).saturating_mul(32))?;
            launch.has("lanes", it.lanes.len(), u64::from(it.to).saturating_mul(128).saturating_mul(12))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.codes); list.push(&it.parts); list.push(&it.lanes); list.push(&it.from); list.push(&it.to); list.push(&it.rounds); list.push(&it.report); }
    }
}

/// kernels/inflate_find.cu
pub mod inflate_find {
    use crate::gpu::driver::launch::{arguments, record, Form, View, ViewMut};

    /// `GROUP` of kernels/inflate_find.cu.
    pub const GROUP: u32 = 2_048;
    /// `REGION` of kernels/inflate_find.cu.
    pub const REGION: u32 = 262_144;
    /// `MOST` of kernels/inflate_find.cu.
    pub const MOST: u32 = 64;
    /// `SIEVERS` of kernels/inflate_find.cu.
    pub const SIEVERS: u32 = 64;
    /// `READERS` of kernels/inflate_find.cu.
    pub const READERS: u32 = 32;

    record! {
        /// `Head` of kernels/inflate_find.cu.
        Head = 16 { codes: u32, head: u32, data: u32, last: u32 }
    }

    arguments! {
        /// `inflate_find` of kernels/inflate_find.cu.
        ///
        /// Lengths `stream[words]`, `hits[most]`, `report[REPORT]`.
        ///
        /// In sets of at most 78 pages.
        checked InflateFind<'a> = "inflate_find" ["inflate_find"] &[Form::ONLY], 78;
        { stream: View<'a>, words: u32, bits: u32, first: u32, last: u32, most: u32, hits: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("hits", it.hits.len(), u64::from(it.most).saturating_mul(4))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.bits); list.push(&it.first); list.push(&it.last); list.push(&it.most); list.push(&it.hits); list.push(&it.report); }
    }

    arguments! {
        /// `inflate_sieve` of kernels/inflate_find.cu.
        ///
        /// Lengths `stream[words]`, `hits[most]`, `likely[most_likely]`, `report[REPORT]`.
        ///
        /// In sets of at most 78 pages.
        checked InflateSieve<'a> = "inflate_find" ["inflate_sieve"] &[Form::ONLY], 78;
        { stream: View<'a>, words: u32, most: u32, most_likely: u32, hits: View<'a>, likely: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("hits", it.hits.len(), u64::from(it.most).saturating_mul(4))?;
            launch.has("likely", it.likely.len(), u64::from(it.most_likely).saturating_mul(4))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.most); list.push(&it.most_likely); list.push(&it.hits); list.push(&it.likely); list.push(&it.report); }
    }

    arguments! {
        /// `inflate_read` of kernels/inflate_find.cu.
        ///
        /// Lengths `stream[words]`, `likely[most_likely]`, `counts[ceil(bits, REGION)]`, `heads[ceil(bits, REGION) * MOST]`, `codes[most_codes]`, `report[REPORT]`.
        ///
        /// Trusts likely, as inflate_sieve leaves it: bits of the stream.
        ///
        /// In sets of at most 60 pages.
        trusting InflateRead<'a> = "inflate_find" ["inflate_read"] &[Form::ONLY], 60;
        { stream: View<'a>, words: u32, bits: u32, most_likely: u32, most_codes: u32, likely: View<'a>, counts: ViewMut<'a>, heads: ViewMut<'a>, codes: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("likely", it.likely.len(), u64::from(it.most_likely).saturating_mul(4))?;
            launch.has("counts", it.counts.len(), u64::from(it.bits).div_ceil(262_144).saturating_mul(4))?;
            launch.has("heads", it.heads.len(), u64::from(it.bits).div_ceil(262_144).saturating_mul(64).saturating_mul(16))?;
            launch.has("codes", it.codes.len(), u64::from(it.most_codes).saturating_mul(176))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.bits); list.push(&it.most_likely); list.push(&it.most_codes); list.push(&it.likely); list.push(&it.counts); list.push(&it.heads); list.push(&it.codes); list.push(&it.report); }
    }

    arguments! {
        /// `inflate_order` of kernels/inflate_find.cu.
        ///
        /// Lengths `counts[regions]`, `heads[regions * MOST]`, `order[regions * MOST]`, `parts[most_parts]`, `report[REPORT]`.
        ///
        /// In sets of at most 68 pages.
        checked InflateOrder<'a> = "inflate_find" ["inflate_order"] &[Form::ONLY], 68;
        { bits: u32, regions: u32, counts: View<'a>, heads: View<'a>, span: u32, most_parts: u32, order: ViewMut<'a>, parts: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("counts", it.counts.len(), u64::from(it.regions).saturating_mul(4))?;
            launch.has("heads", it.heads.len(), u64::from(it.regions).saturating_mul(64).saturating_mul(16))?;
            launch.has("order", it.order.len(), u64::from(it.regions).saturating_mul(64).saturating_mul(16))?;
            launch.has("parts", it.parts.len(), u64::from(it.most_parts).saturating_mul(32))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.bits); list.push(&it.regions); list.push(&it.counts); list.push(&it.heads); list.push(&it.span); list.push(&it.most_parts); list.push(&it.order); list.push(&it.parts); list.push(&it.report); }
    }
}

/// kernels/inflate_matches.cu
pub mod inflate_matches {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    /// `MOST_SHARE` of kernels/inflate_matches.cu.
    pub const MOST_SHARE: u32 = 64;

    arguments! {
        /// `inflate_near` of kernels/inflate_matches.cu.
        ///
        /// Lengths `parts[..]`, `places[..]`, `matches[..]`, `bytes[..]`, `sources[..]`, `waiting[..]`, `report[REPORT]`.
        ///
        /// Trusts all of them, as inflate_write leaves them: a source and a bit that waits for each byte.
        ///
        /// In sets of at most 68 pages.
        trusting InflateNear<'a> = "inflate_matches" ["inflate_near"] &[Form::ONLY], 68;
        { parts: View<'a>, places: View<'a>, matches: View<'a>, bytes: ViewMut<'a>, sources: ViewMut<'a>, waiting: ViewMut<'a>, report: View<'a> }
        |it, launch, list| {
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.parts); list.push(&it.places); list.push(&it.matches); list.push(&it.bytes); list.push(&it.sources); list.push(&it.waiting); list.push(&it.report); }
    }

    arguments! {
        /// `inflate_far` of kernels/inflate_matches.cu.
        ///
        /// Lengths `waiting[count]`, `sources[..]`, `bytes[..]`, `report[REPORT]`.
        ///
        /// Trusts waiting and sources, as inflate_near leaves them.
        ///
        /// In sets of at most 92 pages.
        trusting InflateFar<'a> = "inflate_matches" ["inflate_far"] &[Form::ONLY], 92;
        { waiting: View<'a>, count: u32, sources: ViewMut<'a>, bytes: ViewMut<'a>, report: View<'a> }
        |it, launch, list| {
            launch.has("waiting", it.waiting.len(), u64::from(it.count).saturating_mul(4))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.waiting); list.push(&it.count); list.push(&it.sources); list.push(&it.bytes); list.push(&it.report); }
    }
}

/// kernels/inflate_write.cu
pub mod inflate_write {
    use crate::gpu::driver::launch::{arguments, record, Form, View, ViewMut};

    record! {
        /// `Stored` of kernels/inflate_write.cu.
        Stored = 16 { from: u32, at: u32, len: u32, unused: u32 }
    }

    arguments! {
        /// `inflate_write` of kernels/inflate_write.cu.
        ///
        /// Lengths `stream[words]`, `codes[..]`, `parts[..]`, `lanes[..]`, `places[..]`, `bytes[..]`, `matches[..]`, `report[REPORT]`.
        ///
        /// Trusts report, parts, lanes and places: their bytes and matches there are.
        ///
        /// In sets of at most 53 pages.
        trusting InflateWrite<'a> = "inflate_write" ["inflate_write"] &[Form::ONLY], 53;
        { stream: View<'a>, words: u32, codes: View<'a>, parts: View<'a>, lanes: View<'a>, places: View<'a>, bytes: ViewMut<'a>, matches: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.codes); list.push(&it.parts); list.push(&it.lanes); list.push(&it.places); list.push(&it.bytes); list.push(&it.matches); list.push(&it.report); }
    }

    arguments! {
        /// `inflate_stored` of kernels/inflate_write.cu.
        ///
        /// Lengths `stream[..]`, `pieces[grid.blocks]`, `bytes[..]`.
        ///
        /// Trusts pieces, which lie inside the stream and the bytes.
        ///
        /// In sets of at most 146 pages.
        trusting InflateStored<'a> = "inflate_write" ["inflate_stored"] &[Form::ONLY], 146;
        { stream: View<'a>, pieces: View<'a>, bytes: ViewMut<'a> }
        |it, launch, list| {
            launch.has("pieces", it.pieces.len(), launch.blocks().saturating_mul(16))?;
        } { list.push(&it.stream); list.push(&it.pieces); list.push(&it.bytes); }
    }
}

/// kernels/lut.cu
pub mod lut {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u16", sample: 2, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `lut` of kernels/lut.cu.
        ///
        /// Lengths `src[samples]`, `dst[3 * samples]`, `table[768]`.
        ///
        /// In sets of at most 113 pages.
        checked Lut<'a> = "lut" ["lut"] FORMS, 113;
        { src: View<'a>, samples: u64, dst: ViewMut<'a>, table: View<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("dst", it.dst.len(), 3_u64.saturating_mul(it.samples))?;
            launch.has("table", it.table.len(), 768)?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.dst); list.push(&it.table); }
    }

    arguments! {
        /// `interpolated` of kernels/lut.cu.
        ///
        /// Lengths `src[samples]`, `dst[3 * samples]`, `table[768]`.
        ///
        /// In sets of at most 113 pages.
        checked Interpolated<'a> = "lut" ["interpolated"] FORMS, 113;
        { src: View<'a>, samples: u64, dst: ViewMut<'a>, table: View<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("dst", it.dst.len(), 3_u64.saturating_mul(it.samples).saturating_mul(2))?;
            launch.has("table", it.table.len(), 768)?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.dst); list.push(&it.table); }
    }
}

/// kernels/lzw.cu
pub mod lzw {
    use crate::gpu::driver::launch::{arguments, record, Form, View, ViewMut};

    /// `SEGMENT_BYTES` of kernels/lzw.cu.
    pub const SEGMENT_BYTES: u32 = 2_048;
    /// `MORE_SEGMENTS` of kernels/lzw.cu.
    pub const MORE_SEGMENTS: u32 = 2;

    record! {
        /// `Segment` of kernels/lzw.cu.
        Segment = 16 { first_bit: u32, codes: u32, bytes: u32, stream: u32 }
    }

    arguments! {
        /// `lzw_find` of kernels/lzw.cu.
        ///
        /// Lengths `stream[words]`, `begins[count + 1]`, `segments[..]`, `report[REPORT]`.
        ///
        /// Requires `grid.blocks == count`.
        ///
        /// Trusts begins, which rise and end two words before the end of the stream, and segments, of which there are as many as first_slot gives for the stream after the last one.
        ///
        /// In sets of at most 78 pages.
        trusting LzwFind<'a> = "lzw" ["lzw_find"] &[Form::ONLY], 78;
        { stream: View<'a>, words: u32, begins: View<'a>, count: u32, segments: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("begins", it.begins.len(), u64::from(it.count).saturating_add(1).saturating_mul(4))?;
            launch.has("report", it.report.len(), 64)?;
            launch.requires(launch.blocks() == u64::from(it.count), "grid.blocks == count")?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.begins); list.push(&it.count); list.push(&it.segments); list.push(&it.report); }
    }

    arguments! {
        /// `lzw_measure` of kernels/lzw.cu.
        ///
        /// Lengths `stream[words]`, `segments[grid.blocks]`.
        ///
        /// Trusts segments, which lie inside the stream.
        ///
        /// In sets of at most 146 pages.
        trusting LzwMeasure<'a> = "lzw" ["lzw_measure"] &[Form::ONLY], 146;
        { stream: View<'a>, words: u32, segments: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("segments", it.segments.len(), launch.blocks().saturating_mul(16))?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.segments); }
    }

    arguments! {
        /// `lzw_write` of kernels/lzw.cu.
        ///
        /// Lengths `stream[words]`, `begins[count + 1]`, `segments[grid.blocks]`, `bytes[total]`, `report[REPORT]`.
        ///
        /// Trusts segments, which lie inside the stream, and whose streams there are; begins, as lzw_find does.
        ///
        /// In sets of at most 60 pages.
        trusting LzwWrite<'a> = "lzw" ["lzw_write"] &[Form::ONLY], 60;
        { stream: View<'a>, words: u32, begins: View<'a>, count: u32, each: u32, total: u32, segments: View<'a>, bytes: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stream", it.stream.len(), u64::from(it.words).saturating_mul(4))?;
            launch.has("begins", it.begins.len(), u64::from(it.count).saturating_add(1).saturating_mul(4))?;
            launch.has("segments", it.segments.len(), launch.blocks().saturating_mul(16))?;
            launch.has("bytes", it.bytes.len(), u64::from(it.total))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.stream); list.push(&it.words); list.push(&it.begins); list.push(&it.count); list.push(&it.each); list.push(&it.total); list.push(&it.segments); list.push(&it.bytes); list.push(&it.report); }
    }
}

/// kernels/memory.cu
pub mod memory {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    arguments! {
        /// `move` of kernels/memory.cu.
        ///
        /// Lengths `src[bytes]`, `dst[bytes]`.
        ///
        /// In sets of at most 146 pages.
        checked Move<'a> = "memory" ["move"] &[Form::ONLY], 146;
        { src: View<'a>, dst: ViewMut<'a>, bytes: u64 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.bytes)?;
            launch.has("dst", it.dst.len(), it.bytes)?;
        } { list.push(&it.src); list.push(&it.dst); list.push(&it.bytes); }
    }

    arguments! {
        /// `fill_bytes` of kernels/memory.cu.
        ///
        /// Lengths `dst[bytes]`.
        ///
        /// In sets of at most 146 pages.
        checked FillBytes<'a> = "memory" ["fill_bytes"] &[Form::ONLY], 146;
        { dst: ViewMut<'a>, bytes: u64, byte: u32 }
        |it, launch, list| {
            launch.has("dst", it.dst.len(), it.bytes)?;
        } { list.push(&it.dst); list.push(&it.bytes); list.push(&it.byte); }
    }
}

/// kernels/normalize.cu
pub mod normalize {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8_c1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u8_c2", sample: 1, channels: 2, pixel: 1 },
        Form { name: "u8_c3", sample: 1, channels: 3, pixel: 1 },
        Form { name: "u8_c4", sample: 1, channels: 4, pixel: 1 },
        Form { name: "u16_c1", sample: 2, channels: 1, pixel: 1 },
        Form { name: "u16_c2", sample: 2, channels: 2, pixel: 1 },
        Form { name: "u16_c3", sample: 2, channels: 3, pixel: 1 },
        Form { name: "u16_c4", sample: 2, channels: 4, pixel: 1 },
    ];

    arguments! {
        /// `minmax` of kernels/normalize.cu.
        ///
        /// Lengths `src[samples]`, `ranges[2 * CHANNELS]`.
        ///
        /// Requires `samples % CHANNELS == 0`.
        ///
        /// In sets of at most 146 pages.
        checked Minmax<'a> = "normalize" ["minmax"] FORMS, 146;
        { src: View<'a>, samples: u64, ranges: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("ranges", it.ranges.len(), 2_u64.saturating_mul(launch.form.channels).saturating_mul(4))?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.ranges); }
    }

    arguments! {
        /// `scale` of kernels/normalize.cu.
        ///
        /// Lengths `src[samples]`, `dst[samples]`, `ranges[2 * CHANNELS]`.
        ///
        /// Requires `samples % CHANNELS == 0`, `grid.blocks == ceil(samples * sizeof(T), 4096)`.
        ///
        /// In place `src = dst`.
        ///
        /// In sets of at most 78 pages.
        checked Scale<'a> = "normalize" ["scale"] FORMS, 78;
        { src: Option<View<'a>>, dst: ViewMut<'a>, samples: u64, ranges: View<'a>, per_channel: u32, lo: u32, hi: u32 }
        |it, launch, list| {
            launch.has("src", it.src.as_ref().map_or(u64::MAX, View::len), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("dst", it.dst.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("ranges", it.ranges.len(), 2_u64.saturating_mul(launch.form.channels).saturating_mul(4))?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
            launch.requires(launch.blocks() == it.samples.saturating_mul(launch.form.sample).div_ceil(4096), "grid.blocks == ceil(samples * sizeof(T), 4096)")?;
        } { list.push_or(it.src.as_ref(), &it.dst); list.push(&it.dst); list.push(&it.samples); list.push(&it.ranges); list.push(&it.per_channel); list.push(&it.lo); list.push(&it.hi); }
    }
}

/// kernels/png_codes.cu
pub mod png_codes {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    arguments! {
        /// `png_histogram` of kernels/png_codes.cu.
        ///
        /// Lengths `filtered[grid.blocks / blocks * stride]`, `block[grid.blocks]`.
        ///
        /// Requires `rows >= 1`, `blocks >= 1`, `grid.blocks == ceil(height, rows) * blocks`, `min(rows, height) * (row + 1) <= stride`, `stride % 16 == 0`.
        ///
        /// In sets of at most 78 pages.
        checked PngHistogram<'a> = "png_codes" ["png_histogram"] &[Form::ONLY], 78;
        { row: u32, height: u32, rows: u32, filtered: View<'a>, stride: u64, blocks: u32, block: ViewMut<'a> }
        |it, launch, list| {
            launch.has("filtered", it.filtered.len(), (launch.blocks() / u64::from(it.blocks).max(1)).saturating_mul(it.stride))?;
            launch.has("block", it.block.len(), launch.blocks().saturating_mul(5800))?;
            launch.requires(u64::from(it.rows) >= 1, "rows >= 1")?;
            launch.requires(u64::from(it.blocks) >= 1, "blocks >= 1")?;
            launch.requires(launch.blocks() == u64::from(it.height).div_ceil(u64::from(it.rows).max(1)).saturating_mul(u64::from(it.blocks)), "grid.blocks == ceil(height, rows) * blocks")?;
            launch.requires(u64::from(it.rows).min(u64::from(it.height)).saturating_mul(u64::from(it.row).saturating_add(1)) <= it.stride, "min(rows, height) * (row + 1) <= stride")?;
            launch.requires(it.stride.is_multiple_of(16), "stride % 16 == 0")?;
        } { list.push(&it.row); list.push(&it.height); list.push(&it.rows); list.push(&it.filtered); list.push(&it.stride); list.push(&it.blocks); list.push(&it.block); }
    }

    arguments! {
        /// `png_codes` of kernels/png_codes.cu.
        ///
        /// Lengths `block[grid.blocks]`.
        ///
        /// Requires `rows >= 1`, `blocks >= 1`, `grid.blocks == ceil(height, rows) * blocks`.
        ///
        /// In sets of at most 146 pages.
        checked PngCodes<'a> = "png_codes" ["png_codes"] &[Form::ONLY], 146;
        { row: u32, height: u32, rows: u32, blocks: u32, block: ViewMut<'a> }
        |it, launch, list| {
            launch.has("block", it.block.len(), launch.blocks().saturating_mul(5800))?;
            launch.requires(u64::from(it.rows) >= 1, "rows >= 1")?;
            launch.requires(u64::from(it.blocks) >= 1, "blocks >= 1")?;
            launch.requires(launch.blocks() == u64::from(it.height).div_ceil(u64::from(it.rows).max(1)).saturating_mul(u64::from(it.blocks)), "grid.blocks == ceil(height, rows) * blocks")?;
        } { list.push(&it.row); list.push(&it.height); list.push(&it.rows); list.push(&it.blocks); list.push(&it.block); }
    }
}

/// kernels/png_crc.cu
pub mod png_crc {
    use crate::gpu::driver::launch::{arguments, record, Form, View, ViewMut};

    /// `ROW` of kernels/png_crc.cu.
    pub const ROW: u32 = 128;

    record! {
        /// `Stretch` of kernels/png_crc.cu.
        Stretch = 24 { at: u32, len: u32, behind: u32, sum: u32, to: u32, first: u32 }
    }

    arguments! {
        /// `png_join` of kernels/png_crc.cu.
        ///
        /// Lengths `file[..]`, `stretches[count]`, `stream[room]`, `sums[..]`.
        ///
        /// Requires `len <= room`, `room <= len + 256`.
        ///
        /// Trusts stretches, which lie inside the file and the stream, and whose sums there are.
        ///
        /// In sets of at most 78 pages.
        trusting PngJoin<'a> = "png_crc" ["png_join"] &[Form::ONLY], 78;
        { file: View<'a>, stretches: View<'a>, count: u32, stream: ViewMut<'a>, len: u32, room: u32, sums: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stretches", it.stretches.len(), u64::from(it.count).saturating_mul(24))?;
            launch.has("stream", it.stream.len(), u64::from(it.room))?;
            launch.requires(u64::from(it.len) <= u64::from(it.room), "len <= room")?;
            launch.requires(u64::from(it.room) <= u64::from(it.len).saturating_add(256), "room <= len + 256")?;
        } { list.push(&it.file); list.push(&it.stretches); list.push(&it.count); list.push(&it.stream); list.push(&it.len); list.push(&it.room); list.push(&it.sums); }
    }

    arguments! {
        /// `png_agree` of kernels/png_crc.cu.
        ///
        /// Lengths `sums[count]`, `report[REPORT]`.
        ///
        /// In sets of at most 146 pages.
        checked PngAgree<'a> = "png_crc" ["png_agree"] &[Form::ONLY], 146;
        { sums: View<'a>, count: u32, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("sums", it.sums.len(), u64::from(it.count).saturating_mul(4))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.sums); list.push(&it.count); list.push(&it.report); }
    }

    arguments! {
        /// `png_crc` of kernels/png_crc.cu.
        ///
        /// Lengths `bytes[..]`, `stretches[count]`, `sums[..]`.
        ///
        /// Trusts stretches, which lie inside the bytes, and whose sums there are.
        ///
        /// In sets of at most 113 pages.
        trusting PngCrc<'a> = "png_crc" ["png_crc"] &[Form::ONLY], 113;
        { bytes: View<'a>, stretches: View<'a>, count: u32, sums: ViewMut<'a> }
        |it, launch, list| {
            launch.has("stretches", it.stretches.len(), u64::from(it.count).saturating_mul(24))?;
        } { list.push(&it.bytes); list.push(&it.stretches); list.push(&it.count); list.push(&it.sums); }
    }

    arguments! {
        /// `inflate_crc` of kernels/png_crc.cu.
        ///
        /// Lengths `bytes[..]`, `stretches[count]`, `sums[..]`, `report[REPORT]`.
        ///
        /// Trusts stretches, which lie inside the bytes, and whose sums there are.
        ///
        /// In sets of at most 92 pages.
        trusting InflateCrc<'a> = "png_crc" ["inflate_crc"] &[Form::ONLY], 92;
        { bytes: View<'a>, stretches: View<'a>, count: u32, sums: ViewMut<'a>, report: View<'a> }
        |it, launch, list| {
            launch.has("stretches", it.stretches.len(), u64::from(it.count).saturating_mul(24))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.bytes); list.push(&it.stretches); list.push(&it.count); list.push(&it.sums); list.push(&it.report); }
    }
}

/// kernels/png_filter.cu
pub mod png_filter {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    /// `TILE` of kernels/png_filter.cu.
    pub const TILE: u32 = 8_192;

    arguments! {
        /// `png_choose` of kernels/png_filter.cu.
        ///
        /// Lengths `image[row * height]`, `segments[grid.blocks]`.
        ///
        /// Requires `rows >= 1`, `grid.blocks == ceil(height, rows)`, `pixel >= 1`, `pixel <= row`, `swap <= 1`.
        ///
        /// In sets of at most 92 pages.
        checked PngChoose<'a> = "png_filter" ["png_choose"] &[Form::ONLY], 92;
        { image: View<'a>, row: u32, height: u32, rows: u32, pixel: u32, swap: u32, segments: ViewMut<'a> }
        |it, launch, list| {
            launch.has("image", it.image.len(), u64::from(it.row).saturating_mul(u64::from(it.height)))?;
            launch.has("segments", it.segments.len(), launch.blocks().saturating_mul(40))?;
            launch.requires(u64::from(it.rows) >= 1, "rows >= 1")?;
            launch.requires(launch.blocks() == u64::from(it.height).div_ceil(u64::from(it.rows).max(1)), "grid.blocks == ceil(height, rows)")?;
            launch.requires(u64::from(it.pixel) >= 1, "pixel >= 1")?;
            launch.requires(u64::from(it.pixel) <= u64::from(it.row), "pixel <= row")?;
            launch.requires(u64::from(it.swap) <= 1, "swap <= 1")?;
        } { list.push(&it.image); list.push(&it.row); list.push(&it.height); list.push(&it.rows); list.push(&it.pixel); list.push(&it.swap); list.push(&it.segments); }
    }

    arguments! {
        /// `png_filter` of kernels/png_filter.cu.
        ///
        /// Lengths `image[row * height]`, `segments[grid.blocks / tiles]`, `filtered[grid.blocks / tiles * stride]`.
        ///
        /// Requires `rows >= 1`, `tiles >= 1`, `grid.blocks == ceil(height, rows) * tiles`, `min(rows, height) * (row + 1) <= stride`, `stride % 16 == 0`, `swap <= 1`.
        ///
        /// In sets of at most 60 pages.
        checked PngFilter<'a> = "png_filter" ["png_filter"] &[Form::ONLY], 60;
        { image: View<'a>, row: u32, height: u32, rows: u32, pixel: u32, swap: u32, segments: ViewMut<'a>, filtered: ViewMut<'a>, stride: u64, tiles: u32 }
        |it, launch, list| {
            launch.has("image", it.image.len(), u64::from(it.row).saturating_mul(u64::from(it.height)))?;
            launch.has("segments", it.segments.len(), (launch.blocks() / u64::from(it.tiles).max(1)).saturating_mul(40))?;
            launch.has("filtered", it.filtered.len(), (launch.blocks() / u64::from(it.tiles).max(1)).saturating_mul(it.stride))?;
            launch.requires(u64::from(it.rows) >= 1, "rows >= 1")?;
            launch.requires(u64::from(it.tiles) >= 1, "tiles >= 1")?;
            launch.requires(launch.blocks() == u64::from(it.height).div_ceil(u64::from(it.rows).max(1)).saturating_mul(u64::from(it.tiles)), "grid.blocks == ceil(height, rows) * tiles")?;
            launch.requires(u64::from(it.rows).min(u64::from(it.height)).saturating_mul(u64::from(it.row).saturating_add(1)) <= it.stride, "min(rows, height) * (row + 1) <= stride")?;
            launch.requires(it.stride.is_multiple_of(16), "stride % 16 == 0")?;
            launch.requires(u64::from(it.swap) <= 1, "swap <= 1")?;
        } { list.push(&it.image); list.push(&it.row); list.push(&it.height); list.push(&it.rows); list.push(&it.pixel); list.push(&it.swap); list.push(&it.segments); list.push(&it.filtered); list.push(&it.stride); list.push(&it.tiles); }
    }

    arguments! {
        /// `png_estimate` of kernels/png_filter.cu.
        ///
        /// Lengths `filtered[grid.blocks * stride]`, `segments[grid.blocks]`.
        ///
        /// Requires `rows >= 1`, `grid.blocks == ceil(height, rows)`, `min(rows, height) * (row + 1) <= stride`.
        ///
        /// In sets of at most 92 pages.
        checked PngEstimate<'a> = "png_filter" ["png_estimate"] &[Form::ONLY], 92;
        { row: u32, height: u32, rows: u32, filtered: View<'a>, stride: u64, segments: ViewMut<'a> }
        |it, launch, list| {
            launch.has("filtered", it.filtered.len(), launch.blocks().saturating_mul(it.stride))?;
            launch.has("segments", it.segments.len(), launch.blocks().saturating_mul(40))?;
            launch.requires(u64::from(it.rows) >= 1, "rows >= 1")?;
            launch.requires(launch.blocks() == u64::from(it.height).div_ceil(u64::from(it.rows).max(1)), "grid.blocks == ceil(height, rows)")?;
            launch.requires(u64::from(it.rows).min(u64::from(it.height)).saturating_mul(u64::from(it.row).saturating_add(1)) <= it.stride, "min(rows, height) * (row + 1) <= stride")?;
        } { list.push(&it.row); list.push(&it.height); list.push(&it.rows); list.push(&it.filtered); list.push(&it.stride); list.push(&it.segments); }
    }
}

/// kernels/png_pack.cu
pub mod png_pack {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    arguments! {
        /// `png_place` of kernels/png_pack.cu.
        ///
        /// Lengths `block[count * blocks]`, `segments[count]`.
        ///
        /// Requires `rows >= 1`, `count == ceil(height, rows)`, `min(rows, height) * (row + 1) <= blocks * DEFLATE_BLOCK`.
        ///
        /// In sets of at most 92 pages.
        checked PngPlace<'a> = "png_pack" ["png_place"] &[Form::ONLY], 92;
        { row: u32, height: u32, rows: u32, count: u32, blocks: u32, block: ViewMut<'a>, segments: ViewMut<'a> }
        |it, launch, list| {
            launch.has("block", it.block.len(), u64::from(it.count).saturating_mul(u64::from(it.blocks)).saturating_mul(5800))?;
            launch.has("segments", it.segments.len(), u64::from(it.count).saturating_mul(40))?;
            launch.requires(u64::from(it.rows) >= 1, "rows >= 1")?;
            launch.requires(u64::from(it.count) == u64::from(it.height).div_ceil(u64::from(it.rows).max(1)), "count == ceil(height, rows)")?;
            launch.requires(u64::from(it.rows).min(u64::from(it.height)).saturating_mul(u64::from(it.row).saturating_add(1)) <= u64::from(it.blocks).saturating_mul(131_072), "min(rows, height) * (row + 1) <= blocks * DEFLATE_BLOCK")?;
        } { list.push(&it.row); list.push(&it.height); list.push(&it.rows); list.push(&it.count); list.push(&it.blocks); list.push(&it.block); list.push(&it.segments); }
    }

    arguments! {
        /// `png_pack` of kernels/png_pack.cu.
        ///
        /// Lengths `filtered[grid.blocks / blocks * stride]`, `block[grid.blocks]`, `places[grid.blocks / blocks]`, `out[..]`.
        ///
        /// Requires `rows >= 1`, `blocks >= 1`, `grid.blocks == ceil(height, rows) * blocks`, `min(rows, height) * (row + 1) <= stride`, `stride % 16 == 0`.
        ///
        /// Trusts block, as png_place leaves it, and places: from each on, `out` has room for the bytes of its segment.
        ///
        /// In sets of at most 60 pages.
        trusting PngPack<'a> = "png_pack" ["png_pack"] &[Form::ONLY], 60;
        { row: u32, height: u32, rows: u32, filtered: View<'a>, stride: u64, blocks: u32, block: View<'a>, places: View<'a>, out: ViewMut<'a> }
        |it, launch, list| {
            launch.has("filtered", it.filtered.len(), (launch.blocks() / u64::from(it.blocks).max(1)).saturating_mul(it.stride))?;
            launch.has("block", it.block.len(), launch.blocks().saturating_mul(5800))?;
            launch.has("places", it.places.len(), (launch.blocks() / u64::from(it.blocks).max(1)).saturating_mul(8))?;
            launch.requires(u64::from(it.rows) >= 1, "rows >= 1")?;
            launch.requires(u64::from(it.blocks) >= 1, "blocks >= 1")?;
            launch.requires(launch.blocks() == u64::from(it.height).div_ceil(u64::from(it.rows).max(1)).saturating_mul(u64::from(it.blocks)), "grid.blocks == ceil(height, rows) * blocks")?;
            launch.requires(u64::from(it.rows).min(u64::from(it.height)).saturating_mul(u64::from(it.row).saturating_add(1)) <= it.stride, "min(rows, height) * (row + 1) <= stride")?;
            launch.requires(it.stride.is_multiple_of(16), "stride % 16 == 0")?;
        } { list.push(&it.row); list.push(&it.height); list.push(&it.rows); list.push(&it.filtered); list.push(&it.stride); list.push(&it.blocks); list.push(&it.block); list.push(&it.places); list.push(&it.out); }
    }
}

/// kernels/png_rows.cu
pub mod png_rows {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    /// `GREY` of kernels/png_rows.cu.
    pub const GREY: u32 = 0;
    /// `GREY_KEY` of kernels/png_rows.cu.
    pub const GREY_KEY: u32 = 1;
    /// `RGB_KEY` of kernels/png_rows.cu.
    pub const RGB_KEY: u32 = 2;
    /// `PALETTE` of kernels/png_rows.cu.
    pub const PALETTE: u32 = 3;
    /// `PALETTE_OPACITY` of kernels/png_rows.cu.
    pub const PALETTE_OPACITY: u32 = 4;

    arguments! {
        /// `png_kinds` of kernels/png_rows.cu.
        ///
        /// Lengths `bytes[height * (row + 1) + 32]`, `filters[height]`, `report[REPORT]`.
        ///
        /// In sets of at most 113 pages.
        checked PngKinds<'a> = "png_rows" ["png_kinds"] &[Form::ONLY], 113;
        { bytes: ViewMut<'a>, row: u32, height: u32, filters: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("bytes", it.bytes.len(), u64::from(it.height).saturating_mul(u64::from(it.row).saturating_add(1)).saturating_add(32))?;
            launch.has("filters", it.filters.len(), u64::from(it.height))?;
            launch.has("report", it.report.len(), 64)?;
        } { list.push(&it.bytes); list.push(&it.row); list.push(&it.height); list.push(&it.filters); list.push(&it.report); }
    }

    arguments! {
        /// `png_expand` of kernels/png_rows.cu.
        ///
        /// Lengths `rows[row * height]`, `palette[colours]`, `samples[width * height * (mode == RGB_KEY ? bits / 2 : bits == 16 ? 4 : mode >= PALETTE ? mode : mode + 1)]`, `report[REPORT]`.
        ///
        /// Requires `width * bits * (mode == RGB_KEY ? 3 : 1) <= 8 * row`, `bits >= 1`, `mode <= PALETTE_OPACITY`, `colours >= (mode < PALETTE ? 0 : 1)`.
        ///
        /// In sets of at most 53 pages.
        checked PngExpand<'a> = "png_rows" ["png_expand"] &[Form::ONLY], 53;
        { rows: View<'a>, row: u32, width: u32, height: u32, bits: u32, mode: u32, key: u64, palette: View<'a>, colours: u32, samples: ViewMut<'a>, report: ViewMut<'a> }
        |it, launch, list| {
            launch.has("rows", it.rows.len(), u64::from(it.row).saturating_mul(u64::from(it.height)))?;
            launch.has("palette", it.palette.len(), u64::from(it.colours).saturating_mul(4))?;
            launch.has("samples", it.samples.len(), u64::from(it.width).saturating_mul(u64::from(it.height)).saturating_mul(if u64::from(it.mode) == 2 { u64::from(it.bits) / 2 } else { if u64::from(it.bits) == 16 { 4 } else { if u64::from(it.mode) >= 3 { u64::from(it.mode) } else { u64::from(it.mode).saturating_add(1) } } }))?;
            launch.has("report", it.report.len(), 64)?;
            launch.requires(u64::from(it.width).saturating_mul(u64::from(it.bits)).saturating_mul(if u64::from(it.mode) == 2 { 3 } else { 1 }) <= 8_u64.saturating_mul(u64::from(it.row)), "width * bits * (mode == RGB_KEY ? 3 : 1) <= 8 * row")?;
            launch.requires(u64::from(it.bits) >= 1, "bits >= 1")?;
            launch.requires(u64::from(it.mode) <= 4, "mode <= PALETTE_OPACITY")?;
            launch.requires(u64::from(it.colours) >= if u64::from(it.mode) < 3 { 0 } else { 1 }, "colours >= (mode < PALETTE ? 0 : 1)")?;
        } { list.push(&it.rows); list.push(&it.row); list.push(&it.width); list.push(&it.height); list.push(&it.bits); list.push(&it.mode); list.push(&it.key); list.push(&it.palette); list.push(&it.colours); list.push(&it.samples); list.push(&it.report); }
    }
}

/// kernels/png_unfilter.cu
pub mod png_unfilter {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    /// `DENSE` of kernels/png_unfilter.cu.
    pub const DENSE: u32 = 32;
    /// `SPARSE` of kernels/png_unfilter.cu.
    pub const SPARSE: u32 = 24;

    const FORMS: &[Form] = &[
        Form { name: "b1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "b2", sample: 1, channels: 1, pixel: 2 },
        Form { name: "b3", sample: 1, channels: 1, pixel: 3 },
        Form { name: "b4", sample: 1, channels: 1, pixel: 4 },
        Form { name: "b6", sample: 1, channels: 1, pixel: 6 },
        Form { name: "b8", sample: 1, channels: 1, pixel: 8 },
    ];

    arguments! {
        /// `png_flat` of kernels/png_unfilter.cu.
        ///
        /// Lengths `bytes[height * (row + 1) + 32]`, `filters[height]`, `image[row * height]`, `report[REPORT]`.
        ///
        /// Requires `swap <= 1`.
        ///
        /// In sets of at most 78 pages.
        checked PngFlat<'a> = "png_unfilter" ["png_flat"] FORMS, 78;
        { bytes: View<'a>, row: u32, height: u32, swap: u32, filters: View<'a>, image: ViewMut<'a>, report: View<'a> }
        |it, launch, list| {
            launch.has("bytes", it.bytes.len(), u64::from(it.height).saturating_mul(u64::from(it.row).saturating_add(1)).saturating_add(32))?;
            launch.has("filters", it.filters.len(), u64::from(it.height))?;
            launch.has("image", it.image.len(), u64::from(it.row).saturating_mul(u64::from(it.height)))?;
            launch.has("report", it.report.len(), 64)?;
            launch.requires(u64::from(it.swap) <= 1, "swap <= 1")?;
        } { list.push(&it.bytes); list.push(&it.row); list.push(&it.height); list.push(&it.swap); list.push(&it.filters); list.push(&it.image); list.push(&it.report); }
    }

    arguments! {
        /// `png_wave` of kernels/png_unfilter.cu.
        ///
        /// Lengths `bytes[height * (row + 1) + 32]`, `filters[height]`, `image[row * height]`, `report[REPORT]`, `progress[1 + ceil(height, SPARSE)]`.
        ///
        /// Requires `swap <= 1`, `width * PIXEL <= row`.
        ///
        /// In sets of at most 60 pages.
        checked PngWave<'a> = "png_unfilter" ["png_wave"] FORMS, 60;
        { bytes: View<'a>, row: u32, height: u32, swap: u32, filters: View<'a>, image: ViewMut<'a>, report: View<'a>, width: u32, progress: ViewMut<'a> }
        |it, launch, list| {
            launch.has("bytes", it.bytes.len(), u64::from(it.height).saturating_mul(u64::from(it.row).saturating_add(1)).saturating_add(32))?;
            launch.has("filters", it.filters.len(), u64::from(it.height))?;
            launch.has("image", it.image.len(), u64::from(it.row).saturating_mul(u64::from(it.height)))?;
            launch.has("report", it.report.len(), 64)?;
            launch.has("progress", it.progress.len(), 1_u64.saturating_add(u64::from(it.height).div_ceil(24)).saturating_mul(4))?;
            launch.requires(u64::from(it.swap) <= 1, "swap <= 1")?;
            launch.requires(u64::from(it.width).saturating_mul(launch.form.pixel) <= u64::from(it.row), "width * PIXEL <= row")?;
        } { list.push(&it.bytes); list.push(&it.row); list.push(&it.height); list.push(&it.swap); list.push(&it.filters); list.push(&it.image); list.push(&it.report); list.push(&it.width); list.push(&it.progress); }
    }
}

/// kernels/project.cu
pub mod project {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u16", sample: 2, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `add` of kernels/project.cu.
        ///
        /// Lengths `src[samples]`, `sums[samples]`.
        checked Add<'a> = "project" ["add"] FORMS, 0;
        { src: View<'a>, samples: u64, sums: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("sums", it.sums.len(), it.samples.saturating_mul(4))?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.sums); }
    }

    arguments! {
        /// `lower` of kernels/project.cu.
        ///
        /// Lengths `src[samples]`, `least[samples]`.
        checked Lower<'a> = "project" ["lower"] FORMS, 0;
        { src: View<'a>, samples: u64, least: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("least", it.least.len(), it.samples.saturating_mul(launch.form.sample))?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.least); }
    }

    arguments! {
        /// `raise` of kernels/project.cu.
        ///
        /// Lengths `src[samples]`, `greatest[samples]`.
        checked Raise<'a> = "project" ["raise"] FORMS, 0;
        { src: View<'a>, samples: u64, greatest: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("greatest", it.greatest.len(), it.samples.saturating_mul(launch.form.sample))?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.greatest); }
    }

    arguments! {
        /// `median` of kernels/project.cu.
        ///
        /// Lengths `src[images * samples]`, `dst[samples]`.
        ///
        /// Requires `images >= 1`, `images <= 65535`.
        checked Median<'a> = "project" ["median"] FORMS, 0;
        { src: View<'a>, samples: u64, images: u32, dst: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), u64::from(it.images).saturating_mul(it.samples).saturating_mul(launch.form.sample))?;
            launch.has("dst", it.dst.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.requires(u64::from(it.images) >= 1, "images >= 1")?;
            launch.requires(u64::from(it.images) <= 65535, "images <= 65535")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.images); list.push(&it.dst); }
    }
}

/// kernels/sum.cu
pub mod sum {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8_c1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u8_c2", sample: 1, channels: 2, pixel: 1 },
        Form { name: "u8_c3", sample: 1, channels: 3, pixel: 1 },
        Form { name: "u8_c4", sample: 1, channels: 4, pixel: 1 },
        Form { name: "u16_c1", sample: 2, channels: 1, pixel: 1 },
        Form { name: "u16_c2", sample: 2, channels: 2, pixel: 1 },
        Form { name: "u16_c3", sample: 2, channels: 3, pixel: 1 },
        Form { name: "u16_c4", sample: 2, channels: 4, pixel: 1 },
        Form { name: "u32", sample: 4, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `sum` of kernels/sum.cu.
        ///
        /// Lengths `src[samples]`, `totals[CHANNELS]`.
        ///
        /// Requires `samples % CHANNELS == 0`.
        ///
        /// In sets of at most 146 pages.
        checked Sum<'a> = "sum" ["sum"] FORMS, 146;
        { src: View<'a>, samples: u64, totals: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("totals", it.totals.len(), launch.form.channels.saturating_mul(8))?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.totals); }
    }
}

/// kernels/tiff_rows.cu
pub mod tiff_rows {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "s1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "s2", sample: 2, channels: 1, pixel: 1 },
        Form { name: "s4", sample: 4, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `tiff_rows` of kernels/tiff_rows.cu.
        ///
        /// Lengths `bytes[((ceil(width, chunk_width) - 1) * ceil(height, chunk_height) * chunk_height + height) * chunk_width * channels * SAMPLE]`, `image[width * height * channels]`, `report[REPORT]`.
        ///
        /// Requires `chunk_width >= 1`, `chunk_height >= 1`, `channels >= 1`.
        ///
        /// In sets of at most 68 pages.
        checked TiffRows<'a> = "tiff_rows" ["tiff_rows"] FORMS, 68;
        { bytes: View<'a>, width: u32, height: u32, channels: u32, chunk_width: u32, chunk_height: u32, differences: u32, swap: u32, kind: u32, image: ViewMut<'a>, report: View<'a> }
        |it, launch, list| {
            launch.has("bytes", it.bytes.len(), u64::from(it.width).div_ceil(u64::from(it.chunk_width).max(1)).saturating_sub(1).saturating_mul(u64::from(it.height).div_ceil(u64::from(it.chunk_height).max(1))).saturating_mul(u64::from(it.chunk_height)).saturating_add(u64::from(it.height)).saturating_mul(u64::from(it.chunk_width)).saturating_mul(u64::from(it.channels)).saturating_mul(launch.form.sample))?;
            launch.has("image", it.image.len(), u64::from(it.width).saturating_mul(u64::from(it.height)).saturating_mul(u64::from(it.channels)).saturating_mul(launch.form.sample))?;
            launch.has("report", it.report.len(), 64)?;
            launch.requires(u64::from(it.chunk_width) >= 1, "chunk_width >= 1")?;
            launch.requires(u64::from(it.chunk_height) >= 1, "chunk_height >= 1")?;
            launch.requires(u64::from(it.channels) >= 1, "channels >= 1")?;
        } { list.push(&it.bytes); list.push(&it.width); list.push(&it.height); list.push(&it.channels); list.push(&it.chunk_width); list.push(&it.chunk_height); list.push(&it.differences); list.push(&it.swap); list.push(&it.kind); list.push(&it.image); list.push(&it.report); }
    }
}

/// kernels/transpose.cu
pub mod transpose {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "b1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "b2", sample: 1, channels: 1, pixel: 2 },
        Form { name: "b3", sample: 1, channels: 1, pixel: 3 },
        Form { name: "b4", sample: 1, channels: 1, pixel: 4 },
        Form { name: "b6", sample: 1, channels: 1, pixel: 6 },
        Form { name: "b8", sample: 1, channels: 1, pixel: 8 },
    ];

    arguments! {
        /// `transpose` of kernels/transpose.cu.
        ///
        /// Lengths `src[width * height * PIXEL]`, `dst[width * height * PIXEL]`.
        ///
        /// In sets of at most 92 pages.
        checked Transpose<'a> = "transpose" ["transpose"] FORMS, 92;
        { src: View<'a>, dst: ViewMut<'a>, width: u64, height: u64, reverse_x: u32, reverse_y: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.width.saturating_mul(it.height).saturating_mul(launch.form.pixel))?;
            launch.has("dst", it.dst.len(), it.width.saturating_mul(it.height).saturating_mul(launch.form.pixel))?;
        } { list.push(&it.src); list.push(&it.dst); list.push(&it.width); list.push(&it.height); list.push(&it.reverse_x); list.push(&it.reverse_y); }
    }
}

/// kernels/wide_count.cu
pub mod wide_count {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    arguments! {
        /// `count` of kernels/wide_count.cu.
        ///
        /// Lengths `src[samples]`, `bins[65536]`.
        ///
        /// Requires `channels >= 1`.
        checked Count<'a> = "wide_count" ["count"] &[Form::ONLY], 0;
        { src: View<'a>, samples: u64, channels: u32, first: u32, counted: u32, least: u32, span: u32, upper: u32, bins: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(4))?;
            launch.has("bins", it.bins.len(), 524_288)?;
            launch.requires(u64::from(it.channels) >= 1, "channels >= 1")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.channels); list.push(&it.first); list.push(&it.counted); list.push(&it.least); list.push(&it.span); list.push(&it.upper); list.push(&it.bins); }
    }
}

/// kernels/wide_extremes.cu
pub mod wide_extremes {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "c1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "c2", sample: 1, channels: 2, pixel: 1 },
        Form { name: "c3", sample: 1, channels: 3, pixel: 1 },
        Form { name: "c4", sample: 1, channels: 4, pixel: 1 },
    ];

    arguments! {
        /// `extremes` of kernels/wide_extremes.cu.
        ///
        /// Lengths `src[samples]`, `ranges[10]`.
        ///
        /// Requires `samples % CHANNELS == 0`.
        checked Extremes<'a> = "wide_extremes" ["extremes"] FORMS, 0;
        { src: View<'a>, samples: u64, least: u32, span: u32, ranges: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(4))?;
            launch.has("ranges", it.ranges.len(), 40)?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.least); list.push(&it.span); list.push(&it.ranges); }
    }
}

/// kernels/wide_stretch.cu
pub mod wide_stretch {
    use crate::gpu::driver::launch::{arguments, record, Form, View, ViewMut};

    record! {
        /// `Scaling` of kernels/wide_stretch.cu.
        Scaling = 40 { least: f64, factor: f64, span: f64, min: u32, max: u32, lo: u32, hi: u32 }
    }

    const FORMS: &[Form] = &[
        Form { name: "u8_c1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u8_c2", sample: 1, channels: 2, pixel: 1 },
        Form { name: "u8_c3", sample: 1, channels: 3, pixel: 1 },
        Form { name: "u8_c4", sample: 1, channels: 4, pixel: 1 },
        Form { name: "u16_c1", sample: 2, channels: 1, pixel: 1 },
        Form { name: "u16_c2", sample: 2, channels: 2, pixel: 1 },
        Form { name: "u16_c3", sample: 2, channels: 3, pixel: 1 },
        Form { name: "u16_c4", sample: 2, channels: 4, pixel: 1 },
    ];

    arguments! {
        /// `stretch` of kernels/wide_stretch.cu.
        ///
        /// Lengths `src[samples]`, `dst[samples]`, `scales[CHANNELS]`.
        ///
        /// Requires `samples % CHANNELS == 0`, `grid.blocks == ceil(samples, 4096)`.
        checked Stretch<'a> = "wide_stretch" ["stretch"] FORMS, 0;
        { src: View<'a>, dst: ViewMut<'a>, samples: u64, scales: View<'a>, is_real: u32, nan: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(4))?;
            launch.has("dst", it.dst.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("scales", it.scales.len(), launch.form.channels.saturating_mul(40))?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
            launch.requires(launch.blocks() == it.samples.div_ceil(4096), "grid.blocks == ceil(samples, 4096)")?;
        } { list.push(&it.src); list.push(&it.dst); list.push(&it.samples); list.push(&it.scales); list.push(&it.is_real); list.push(&it.nan); }
    }
}

/// kernels/wide_sum.cu
pub mod wide_sum {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    /// `EXPONENTS` of kernels/wide_sum.cu.
    pub const EXPONENTS: u32 = 254;

    const FORMS: &[Form] = &[
        Form { name: "c1", sample: 1, channels: 1, pixel: 1 },
        Form { name: "c2", sample: 1, channels: 2, pixel: 1 },
        Form { name: "c3", sample: 1, channels: 3, pixel: 1 },
        Form { name: "c4", sample: 1, channels: 4, pixel: 1 },
    ];

    arguments! {
        /// `sum` of kernels/wide_sum.cu.
        ///
        /// Lengths `src[samples]`, `totals[2 * EXPONENTS * CHANNELS + 1]`.
        ///
        /// Requires `samples % CHANNELS == 0`.
        checked Sum<'a> = "wide_sum" ["sum"] FORMS, 0;
        { src: View<'a>, samples: u64, is_real: u32, nan: u32, totals: ViewMut<'a> }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(4))?;
            launch.has("totals", it.totals.len(), 2_u64.saturating_mul(254).saturating_mul(launch.form.channels).saturating_add(1).saturating_mul(8))?;
            launch.requires(it.samples.is_multiple_of(launch.form.channels), "samples % CHANNELS == 0")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.is_real); list.push(&it.nan); list.push(&it.totals); }
    }
}

/// kernels/zscale.cu
pub mod zscale {
    use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

    const FORMS: &[Form] = &[
        Form { name: "u8", sample: 1, channels: 1, pixel: 1 },
        Form { name: "u16", sample: 2, channels: 1, pixel: 1 },
    ];

    arguments! {
        /// `pick` of kernels/zscale.cu.
        ///
        /// Lengths `src[samples]`, `picked[count]`.
        ///
        /// Requires `channels >= 1`, `colours >= 1`.
        checked Pick<'a> = "zscale" ["pick"] FORMS, 0;
        { src: View<'a>, samples: u64, picked: ViewMut<'a>, count: u64, stride: u64, channels: u32, colours: u32 }
        |it, launch, list| {
            launch.has("src", it.src.len(), it.samples.saturating_mul(launch.form.sample))?;
            launch.has("picked", it.picked.len(), it.count.saturating_mul(launch.form.sample))?;
            launch.requires(u64::from(it.channels) >= 1, "channels >= 1")?;
            launch.requires(u64::from(it.colours) >= 1, "colours >= 1")?;
        } { list.push(&it.src); list.push(&it.samples); list.push(&it.picked); list.push(&it.count); list.push(&it.stride); list.push(&it.channels); list.push(&it.colours); }
    }
}

/// kernels/papers
pub mod papers {
    /// kernels/papers/fused.cu
    pub mod fused {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `fused` of kernels/papers/fused.cu.
            ///
            /// Lengths `src[vectors * 8]`, `dst[vectors * 8]`, `state[5]`.
            ///
            /// Requires `grid.block == BLOCK`, `lo <= hi`.
            ///
            /// Trusts state, as the launches before have left it, and that the launch is cooperative.
            trusting Fused<'a> = "papers/fused" ["fused"] &[Form::ONLY], 0;
            { src: View<'a>, dst: ViewMut<'a>, vectors: u64, state: ViewMut<'a>, lo: u32, hi: u32 }
            |it, launch, list| {
                launch.has("src", it.src.len(), it.vectors.saturating_mul(8).saturating_mul(2))?;
                launch.has("dst", it.dst.len(), it.vectors.saturating_mul(8).saturating_mul(2))?;
                launch.has("state", it.state.len(), 20)?;
                launch.requires(launch.block() == 256, "grid.block == BLOCK")?;
                launch.requires(u64::from(it.lo) <= u64::from(it.hi), "lo <= hi")?;
            } { list.push(&it.src); list.push(&it.dst); list.push(&it.vectors); list.push(&it.state); list.push(&it.lo); list.push(&it.hi); }
        }
    }

    /// kernels/papers/launch.cu
    pub mod launch {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `empty` of kernels/papers/launch.cu.
            checked Empty = "papers/launch" ["empty"] &[Form::ONLY], 0;
            {}
            |it, launch, list| {
            } {}
        }

        arguments! {
            /// `mark` of kernels/papers/launch.cu.
            ///
            /// Lengths `marks[i + 1]`.
            checked Mark<'a> = "papers/launch" ["mark"] &[Form::ONLY], 0;
            { marks: ViewMut<'a>, i: u32 }
            |it, launch, list| {
                launch.has("marks", it.marks.len(), u64::from(it.i).saturating_add(1).saturating_mul(4))?;
            } { list.push(&it.marks); list.push(&it.i); }
        }

        arguments! {
            /// `spin` of kernels/papers/launch.cu.
            checked Spin = "papers/launch" ["spin"] &[Form::ONLY], 0;
            { nanoseconds: u64 }
            |it, launch, list| {
            } { list.push(&it.nanoseconds); }
        }

        arguments! {
            /// `differing` of kernels/papers/launch.cu.
            ///
            /// Lengths `a[n]`, `b[n]`, `count[1]`.
            checked Differing<'a> = "papers/launch" ["differing"] &[Form::ONLY], 0;
            { a: View<'a>, b: View<'a>, n: u64, count: ViewMut<'a> }
            |it, launch, list| {
                launch.has("a", it.a.len(), it.n.saturating_mul(4))?;
                launch.has("b", it.b.len(), it.n.saturating_mul(4))?;
                launch.has("count", it.count.len(), 8)?;
            } { list.push(&it.a); list.push(&it.b); list.push(&it.n); list.push(&it.count); }
        }
    }

    /// kernels/papers/layout.cu
    pub mod layout {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `rows` of kernels/papers/layout.cu.
            ///
            /// Lengths `data[(rows - 1) * pitch + min(width, grid.block)]`, `sums[grid.threads]`.
            checked Rows<'a> = "papers/layout" ["rows"] &[Form::ONLY], 0;
            { data: View<'a>, rows: u32, width: u32, pitch: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.rows).saturating_sub(1).saturating_mul(u64::from(it.pitch)).saturating_add(u64::from(it.width).min(launch.block())).saturating_mul(4))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.rows); list.push(&it.width); list.push(&it.pitch); list.push(&it.sums); }
        }

        arguments! {
            /// `records` of kernels/papers/layout.cu.
            ///
            /// Lengths `abc[3 * n]`.
            checked Records<'a> = "papers/layout" ["records"] &[Form::ONLY], 0;
            { abc: ViewMut<'a>, n: u64 }
            |it, launch, list| {
                launch.has("abc", it.abc.len(), 3_u64.saturating_mul(it.n).saturating_mul(4))?;
            } { list.push(&it.abc); list.push(&it.n); }
        }

        arguments! {
            /// `arrays` of kernels/papers/layout.cu.
            ///
            /// Lengths `a[n]`, `b[n]`, `c[n]`.
            checked Arrays<'a> = "papers/layout" ["arrays"] &[Form::ONLY], 0;
            { a: View<'a>, b: View<'a>, c: ViewMut<'a>, n: u64 }
            |it, launch, list| {
                launch.has("a", it.a.len(), it.n.saturating_mul(4))?;
                launch.has("b", it.b.len(), it.n.saturating_mul(4))?;
                launch.has("c", it.c.len(), it.n.saturating_mul(4))?;
            } { list.push(&it.a); list.push(&it.b); list.push(&it.c); list.push(&it.n); }
        }

        arguments! {
            /// `gather` of kernels/papers/layout.cu.
            ///
            /// Lengths `data[..]`, `index[n]`, `out[n]`.
            ///
            /// Trusts index, each of whose words is the number of a word of data.
            trusting Gather<'a> = "papers/layout" ["gather"] &[Form::ONLY], 0;
            { data: View<'a>, index: View<'a>, out: ViewMut<'a>, n: u64 }
            |it, launch, list| {
                launch.has("index", it.index.len(), it.n.saturating_mul(4))?;
                launch.has("out", it.out.len(), it.n.saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.index); list.push(&it.out); list.push(&it.n); }
        }

        arguments! {
            /// `column`, `column_transposed` of kernels/papers/layout.cu.
            ///
            /// Lengths `data[rows * width]`, `sums[grid.threads]`.
            ///
            /// Requires `column < width`.
            checked Column<'a> = "papers/layout" ["column", "column_transposed"] &[Form::ONLY], 0;
            { data: View<'a>, rows: u32, width: u32, column: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.rows).saturating_mul(u64::from(it.width)).saturating_mul(4))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
                launch.requires(u64::from(it.column) < u64::from(it.width), "column < width")?;
            } { list.push(&it.data); list.push(&it.rows); list.push(&it.width); list.push(&it.column); list.push(&it.sums); }
        }

        arguments! {
            /// `point` of kernels/papers/layout.cu.
            ///
            /// Lengths `data[pitch * rows]`, `table[rows]`.
            checked Point<'a> = "papers/layout" ["point"] &[Form::ONLY], 0;
            { data: View<'a>, pitch: u64, rows: u32, step: u32, table: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), it.pitch.saturating_mul(u64::from(it.rows)).saturating_mul(4))?;
                launch.has("table", it.table.len(), u64::from(it.rows).saturating_mul(8))?;
            } { list.push(&it.data); list.push(&it.pitch); list.push(&it.rows); list.push(&it.step); list.push(&it.table); }
        }

        arguments! {
            /// `pointer_rows` of kernels/papers/layout.cu.
            ///
            /// Lengths `table[rows]`, `sums[grid.threads]`.
            ///
            /// Trusts table, as `point` leaves it for rows of 32 words.
            trusting PointerRows<'a> = "papers/layout" ["pointer_rows"] &[Form::ONLY], 0;
            { table: View<'a>, rows: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("table", it.table.len(), u64::from(it.rows).saturating_mul(8))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.table); list.push(&it.rows); list.push(&it.sums); }
        }

        arguments! {
            /// `direct_rows` of kernels/papers/layout.cu.
            ///
            /// Lengths `data[rows * 32]`, `sums[grid.threads]`.
            checked DirectRows<'a> = "papers/layout" ["direct_rows"] &[Form::ONLY], 0;
            { data: View<'a>, rows: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.rows).saturating_mul(32).saturating_mul(4))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.rows); list.push(&it.sums); }
        }

        arguments! {
            /// `pointer_column` of kernels/papers/layout.cu.
            ///
            /// Lengths `table[rows]`, `sums[grid.threads]`.
            ///
            /// Trusts table, as `point` leaves it for rows of more than `column` words.
            trusting PointerColumn<'a> = "papers/layout" ["pointer_column"] &[Form::ONLY], 0;
            { table: View<'a>, rows: u32, column: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("table", it.table.len(), u64::from(it.rows).saturating_mul(8))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.table); list.push(&it.rows); list.push(&it.column); list.push(&it.sums); }
        }

        arguments! {
            /// `scattered_l1`, `scattered_l2` of kernels/papers/layout.cu.
            ///
            /// Lengths `data[groups * lines * 32]`, `sums[grid.threads]`.
            ///
            /// Requires `lines >= 1`, `lines <= 32`.
            checked Scattered<'a> = "papers/layout" ["scattered_l1", "scattered_l2"] &[Form::ONLY], 0;
            { data: View<'a>, groups: u32, lines: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.groups).saturating_mul(u64::from(it.lines)).saturating_mul(32).saturating_mul(4))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
                launch.requires(u64::from(it.lines) >= 1, "lines >= 1")?;
                launch.requires(u64::from(it.lines) <= 32, "lines <= 32")?;
            } { list.push(&it.data); list.push(&it.groups); list.push(&it.lines); list.push(&it.sums); }
        }

        arguments! {
            /// `window` of kernels/papers/layout.cu.
            ///
            /// Lengths `data[grid.blocks * words]`, `sums[grid.threads]`.
            ///
            /// Requires `words >= 1`.
            checked Window<'a> = "papers/layout" ["window"] &[Form::ONLY], 0;
            { data: View<'a>, words: u32, turns: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), launch.blocks().saturating_mul(u64::from(it.words)).saturating_mul(4))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
                launch.requires(u64::from(it.words) >= 1, "words >= 1")?;
            } { list.push(&it.data); list.push(&it.words); list.push(&it.turns); list.push(&it.sums); }
        }
    }

    /// kernels/papers/local.cu
    pub mod local {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `registers_4`, `registers_16`, `registers_64`, `spilled_4`, `spilled_16`, `spilled_64`, `spilled_256`, `roomy_64`, `tight_64` of kernels/papers/local.cu.
            ///
            /// Lengths `src[N * threads]`, `dst[threads]`.
            checked Local<'a> = "papers/local" ["registers_4", "registers_16", "registers_64", "spilled_4", "spilled_16", "spilled_64", "spilled_256", "roomy_64", "tight_64"] &[Form::ONLY], 0;
            { src: View<'a>, dst: ViewMut<'a>, threads: u64 }
            |it, launch, list| {
                launch.has("src", it.src.len(), launch.number().saturating_mul(it.threads).saturating_mul(4))?;
                launch.has("dst", it.dst.len(), it.threads.saturating_mul(4))?;
            } { list.push(&it.src); list.push(&it.dst); list.push(&it.threads); }
        }
    }

    /// kernels/papers/memory.cu
    pub mod memory {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `read`, `read_last` of kernels/papers/memory.cu.
            ///
            /// Lengths `data[pieces * piece]`, `sums[grid.threads]`.
            checked Read<'a> = "papers/memory" ["read", "read_last"] &[Form::ONLY], 0;
            { data: View<'a>, pieces: u32, piece: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(2))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.pieces); list.push(&it.piece); list.push(&it.sums); }
        }

        arguments! {
            /// `copy` of kernels/papers/memory.cu.
            ///
            /// Lengths `src[pieces * piece]`, `dst[pieces * piece]`.
            checked Copy<'a> = "papers/memory" ["copy"] &[Form::ONLY], 0;
            { src: View<'a>, dst: ViewMut<'a>, pieces: u32, piece: u32 }
            |it, launch, list| {
                launch.has("src", it.src.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(2))?;
                launch.has("dst", it.dst.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(2))?;
            } { list.push(&it.src); list.push(&it.dst); list.push(&it.pieces); list.push(&it.piece); }
        }

        arguments! {
            /// `read_scattered` of kernels/papers/memory.cu.
            ///
            /// Lengths `data[pieces * piece]`, `sums[grid.threads]`.
            checked ReadScattered<'a> = "papers/memory" ["read_scattered"] &[Form::ONLY], 0;
            { data: View<'a>, pieces: u32, piece: u32, sums: ViewMut<'a>, factor: u32 }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(2))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.pieces); list.push(&it.piece); list.push(&it.sums); list.push(&it.factor); }
        }

        arguments! {
            /// `double_index` of kernels/papers/memory.cu.
            ///
            /// Lengths `data[..]`, `sums[grid.threads]`, `index[pieces * piece]`.
            ///
            /// Trusts index: each word and the number of a piece give the number of an element of data.
            trusting DoubleIndex<'a> = "papers/memory" ["double_index"] &[Form::ONLY], 0;
            { data: View<'a>, pieces: u32, piece: u32, sums: ViewMut<'a>, index: View<'a> }
            |it, launch, list| {
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
                launch.has("index", it.index.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.pieces); list.push(&it.piece); list.push(&it.sums); list.push(&it.index); }
        }

        arguments! {
            /// `triple_index` of kernels/papers/memory.cu.
            ///
            /// Lengths `data[..]`, `sums[grid.threads]`, `index[..]`, `order[pieces * piece]`.
            ///
            /// Trusts order and index: each word of order is the number of a word of index, which with the number of a piece gives that of an element.
            trusting TripleIndex<'a> = "papers/memory" ["triple_index"] &[Form::ONLY], 0;
            { data: View<'a>, pieces: u32, piece: u32, sums: ViewMut<'a>, index: View<'a>, order: View<'a> }
            |it, launch, list| {
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
                launch.has("order", it.order.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.pieces); list.push(&it.piece); list.push(&it.sums); list.push(&it.index); list.push(&it.order); }
        }

        arguments! {
            /// `read_words`, `read_permuted` of kernels/papers/memory.cu.
            ///
            /// Lengths `data[n]`, `sums[grid.threads]`.
            checked ReadWords<'a> = "papers/memory" ["read_words", "read_permuted"] &[Form::ONLY], 0;
            { data: View<'a>, n: u64, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), it.n.saturating_mul(4))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.n); list.push(&it.sums); }
        }

        arguments! {
            /// `read_wide` of kernels/papers/memory.cu.
            ///
            /// Lengths `data[n]`, `sums[grid.threads]`.
            checked ReadWide<'a> = "papers/memory" ["read_wide"] &[Form::ONLY], 0;
            { data: View<'a>, n: u64, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), it.n.saturating_mul(16))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.n); list.push(&it.sums); }
        }

        arguments! {
            /// `copy_wide` of kernels/papers/memory.cu.
            ///
            /// Lengths `src[n]`, `dst[n]`.
            checked CopyWide<'a> = "papers/memory" ["copy_wide"] &[Form::ONLY], 0;
            { src: View<'a>, dst: ViewMut<'a>, n: u64 }
            |it, launch, list| {
                launch.has("src", it.src.len(), it.n.saturating_mul(16))?;
                launch.has("dst", it.dst.len(), it.n.saturating_mul(16))?;
            } { list.push(&it.src); list.push(&it.dst); list.push(&it.n); }
        }

        arguments! {
            /// `write_wide` of kernels/papers/memory.cu.
            ///
            /// Lengths `dst[n]`.
            checked WriteWide<'a> = "papers/memory" ["write_wide"] &[Form::ONLY], 0;
            { dst: ViewMut<'a>, n: u64, word: u32 }
            |it, launch, list| {
                launch.has("dst", it.dst.len(), it.n.saturating_mul(16))?;
            } { list.push(&it.dst); list.push(&it.n); list.push(&it.word); }
        }

        arguments! {
            /// `copy_by_2`, `copy_by_4`, `copy_by_8`, `copy_by_16` of kernels/papers/memory.cu.
            ///
            /// Lengths `src[n]`, `dst[n]`.
            checked CopyBy<'a> = "papers/memory" ["copy_by_2", "copy_by_4", "copy_by_8", "copy_by_16"] &[Form::ONLY], 0;
            { src: View<'a>, dst: ViewMut<'a>, n: u64 }
            |it, launch, list| {
                launch.has("src", it.src.len(), it.n.saturating_mul(16))?;
                launch.has("dst", it.dst.len(), it.n.saturating_mul(16))?;
            } { list.push(&it.src); list.push(&it.dst); list.push(&it.n); }
        }

        arguments! {
            /// `read_on` of kernels/papers/memory.cu.
            ///
            /// Lengths `data[n]`, `next[1]`, `sums[grid.threads]`.
            checked ReadOn<'a> = "papers/memory" ["read_on"] &[Form::ONLY], 0;
            { data: View<'a>, n: u64, most: u32, next: ViewMut<'a>, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), it.n.saturating_mul(16))?;
                launch.has("next", it.next.len(), 4)?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.n); list.push(&it.most); list.push(&it.next); list.push(&it.sums); }
        }

        arguments! {
            /// `read_texture` of kernels/papers/memory.cu.
            ///
            /// Lengths `sums[grid.threads]`.
            ///
            /// Trusts texture, a texture object of width × height words.
            trusting ReadTexture<'a> = "papers/memory" ["read_texture"] &[Form::ONLY], 0;
            { texture: u64, width: u32, height: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.texture); list.push(&it.width); list.push(&it.height); list.push(&it.sums); }
        }
    }

    /// kernels/papers/minmax.cu
    pub mod minmax {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `serial`, `minimum`, `maximum`, `registers`, `tree`, `warp`, `nested_1`, `nested_2`, `nested_3`, `nested_4`, `nested_8` of kernels/papers/minmax.cu.
            ///
            /// Lengths `data[pieces * piece]`, `range[2]`.
            ///
            /// Requires `grid.block <= MOST`.
            checked Minmax<'a> = "papers/minmax" ["serial", "minimum", "maximum", "registers", "tree", "warp", "nested_1", "nested_2", "nested_3", "nested_4", "nested_8"] &[Form::ONLY], 0;
            { data: View<'a>, pieces: u32, piece: u32, range: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(2))?;
                launch.has("range", it.range.len(), 8)?;
                launch.requires(launch.block() <= 1_024, "grid.block <= MOST")?;
            } { list.push(&it.data); list.push(&it.pieces); list.push(&it.piece); list.push(&it.range); }
        }
    }

    /// kernels/papers/normalize.cu
    pub mod normalize {
        use crate::gpu::driver::launch::{arguments, Form, ViewMut};

        arguments! {
            /// `truncating`, `rounding`, `half_up`, `half_up_double`, `nearest_even`, `magic` of kernels/papers/normalize.cu.
            ///
            /// Lengths `data[pieces * piece]`.
            checked Change<'a> = "papers/normalize" ["truncating", "rounding", "half_up", "half_up_double", "nearest_even", "magic"] &[Form::ONLY], 0;
            { data: ViewMut<'a>, pieces: u32, piece: u32, sub: f32, factor: f32 }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(2))?;
            } { list.push(&it.data); list.push(&it.pieces); list.push(&it.piece); list.push(&it.sub); list.push(&it.factor); }
        }

        arguments! {
            /// `exact` of kernels/papers/normalize.cu.
            ///
            /// Lengths `data[pieces * piece]`.
            ///
            /// Requires `d >= 1`.
            checked Exact<'a> = "papers/normalize" ["exact"] &[Form::ONLY], 0;
            { data: ViewMut<'a>, pieces: u32, piece: u32, min: u32, span: u32, d: u32 }
            |it, launch, list| {
                launch.has("data", it.data.len(), u64::from(it.pieces).saturating_mul(u64::from(it.piece)).saturating_mul(2))?;
                launch.requires(u64::from(it.d) >= 1, "d >= 1")?;
            } { list.push(&it.data); list.push(&it.pieces); list.push(&it.piece); list.push(&it.min); list.push(&it.span); list.push(&it.d); }
        }
    }

    /// kernels/papers/onchip.cu
    pub mod onchip {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `banks` of kernels/papers/onchip.cu.
            ///
            /// Lengths `sums[grid.threads]`.
            checked Banks<'a> = "papers/onchip" ["banks"] &[Form::ONLY], 0;
            { stride: u32, turns: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.stride); list.push(&it.turns); list.push(&it.sums); }
        }

        arguments! {
            /// `constant_same`, `constant_lanes` of kernels/papers/onchip.cu.
            ///
            /// Lengths `sums[grid.threads]`.
            checked Constant<'a> = "papers/onchip" ["constant_same", "constant_lanes"] &[Form::ONLY], 0;
            { turns: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.turns); list.push(&it.sums); }
        }

        arguments! {
            /// `global_lanes` of kernels/papers/onchip.cu.
            ///
            /// Lengths `table[256]`, `sums[grid.threads]`.
            checked GlobalLanes<'a> = "papers/onchip" ["global_lanes"] &[Form::ONLY], 0;
            { table: View<'a>, turns: u32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("table", it.table.len(), 1_024)?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.table); list.push(&it.turns); list.push(&it.sums); }
        }

        arguments! {
            /// `chase_l2`, `chase_l1`, `chase_shared`, `chase_local` of kernels/papers/onchip.cu.
            ///
            /// Lengths `next[..]`, `position[1]`.
            ///
            /// Trusts next and position, whose words are numbers of words of next; chase_shared and chase_local read the first RING of them.
            trusting Chase<'a> = "papers/onchip" ["chase_l2", "chase_l1", "chase_shared", "chase_local"] &[Form::ONLY], 0;
            { next: View<'a>, steps: u32, position: ViewMut<'a> }
            |it, launch, list| {
                launch.has("position", it.position.len(), 4)?;
            } { list.push(&it.next); list.push(&it.steps); list.push(&it.position); }
        }

        arguments! {
            /// `chase_texture` of kernels/papers/onchip.cu.
            ///
            /// Lengths `position[1]`.
            ///
            /// Trusts texture and position: a texture object with rows of 64 words, which are numbers of its words, as is the position.
            trusting ChaseTexture<'a> = "papers/onchip" ["chase_texture"] &[Form::ONLY], 0;
            { texture: u64, steps: u32, position: ViewMut<'a> }
            |it, launch, list| {
                launch.has("position", it.position.len(), 4)?;
            } { list.push(&it.texture); list.push(&it.steps); list.push(&it.position); }
        }

        arguments! {
            /// `chase_registers` of kernels/papers/onchip.cu.
            ///
            /// Lengths `position[1]`.
            checked ChaseRegisters<'a> = "papers/onchip" ["chase_registers"] &[Form::ONLY], 0;
            { factor: u32, steps: u32, position: ViewMut<'a> }
            |it, launch, list| {
                launch.has("position", it.position.len(), 4)?;
            } { list.push(&it.factor); list.push(&it.steps); list.push(&it.position); }
        }

        arguments! {
            /// `chase_constant` of kernels/papers/onchip.cu.
            ///
            /// Lengths `position[1]`.
            ///
            /// Trusts position, which is below 256.
            trusting ChaseConstant<'a> = "papers/onchip" ["chase_constant"] &[Form::ONLY], 0;
            { steps: u32, position: ViewMut<'a> }
            |it, launch, list| {
                launch.has("position", it.position.len(), 4)?;
            } { list.push(&it.steps); list.push(&it.position); }
        }
    }

    /// kernels/papers/reduce.cu
    pub mod reduce {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `step_1`, `step_2`, `step_3`, `step_4`, `step_5`, `step_6`, `step_6_32`, `step_6_64`, `step_6_128`, `step_6_512`, `step_6_1024`, `step_7`, `step_8`, `step_9`, `step_10` of kernels/papers/reduce.cu.
            ///
            /// Lengths `in[n]`, `partial[grid.blocks]`.
            ///
            /// Requires `grid.block <= 1024`.
            checked Step<'a> = "papers/reduce" ["step_1", "step_2", "step_3", "step_4", "step_5", "step_6", "step_6_32", "step_6_64", "step_6_128", "step_6_512", "step_6_1024", "step_7", "step_8", "step_9", "step_10"] &[Form::ONLY], 0;
            { input: View<'a>, partial: ViewMut<'a>, n: u32 }
            |it, launch, list| {
                launch.has("in", it.input.len(), u64::from(it.n).saturating_mul(4))?;
                launch.has("partial", it.partial.len(), launch.blocks().saturating_mul(4))?;
                launch.requires(launch.block() <= 1024, "grid.block <= 1024")?;
            } { list.push(&it.input); list.push(&it.partial); list.push(&it.n); }
        }

        arguments! {
            /// `step_11`, `step_12`, `step_13` of kernels/papers/reduce.cu.
            ///
            /// Lengths `in[n]`, `partial[grid.blocks]`, `arrived[1]`.
            ///
            /// Requires `grid.block == THREADS`.
            checked Folded<'a> = "papers/reduce" ["step_11", "step_12", "step_13"] &[Form::ONLY], 0;
            { input: View<'a>, partial: ViewMut<'a>, arrived: ViewMut<'a>, n: u32 }
            |it, launch, list| {
                launch.has("in", it.input.len(), u64::from(it.n).saturating_mul(4))?;
                launch.has("partial", it.partial.len(), launch.blocks().saturating_mul(4))?;
                launch.has("arrived", it.arrived.len(), 4)?;
                launch.requires(launch.block() == 256, "grid.block == THREADS")?;
            } { list.push(&it.input); list.push(&it.partial); list.push(&it.arrived); list.push(&it.n); }
        }
    }

    /// kernels/papers/threads.cu
    pub mod threads {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut};

        arguments! {
            /// `work` of kernels/papers/threads.cu.
            ///
            /// Lengths `out[grid.threads]`.
            checked Work<'a> = "papers/threads" ["work"] &[Form::ONLY], 0;
            { out: ViewMut<'a>, mode: u32, rounds: u32 }
            |it, launch, list| {
                launch.has("out", it.out.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.out); list.push(&it.mode); list.push(&it.rounds); }
        }

        arguments! {
            /// `fma_1`, `fma_2`, `fma_4`, `fma_8`, `fma_16`, `fma_32`, `fma_64`, `fma_128`, `fma_256`, `fma_double_256` of kernels/papers/threads.cu.
            ///
            /// Lengths `data[n]`, `sums[grid.threads]`.
            checked Fma<'a> = "papers/threads" ["fma_1", "fma_2", "fma_4", "fma_8", "fma_16", "fma_32", "fma_64", "fma_128", "fma_256", "fma_double_256"] &[Form::ONLY], 0;
            { data: View<'a>, n: u64, a: f32, b: f32, sums: ViewMut<'a> }
            |it, launch, list| {
                launch.has("data", it.data.len(), it.n.saturating_mul(16))?;
                launch.has("sums", it.sums.len(), launch.threads().saturating_mul(4))?;
            } { list.push(&it.data); list.push(&it.n); list.push(&it.a); list.push(&it.b); list.push(&it.sums); }
        }
    }

    /// kernels/papers/transpose.cu
    pub mod transpose {
        use crate::gpu::driver::launch::{arguments, Form, View, ViewMut, TensorMap};

        arguments! {
            /// `naive`, `mirrored`, `tile_16`, `tile_32`, `padded_16`, `padded_32`, `async_32` of kernels/papers/transpose.cu.
            ///
            /// Lengths `a[n * n]`, `b[n * n]`.
            checked Transposition<'a> = "papers/transpose" ["naive", "mirrored", "tile_16", "tile_32", "padded_16", "padded_32", "async_32"] &[Form::ONLY], 0;
            { a: View<'a>, b: ViewMut<'a>, n: u32 }
            |it, launch, list| {
                launch.has("a", it.a.len(), u64::from(it.n).saturating_mul(u64::from(it.n)).saturating_mul(4))?;
                launch.has("b", it.b.len(), u64::from(it.n).saturating_mul(u64::from(it.n)).saturating_mul(4))?;
            } { list.push(&it.a); list.push(&it.b); list.push(&it.n); }
        }

        arguments! {
            /// `tma_32` of kernels/papers/transpose.cu.
            ///
            /// Lengths `b[n * n]`.
            ///
            /// Requires `grid.block == SIDE * ROWS`.
            checked Tma32<'a> = "papers/transpose" ["tma_32"] &[Form::ONLY], 0;
            { a: TensorMap<'a>, b: ViewMut<'a>, n: u32 }
            |it, launch, list| {
                launch.has("b", it.b.len(), u64::from(it.n).saturating_mul(u64::from(it.n)).saturating_mul(4))?;
                launch.requires(launch.block() == 32_u64.saturating_mul(8), "grid.block == SIDE * ROWS")?;
            } { list.push(&it.a); list.push(&it.b); list.push(&it.n); }
        }
    }
}
