//! The tables of `bench`: their names, titles and order.

use clap::ValueEnum;

/// The tables, in the order in which they are run and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// Copies between host and GPU: pinned and pageable, each way and both at once
    Link,
    /// Peak bandwidth of the GPU, its link and the host
    Ceilings,
    /// Cost of a kernel launch
    Launch,
    /// Transfers between host and GPU
    Transfer,
    /// Access patterns to GPU memory
    Memory,
    /// Warps: divergence, occupancy, shared and constant memory, latency, arithmetic
    Threads,
    /// Scaling with each rounding method
    Normalize,
    /// Minimum and maximum: separate, combined, and after nested conditionals
    Minmax,
    /// Transposition with all block shapes
    Transpose,
    /// A sum in seven optimization steps
    Reduce,
    /// The kernels of gpuimg, from 256² to 512 megapixels
    Production,
}

impl Table {
    /// The name that a user types.
    pub fn name(self) -> &'static str {
        match self {
            Table::Link => "link",
            Table::Ceilings => "ceilings",
            Table::Launch => "launch",
            Table::Transfer => "transfer",
            Table::Memory => "memory",
            Table::Threads => "threads",
            Table::Normalize => "normalize",
            Table::Minmax => "minmax",
            Table::Transpose => "transpose",
            Table::Reduce => "reduce",
            Table::Production => "production",
        }
    }

    /// The title: the subject of the table and the unit of its rates.
    pub fn title(self) -> &'static str {
        match self {
            Table::Link => {
                "link: GB/s between host and GPU; % of what the link's generation and lanes give one way"
            }
            Table::Ceilings => {
                "ceilings: the most that this machine moves; % of what the GPU states"
            }
            Table::Launch => "launch: calls a second",
            Table::Transfer => {
                "transfer: between host and GPU, by the host's clock; % of the measured link"
            }
            Table::Memory => "memory: GB/s of useful bytes; % of the measured read or copy",
            Table::Threads => {
                "threads: the time of a launch, or of one load; where bytes count, GB/s read and % of the measured read"
            }
            Table::Normalize => {
                "normalize: 16-bit samples, GB/s read plus written; % of the measured copy"
            }
            Table::Minmax => "minmax: 16-bit samples, GB/s read; % of the measured read",
            Table::Transpose => {
                "transpose: 4-byte elements, GB/s read plus written; % of the measured copy"
            }
            Table::Reduce => "reduce: 32-bit integers, GB/s read; % of the measured read",
            Table::Production => {
                "production: the program's own kernels; % of a copy, or a read, of as many bytes"
            }
        }
    }

    /// What a reader must know of its published figures.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Table::Launch => Some(
                "The text also says that a call takes 0.7 ms, which contradicts its own 15 000 calls a second (0.067 ms each).",
            ),
            Table::Memory | Table::Normalize => Some(
                "The text does not say whether its GB/s of copy and normalize count the bytes written too. The ratio compares the times for an image counted once, since the text calls min/max (29) even faster than normalize (26); if both count, the ratio for copy and normalize is twice as large.",
            ),
            Table::Transpose => Some(
                "Published times are of 1024² floats. Of variant 1 they fit the mirrored kernel where the text explains them and are printed beside the listed one, so they are attached to neither; the columns of its sweep are reconstructed from the rule that a block has 64 to 512 threads. A transposition of that size takes about as long as a launch today: the larger matrix tells the kernels apart.",
            ),
            Table::Reduce => Some("Published times are of 2²² integers."),
            _ => None,
        }
    }
}
