//! The native part of the Python module `gpuimg`: it converts arguments, and calls the Rust library.
//!
//! Work runs without the interpreter's lock, on the threads of `runtime.rs`, which survive a fork. Arrays are read and lent out by
//! `array.rs` and `image.rs`. `package/gpuimg` has the functions that users see.

mod array;
mod batch;
mod calls;
mod combine;
mod dlpack;
mod errors;
mod gpu;
mod image;
mod metadata;
mod numbers;
mod program;
mod project;
mod runtime;
mod stream;
mod verbs;

/// The native part of gpuimg.
#[pyo3::pymodule]
mod _gpuimg {
    #[pymodule_export]
    use super::batch::process;
    #[pymodule_export]
    use super::calls::{apply, calibrate, decode, encode, info, pages, read, write};
    #[pymodule_export]
    use super::combine::combine;
    #[pymodule_export]
    use super::image::Image;
    #[pymodule_export]
    use super::metadata::Metadata;
    #[pymodule_export]
    use super::numbers::{histogram, sum};
    #[pymodule_export]
    use super::program::main;
    #[pymodule_export]
    use super::project::project;
    #[pymodule_export]
    use super::runtime::set_threads;
    #[pymodule_export]
    use super::stream::{Stream, stream};
    #[pymodule_export]
    use super::verbs::verbs;

    use pyo3::prelude::*;

    /// Bytes of freed images that are kept for the next ones: two of 2048 × 2048 in float64.
    const KEPT_MEMORY: usize = 64 << 20;

    #[pymodule_init]
    fn init(_module: &Bound<PyModule>) -> PyResult<()> {
        gpuimg::keep_memory(KEPT_MEMORY);
        Ok(())
    }

    /// The version of gpuimg.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
