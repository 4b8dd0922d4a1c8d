//! The integration tests, a module a theme.
#![allow(clippy::unwrap_used, clippy::panic)]
mod png_encode;
