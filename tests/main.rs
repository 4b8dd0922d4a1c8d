//! The integration tests, one binary, a module a theme.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the names are those of the tests"
)]

mod support;

/// The library.
mod api;
/// Stacks projected along one of their axes.
mod axes;
/// Images that a GPU's memory does not hold at once.
mod bands;
/// Many files: folders, parts, bad files, what is said.
mod batch;
/// The tables of `bench` and the doctor.
mod bench;
/// What the papers claim: the pairs of rows, their verdicts, and that nothing is left out.
mod bench_claims;
/// Dark frames and flat fields.
mod calibrate;
/// Calibration in floating point.
mod calibrate_real;
/// Several verbs in one pass.
mod chain;
/// The types of samples between the verbs of one pass.
mod chain_types;
/// Inputs that change while they are read, or between two runs.
mod changed;
/// The choice of a device, and what follows when a GPU fails, with a pretended GPU.
mod choice;
/// Cloud-optimized TIFF files.
mod cog;
/// Grey images that become the channels or the colours of one.
mod combine;
/// The command as a user meets it: files, exit statuses, messages.
mod command;
/// Awkward images: the contract of `docs/CONTRACT.md`, row by row.
mod contract;
/// Regions: their metadata, and that only they are decoded.
mod crop;
/// Curves, zscale and screen transfer functions.
mod curves;
/// Mosaics of sensors, made into RGB images.
mod debayer;
/// Every operation against its naive definition, on the CPU and on a GPU.
mod devices;
/// What the documents name exists.
mod documents;
/// A driver that fails, at every call.
mod driver;
/// Flat fields that change from image to image.
mod flat_series;
/// Every format of the list: laws, literals, hostile files, messages.
mod float64;
/// Files of other projects that came out wrong.
mod foreign;
mod formats;
/// Frames of standard input, one after the other.
mod frames;
mod gpu_image;
/// Stacks of several axes: places on them, and channels that are pages.
mod hyperstacks;
/// An error at every system call of every format and verb.
mod injected;
/// What is taken, where results go, and what is refused before anything is touched.
mod inputs;
/// The journal: what it takes for done, whose files it replaces, and that it can be trusted.
mod journal;
/// Killed at random moments, whatever is made and however.
mod kills;
/// Laws that the operations obey, and literals small enough to check by hand.
mod laws;
/// What a process may use of the machine, and hostile inputs.
mod limits;
/// Pages in bands of rows.
mod low_memory;
/// Look-up tables of colours.
mod lut;
/// Metadata: kept, updated, converted, or reported.
mod metadata;
/// Histograms, parts of projections and journals, changed.
mod mutations;
/// Names of files that are not text, in what is printed.
mod names;
/// Seven new users, and the answers to what they first type.
mod newcomers;
/// Parts of a projection, and what merges them.
mod order;
mod partial;
/// Pages that are summed up piece by piece.
mod pieces;
/// The plan of a page, printed.
mod plans;
/// PNG read: every colour type, depth and filter, and hostile files.
mod png_decode;
/// PNG written, and read back by other decoders.
mod png_encode;
/// PNG from the GPU against PNG from the CPU, file by file.
mod png_gpu;
/// PNG decoded on the GPU against PNG decoded on the CPU, image by image.
mod png_gpu_chunks;
mod png_gpu_decode;
/// Files that a GPU decodes, processes and writes, against the same on the CPU.
mod png_gpu_pages;
/// PNM read and written.
mod pnm;
/// Power cuts, and what they leave after.
mod power;
/// Bands on a GPU that the CPU pretends to be.
mod pretended_gpu;
/// Smaller images, and ranges that leave out what is no data.
mod previews;
/// One image of many.
mod project;
/// `project` as the first verb of `run`.
mod project_run;
/// Outputs of a report that are derived again.
mod prove;
/// Names that are exchanged while a run is under way.
mod races;
/// Ranges of values: signed ones, and such as go with another depth.
mod ranges;
/// The bytes of every output, compared with recorded digests.
mod recorded;
/// Reports, statistics and sums as programs read them.
mod records;
/// Memory that one image leaves to the next.
mod recycled;
/// Files that once went wrong, each named after what happened.
mod refused;
mod regressions;
/// Stores on a server.
mod remote;
/// First values that come back after a stretch.
mod restore;
/// Runs that are stopped, and going on.
mod resume;
/// The exact rounding of `normalize`, over all ranges.
mod rounding;
/// The JSON that is printed, against its schemas and the document of them.
mod schemas;
/// One range for a set of files.
mod series;
/// Images of a batch that share the launches of a GPU.
mod sets;
/// The page of `info --html`.
mod sheet;
/// Signals, lost terminals and lost outputs.
mod signals;
/// Levels of vector instructions.
mod simd;
/// Files of several pages.
mod stacks;
/// The modules of the program, and which way they import.
mod structure;
/// What is on the disk, and when, with `--sync`.
mod sync;
/// What a terminal shows: bars that fit, and lines that stay.
mod terminal;
/// TIFF read and written, and hostile files.
mod tiff;
/// TIFF decoded on the GPU against TIFF decoded on the CPU.
mod tiff_gpu;
/// Commands and what they print, from `tests/transcript.txt`.
mod transcript;
/// Wrong pixels and untrue metadata that once came out.
mod untrue;
/// `convert`, `preview` and `info`, and words of other programs.
mod verbs;
/// What the program says of itself: its version, its build, its licences.
mod version;
/// Watched folders.
mod watch;
/// Samples of 32 bits: integers and floating point.
mod wide;
/// OME-Zarr stores that are written.
mod zarr;
/// OME-Zarr stores that are continued, and that several tasks write.
mod zarr_continued;
/// Chunks of Zarr that a GPU decodes.
mod zarr_gpu;
