//! gpuimg: 16-bit images from file to file.
pub mod codec;
pub mod files;
pub mod image;
