//! File bytes ⇄ `Image`, by format. One file a format; no codec knows a device.
pub mod png;
