//! The tables of `bench`: their names, titles and order.

use clap::ValueEnum;

/// The tables, in the order in which they are run and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// The most that this GPU, its link and this host move
    Ceilings,
    /// What a launch costs
    Launch,
    /// Between host and GPU
    Transfer,
    /// Access to the GPU's memory
    Memory,
    /// Scaling with each way to round
    Normalize,
    /// Minimum and maximum, nested conditionals
    Minmax,
    /// Transposition, all block shapes
    Transpose,
    /// Seven steps to a sum
    Reduce,
    /// The program's own kernels, from 256² to 512 megapixels
    Production,
}

impl Table {
    /// The name that a user types.
    pub fn name(self) -> &'static str {
        match self {
            Table::Ceilings => "ceilings",
            Table::Launch => "launch",
            Table::Transfer => "transfer",
            Table::Memory => "memory",
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
            Table::Ceilings => {
                "ceilings: the most that this machine moves; % of what the GPU states"
            }
            Table::Launch => "launch: calls a second",
            Table::Transfer => {
                "transfer: between host and GPU, by the host's clock; % of the measured link"
            }
            Table::Memory => "memory: GB/s of useful bytes; % of the measured read or copy",
            Table::Normalize => {
                "normalize: 16-bit samples, GB/s read plus written; % of the measured copy (nested ifs: read)"
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
}
