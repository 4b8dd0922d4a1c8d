//! `gpuimg.Metadata`: what a file says of its pixels.

use gpuimg::Unit;
use pyo3::prelude::*;

/// What a file says of its pixels, other than their shape and type.
///
/// It holds all metadata of the file, also those without a name here, such as an ICC profile or the tags of a microscope.
#[pyclass(frozen, module = "gpuimg")]
pub struct Metadata {
    /// All of it.
    pub fields: gpuimg::Metadata,
}

#[pymethods]
impl Metadata {
    /// The orientation for display, 1 to 8 as in Exif and TIFF.
    #[getter]
    fn orientation(&self) -> Option<u16> {
        self.fields.orientation()
    }

    /// Pixels in a unit of length across and down, and the unit: "inch", "centimetre", "metre", or "" where only the ratio counts.
    #[getter]
    fn resolution(&self) -> Option<(f64, f64, &'static str)> {
        let resolution = self.fields.resolution()?;
        let number =
            |(numerator, denominator): (u32, u32)| f64::from(numerator) / f64::from(denominator);
        let unit = match resolution.unit {
            Unit::None => "",
            Unit::Inch => "inch",
            Unit::Centimetre => "centimetre",
            Unit::Metre => "metre",
        };
        Some((number(resolution.x), number(resolution.y), unit))
    }

    /// The largest value that samples can have, if it is not 255 or 65535: 4095 for 12 bits.
    #[getter]
    fn max_value(&self) -> Option<u16> {
        self.fields.max_value()
    }

    /// The significant bits of each channel before the samples were scaled to the full depth.
    #[getter]
    fn significant_bits(&self) -> Option<Vec<u32>> {
        let bits = self.fields.significant_bits()?.iter();
        Some(bits.map(|&bits| bits.into()).collect())
    }

    /// The smallest and the largest value that the file wants to be shown, as black and as white (DICOM).
    #[getter]
    fn window(&self) -> Option<(i64, i64)> {
        self.fields.window()
    }

    /// Whether 0 stands for white in a grey image.
    #[getter]
    fn white_is_zero(&self) -> bool {
        self.fields.white_is_zero()
    }

    /// Whether the range of normalize with undo=True is recorded, so that restore can restore the original values.
    #[getter]
    fn can_be_restored(&self) -> bool {
        self.fields.can_be_restored()
    }

    /// The names of the parts that only the file's own format stores: "tag 270", "chunk iCCP", "the ICC profile".
    #[getter]
    fn parts(&self) -> Vec<String> {
        self.fields.parts()
    }

    fn __eq__(&self, other: &Bound<PyAny>) -> bool {
        let other = other.cast::<Metadata>();
        other.is_ok_and(|other| other.get().fields == self.fields)
    }

    fn __repr__(&self) -> String {
        let mut words = Vec::new();
        if let Some(orientation) = self.orientation() {
            words.push(format!("orientation={orientation}"));
        }
        if let Some(resolution) = self.resolution() {
            words.push(format!("resolution={resolution:?}"));
        }
        if let Some(max_value) = self.max_value() {
            words.push(format!("max_value={max_value}"));
        }
        if !self.parts().is_empty() {
            words.push(format!("parts={:?}", self.parts()));
        }
        format!("<gpuimg.Metadata {}>", words.join(" "))
    }
}
