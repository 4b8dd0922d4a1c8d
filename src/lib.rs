//! gpuimg: 16-bit images from file to file, on an NVIDIA GPU or on the CPU.
//!
//! `docs/ARCHITECTURE.md` follows a page through the modules: `cli` has the command line, `batch` processes many files at
//! the same time, `engine` plans a page and executes the plan, `ops` and `formats` have an operation or a file format each,
//! `gpu` has the driver and the launches, `os` everything that asks the operating system, and `image` the samples and
//! their metadata. Imports run in this order only.

pub mod batch;
mod bench;
pub mod cli;
mod deflate;
mod doctor;
mod engine;
mod formats;
mod gpu;
mod image;
mod ops;
mod os;
mod timing;
mod verify;

/// What the project's own tests and benchmarks use. It may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::cli::entry::status;
    pub mod batch {
        pub mod histogram {
            pub use crate::batch::histogram::Set;
        }
        pub mod project {
            pub use crate::batch::project::Partial;
        }
    }
    pub mod bench {
        pub use crate::bench::*;
    }
    pub mod doctor {
        pub use crate::doctor::limits;
    }
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod formats {
        pub use crate::formats::*;
    }
    pub mod gpu {
        pub use crate::gpu::*;
    }
    pub mod image {
        pub use crate::image::*;
    }
    pub mod ops {
        pub use crate::ops::*;
    }
    pub mod os {
        pub use crate::os::*;
    }
    pub mod timing {
        pub use crate::timing::*;
    }
}
