//! File bytes ⇄ `Image`, by format. One file a format; no codec knows a device.
pub mod ordered;
pub mod pnm;
pub mod raw;
pub mod tiff;
