//! Decodes one page on the GPU, step by step. The host waits for the GPU once, for the checksums at the end, and before that
//! for the parts of the streams if the GPU cannot put them in order by itself (`inflate/order.rs`).

use super::join::{Joined, join};
use super::tiles::assemble;
use super::unfilter::unfilter;
use crate::formats::gpu::inflate::order::{self, Order};
use crate::formats::gpu::inflate::{
    Agreement, BlockSearch, check_streams, compare_crcs, find_blocks, queue_checksums, write,
};
use crate::formats::gpu::lzw;
use crate::formats::packed::{DataLayout, Head, TileCoding, Tiles, Unsuited};
use crate::gpu::NoMemory;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::ops::DeviceImage;
use anyhow::{Context, Result};

/// The result of decoding a page on a GPU.
#[derive(Debug)]
pub enum Decoded {
    /// The image, and a note if a fast method failed and a slower one was used.
    Image {
        /// The samples in device memory.
        image: DeviceImage,
        /// The method that failed, and what was done instead.
        note: Option<&'static str>,
    },
    /// Only the CPU can decode the page.
    Unsuited(Unsuited),
}

/// The note about a stream whose blocks the host put in order.
const ORDERED_BY_HOST: &str =
    "inflated twice on the GPU, because it could not put the deflate blocks in order by itself";

/// Decodes the page whose data are in the job's memory, as `Packed::split` returns both.
///
/// # Errors
/// The GPU's. Faults of the file are not errors, but `Decoded::Unsuited`.
pub fn decode_on_gpu(head: &Head, job: &mut Job) -> Result<Decoded> {
    let decoded = job.upload().and_then(|file| decode(head, &file, job));
    separate_unsuited(decoded)
}

/// As `decode_on_gpu`, for data that are in device memory already, as `file`. Only a benchmark calls it.
///
/// # Errors
/// As `decode_on_gpu`.
pub fn decode_resident(head: &Head, file: &Buffer, job: &mut Job) -> Result<Decoded> {
    separate_unsuited(decode(head, file, job))
}

/// Separates the reasons to leave a page to the CPU from the errors of the GPU.
fn separate_unsuited(decoded: Result<Decoded>) -> Result<Decoded> {
    match decoded {
        Err(error) if error.is::<NoMemory>() => Ok(Decoded::Unsuited(Unsuited::new(
            "the image does not fit in GPU memory",
        ))),
        Err(error) => error.downcast::<Unsuited>().map(Decoded::Unsuited),
        decoded => decoded,
    }
}

/// Decodes a page; the error is an `Unsuited` if only the CPU can.
fn decode(head: &Head, file: &Buffer, job: &mut Job) -> Result<Decoded> {
    if let DataLayout::Tiles(tiles) = &head.layout
        && tiles.coding == TileCoding::Lzw
    {
        return decode_lzw(head, tiles, file, job);
    }
    let page = Page::join_chunks(head, file, job)?;
    let mut search = find_blocks(&head.streams, page.stream(), job)?;
    let mut note = None;
    if head.streams.starts.len() == 1 {
        let order = order::by_gpu(&head.streams, page.stream(), &mut search, job)?;
        match page.decode_in_order(&order, &mut search, job)? {
            Some(image) => return Ok(Decoded::Image { image, note }),
            None => note = Some(ORDERED_BY_HOST),
        }
    }
    let order = order::by_host(&head.streams, page.stream(), &mut search, job)?;
    let image = page.decode_in_order(&order, &mut search, job)?;
    let image = image.context("internal error: block order lost on the GPU")?;
    Ok(Decoded::Image { image, note })
}

/// Decodes LZW tiles; the error is an `Unsuited` if only the CPU can.
fn decode_lzw(head: &Head, tiles: &Tiles, file: &Buffer, job: &mut Job) -> Result<Decoded> {
    let unpacked = lzw::unpack(&head.streams, file, job)?;
    let (bytes, report) = (&unpacked.bytes, unpacked.report.view());
    let samples = assemble(&head.shape, tiles, bytes, report, job)?;
    if !lzw::is_valid(&unpacked.report, job)? {
        return Err(Unsuited::new("its image data are invalid").into());
    }
    let image = DeviceImage {
        shape: head.shape,
        samples,
    };
    Ok(Decoded::Image { image, note: None })
}

/// A page whose compressed data are in device memory.
struct Page<'a> {
    head: &'a Head,
    file: &'a Buffer,
    /// The data of a PNG without the chunks around them.
    joined: Option<Joined>,
}

impl<'a> Page<'a> {
    /// Joins the image data of a PNG; those of tiles need no joining.
    fn join_chunks(head: &'a Head, file: &'a Buffer, job: &mut Job) -> Result<Page<'a>> {
        let joined = match head.layout {
            DataLayout::Png(_) => Some(join(&head.streams, file, job)?),
            DataLayout::Tiles(_) => None,
        };
        Ok(Page { head, file, joined })
    }

    /// The concatenated zlib streams.
    fn stream(&self) -> &Buffer {
        self.joined
            .as_ref()
            .map_or(self.file, |joined| &joined.stream)
    }

    /// Inflates the parts that `search` has counted, in this order, checks the result, and makes samples of it. Returns `None`
    /// if the GPU was to find the order and could not.
    fn decode_in_order(
        &self,
        order: &Order,
        search: &mut BlockSearch,
        job: &mut Job,
    ) -> Result<Option<DeviceImage>> {
        let Head {
            shape,
            streams,
            layout,
        } = self.head;
        let mut bytes = write(streams, self.stream(), search, order, job)?;
        queue_checksums(streams, &bytes, search, job)?;
        if let Some(joined) = &self.joined {
            let count = streams.extents.len();
            compare_crcs(&joined.sums, count, &mut search.records, job)?;
        }
        let samples = match layout {
            DataLayout::Png(scanlines) => {
                unfilter(self.head, scanlines, &mut bytes, &mut search.records, job)?
            }
            DataLayout::Tiles(tiles) => {
                assemble(shape, tiles, &bytes, search.records.report(), job)?
            }
        };
        match check_streams(streams, search, order, job)? {
            Agreement::Valid => Ok(Some(DeviceImage {
                shape: *shape,
                samples,
            })),
            Agreement::OrderUnknown => Ok(None),
            Agreement::Corrupt => Err(Unsuited::new("its image data are invalid").into()),
            Agreement::WrongChecksum => Err(Unsuited::new("a checksum is wrong").into()),
        }
    }
}
