//! Placeholder until the command line is wired.
fn main() {}
