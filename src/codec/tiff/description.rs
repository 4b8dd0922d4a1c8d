//! What programs write into ImageDescription about the stack that a page belongs to.

/// How many images an ImageJ description tells of.
pub fn images(description: &str) -> Option<usize> {
    let rest = description.strip_prefix("ImageJ=")?;
    let line = rest.lines().find_map(|line| line.strip_prefix("images="));
    line?.trim().parse().ok()
}
