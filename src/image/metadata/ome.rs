//! What OME-Zarr says about the pages of an image (OME-NGFF 0.4 and 0.5, multiscales and omero).

use super::{Axis, Part, Resolution, Transform, Unit};

/// Distances of pixels, slices and frames, and the channels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ome {
    /// The name of the image.
    pub name: Option<String>,
    /// The distance of columns.
    pub x: Option<Step>,
    /// The distance of rows.
    pub y: Option<Step>,
    /// The distance of slices.
    pub z: Option<Step>,
    /// The time between frames.
    pub t: Option<Step>,
    /// The channels in order; empty if nothing is known about them.
    pub channels: Vec<Channel>,
}

/// The distance of two neighbours along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The distance in the unit.
    pub size: f64,
    /// The unit by its name of OME-Zarr, as `micrometer`, `second`; `None` if it is not known.
    pub unit: Option<String>,
}

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// Its name.
    pub label: Option<String>,
    /// The colour in which it is shown: six hexadecimal digits, red first.
    pub colour: Option<String>,
}

impl Step {
    /// The distance in metres, if its unit is a length.
    fn metres(&self) -> Option<f64> {
        let unit = match self.unit.as_deref()? {
            "angstrom" => 1e-10,
            "nanometer" => 1e-9,
            "micrometer" => 1e-6,
            "millimeter" => 1e-3,
            "centimeter" => 1e-2,
            "meter" => 1.0,
            "inch" => 0.0254,
            _ => return None,
        };
        Some(self.size * unit)
    }
}

/// Pixels of so many metres in a centimetre, as a fraction of nine digits; `None` if there are too many or too few.
fn pixels_per_centimetre(metres: f64) -> Option<(u32, u32)> {
    let pixels = 0.01 / metres;
    let scales = (0..=9).rev().map(|digits| 10u32.pow(digits));
    let mut fractions = scales.map(|scale| ((pixels * f64::from(scale)).round(), scale));
    let fits = |(numerator, _): &(f64, u32)| (1.0..=f64::from(u32::MAX)).contains(numerator);
    let (numerator, scale) = fractions.find(fits)?;
    Some((numerator as u32, scale))
}

impl Ome {
    /// The resolution across and down, for formats that have no other distances.
    pub fn resolution(&self) -> Option<Resolution> {
        let metres = |step: &Option<Step>| step.as_ref().and_then(Step::metres);
        Some(Resolution {
            x: pixels_per_centimetre(metres(&self.x)?)?,
            y: pixels_per_centimetre(metres(&self.y)?)?,
            unit: Unit::Centimetre,
        })
    }

    /// The names of all parts that only OME-Zarr and OME-XML store, for messages.
    pub fn names(&self) -> Vec<String> {
        let parts = [
            (self.z.is_some(), "the distance of slices"),
            (self.t.is_some(), "the time between frames"),
            (!self.channels.is_empty(), "the names of the channels"),
            (self.name.is_some(), "the name of the image"),
        ];
        let known = parts.into_iter().filter(|(is_known, _)| *is_known);
        known.map(|(_, name)| name.into()).collect()
    }

    /// Updates everything after an operation.
    pub fn update(&mut self, transform: &Transform) {
        let Transform { from, to, .. } = transform;
        if transform.is_transposed() {
            std::mem::swap(&mut self.x, &mut self.y);
        }
        if transform.effect == super::Effect::Reduced {
            let enlarge = |step: &mut Option<Step>, from: usize, to: usize| {
                if let Some(step) = step {
                    step.size *= from as f64 / to as f64;
                }
            };
            enlarge(&mut self.x, from.width, to.width);
            enlarge(&mut self.y, from.height, to.height);
        }
        if transform.changes_channels() || !transform.whole {
            self.channels.clear();
        }
    }

    /// Keeps what is true of a part of the pages.
    pub fn select(&mut self, part: &Part) {
        let (first, count) = part.places(Axis::C);
        if let Some(channels) = self.channels.get(first..first + count) {
            self.channels = channels.to_vec();
        }
    }

    /// Keeps what is true after a projection along `axis`.
    pub fn collapse(&mut self, axis: Axis) {
        match axis {
            Axis::Z => self.z = None,
            Axis::T => self.t = None,
            Axis::C => self.channels.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_a_resolution() {
        let step = |size, unit: &str| {
            Some(Step {
                size,
                unit: Some(unit.into()),
            })
        };
        let mut ome = Ome {
            x: step(0.5, "micrometer"),
            y: step(0.001, "millimeter"),
            ..Ome::default()
        };
        let resolution = ome.resolution().and_then(|it| it.per_metre());
        assert_eq!(resolution, Some((2_000_000, 1_000_000)));
        ome.y = step(1.0, "second");
        assert_eq!(ome.resolution(), None);
    }
}
