//! All integration tests in one binary, a module a theme.
#![allow(clippy::unwrap_used, clippy::panic)]
mod png_decode;
mod png_files;
