//! stub
use crate::files::*;
use crate::image::*;
use anyhow::Result;
pub fn decode(_: &Source) -> Result<Image> {
    anyhow::bail!("stub")
}
pub fn encode(_: &Image, _: &Target) -> Result<u64> {
    anyhow::bail!("stub")
}
