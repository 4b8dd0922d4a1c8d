//! What the pages of a file share: the range that their values are stretched from, and what is to
//! be told of them.

use super::station::Station;
use super::{Resources, name};
use crate::codec::Reader;
use crate::image::{Depth, Shape};
use crate::metadata::{Metadata, Remarks};
use crate::ops::{Op, Product};
use crate::stats::Timeline;
use anyhow::{Context, Result};
use std::path::Path;

/// The operation for each kind of page, with one range for all pages of the kind.
#[derive(Default)]
pub struct Shared(Vec<(Kind, Box<dyn Op>)>);

/// Pages whose values can be compared: depth, sign, and how many channels.
type Kind = (Depth, bool, usize);

fn kind(shape: &Shape, metadata: &Metadata) -> Kind {
    (shape.depth, metadata.signed, shape.channels)
}

impl Shared {
    /// Reads all pages of a stack once and measures their ranges, if the operation wants them to
    /// share one. The pages' pixels are not kept.
    pub fn measure(
        op: &dyn Op,
        input: &Path,
        reader: &mut Reader,
        resources: &Resources,
        timeline: &mut Timeline,
    ) -> Result<Shared> {
        let pages = reader.pages().len();
        let Some(measuring) = op.measuring().filter(|_| pages > 1 && op.shares_pages()) else {
            return Ok(Shared::default());
        };
        let mut found: Vec<(Kind, Shape, Product<()>)> = Vec::new();
        let unread = || format!("cannot read {}", name(input));
        let mut station = Station::new(input, resources, std::mem::take(timeline));
        for index in 0..pages {
            reader.turn_to(index).with_context(unread)?;
            let image = reader.decode().with_context(unread)?;
            let shape = image.shape();
            let metadata = reader.metadata(&mut Remarks::default());
            let kind = kind(&shape, &metadata.with_context(unread)?);
            let product = station.through(&*measuring, image)?.product.map(drop);
            match found.iter_mut().find(|(known, ..)| *known == kind) {
                None => found.push((kind, shape, product)),
                Some((_, _, known)) => known.join(&product)?,
            }
        }
        *timeline = station.timeline;
        let ops = found
            .into_iter()
            .filter_map(|(kind, shape, product)| Some((kind, op.measured(&shape, &product)?)));
        Ok(Shared(ops.collect()))
    }

    /// The operation for a page of this kind.
    pub fn of<'a>(&'a self, op: &'a dyn Op, shape: &Shape, metadata: &Metadata) -> &'a dyn Op {
        let kind = kind(shape, metadata);
        let shared = self.0.iter().find(|(known, _)| *known == kind);
        shared.map_or(op, |(_, op)| &**op)
    }
}

/// Sentences about pages; the same about several is told once.
pub struct Told {
    pages: usize,
    /// Sentence, whether it is a warning, and the pages that it is about.
    sentences: Vec<(String, bool, Vec<usize>)>,
}

impl Told {
    /// Nothing about any of so many pages yet, but what was left out of the file.
    pub fn new(left_out: Option<String>, pages: usize) -> Told {
        Told {
            pages,
            sentences: Vec::from_iter(left_out.map(|sentence| (sentence, true, Vec::new()))),
        }
    }

    /// Takes what is to be told of a page.
    pub fn add(&mut self, page: usize, remarks: Remarks) {
        let warnings = remarks.warnings.into_iter().map(|told| (told, true));
        for (told, warns) in warnings.chain(remarks.notes.into_iter().map(|told| (told, false))) {
            let same = |known: &&mut (String, bool, Vec<usize>)| known.0 == told;
            match self.sentences.iter_mut().find(same) {
                Some(known) => known.2.push(page),
                None => self.sentences.push((told, warns, vec![page])),
            }
        }
    }

    /// All sentences, each with its pages where the file has several.
    pub fn sentences(self) -> Remarks {
        let mut remarks = Remarks::default();
        for (told, warns, pages) in self.sentences {
            let told = match pages[..] {
                _ if self.pages == 1 => told,
                [] => told,
                [page] => format!("page {page}: {told}"),
                _ if pages.len() == self.pages => format!("every page: {told}"),
                [first, ..] => format!("{} pages, the first is {first}: {told}", pages.len()),
            };
            if warns {
                remarks.warnings.push(told);
            } else {
                remarks.notes.push(told);
            }
        }
        remarks
    }
}
