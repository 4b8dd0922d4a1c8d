//! stub
use crate::files::*;
use crate::image::*;
use anyhow::Result;
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Mode {
    /// a
    Fast,
}
pub fn decode(_: &Source) -> Result<Image> {
    anyhow::bail!("stub")
}
pub fn encode(_: &Image, _: Mode, _: &Target) -> Result<u64> {
    anyhow::bail!("stub")
}
