//! All integration tests in one binary, a module a theme.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod ordered;
mod pnm;
mod tiff;
