//! A curve as tables, one for each channel. They are computed when the first image needs them.

use super::curve::Curve;
use super::scale::Scale;
use crate::gpu::job::Job;
use crate::gpu::launch::curve as launch;
use crate::image::buffer::Buffer;
use crate::image::{Depth, Image};
use crate::ops::cpu::{self, Sample};
use crate::ops::{DeviceImage, with_samples};
use anyhow::Result;
use std::sync::OnceLock;

/// The curve of an operation, if it has one, and its tables.
#[derive(Debug)]
pub(super) struct CurveTables {
    curve: Option<Curve>,
    /// One table for each channel, with the result of each sample. All images of a `Bound` have the same scales.
    tables: OnceLock<Vec<Vec<u16>>>,
}

impl CurveTables {
    pub(super) fn new(curve: Option<Curve>) -> CurveTables {
        CurveTables {
            curve,
            tables: OnceLock::new(),
        }
    }

    pub(super) fn has_curve(&self) -> bool {
        self.curve.is_some()
    }

    /// The definition, for one sample of a channel; a channel without a scale keeps its samples.
    pub(super) fn exact(&self, scale: Option<Scale>, sample: u16) -> u16 {
        match (scale, self.curve) {
            (None, _) => sample,
            (Some(scale), None) => scale.exact(sample),
            (Some(scale), Some(curve)) => curve.exact(&scale, sample),
        }
    }

    /// Applies the curve to all samples of an image; `scales` has the scale of each channel. Without a curve, nothing changes.
    ///
    /// # Errors
    /// There is not enough memory for the result. It needs memory of its own if that of the image is shared.
    pub(super) fn apply(&self, image: &mut Image, scales: &[Option<Scale>]) -> Result<()> {
        let Some(curve) = self.curve else {
            return Ok(());
        };
        let tables = self.tables(curve, scales, image.shape().depth);
        with_samples!(image.samples_mut(), samples => map_all(samples, tables))
    }

    /// The same for an image on a GPU, queued without waiting.
    ///
    /// # Errors
    /// Those of the GPU.
    pub(super) fn apply_on_gpu(
        &self,
        image: &mut DeviceImage,
        scales: &[Option<Scale>],
        job: &mut Job,
    ) -> Result<()> {
        let Some(curve) = self.curve else {
            return Ok(());
        };
        let shape = image.shape;
        let mut tables = self.tables(curve, scales, shape.depth);
        if scales.iter().all(|scale| *scale == scales[0]) {
            tables = &tables[..1];
        }
        let entries = tables.concat();
        let words = match shape.depth {
            Depth::Eight => {
                let bytes: Vec<u8> = entries.iter().map(|&entry| entry as u8).collect();
                job.words(&bytes)?
            }
            _ => job.words(&entries)?,
        };
        let kernel = job.kernel::<launch::Curve>(&shape.depth.form())?;
        let bytes = shape.bytes() as u64;
        let arguments = launch::Curve {
            image: image.samples.view_mut(),
            samples: shape.samples() as u64,
            tables: words.view(),
            channels: tables.len() as u32,
        };
        job.launch(
            &kernel,
            u32::try_from(bytes.div_ceil(4096))?,
            2 * bytes,
            arguments,
        )
    }

    /// The table of each channel, computed when the first image needs them.
    fn tables(&self, curve: Curve, scales: &[Option<Scale>], depth: Depth) -> &[Vec<u16>] {
        self.tables.get().unwrap_or_else(|| {
            // Computed outside of `get_or_init`: while this thread waits for the others, it may run another task, which may
            // wait for the same `OnceLock`.
            let computed = tables(curve, scales, depth.full());
            self.tables.get_or_init(|| computed)
        })
    }
}

/// The table of each channel. For channels with the same scale, the table is computed once and copied.
fn tables(curve: Curve, scales: &[Option<Scale>], full: u16) -> Vec<Vec<u16>> {
    let mut tables: Vec<Vec<u16>> = Vec::new();
    for (channel, scale) in scales.iter().enumerate() {
        let known = scales[..channel].iter().position(|known| known == scale);
        let table = match (known, scale) {
            (Some(known), _) => tables[known].clone(),
            (None, None) => (0..=full).collect(),
            (None, Some(scale)) => curve.table(scale, full),
        };
        tables.push(table);
    }
    tables
}

/// Replaces each sample by the result in the table of its channel.
fn map_all<T: Sample>(samples: &mut Buffer<T>, tables: &[Vec<u16>]) -> Result<()> {
    let result = |table: &[u16], sample: T| T::from_value(table[usize::from(sample.value())]);
    // Every chunk begins with the first channel.
    cpu::for_each_chunk(samples, |chunk| {
        if let [table] = tables {
            for sample in chunk {
                *sample = result(table, *sample);
            }
        } else {
            for pixel in chunk.chunks_exact_mut(tables.len()) {
                for (sample, table) in pixel.iter_mut().zip(tables) {
                    *sample = result(table, *sample);
                }
            }
        }
    })
}
