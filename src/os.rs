//! Files as the codecs use them: a `Source` is read at any offset; a `Target` becomes the output
//! only when it is complete. Both can be used from many threads, and measure the time of their
//! system calls, so that `--stats` can separate reading from decoding.

mod address;
mod base64;
pub mod console;
pub(crate) mod count;
mod digest;
mod durable;
pub mod fault;
mod frames;
mod held;
mod identity;
pub(crate) mod interrupt;
mod leftovers;
pub(crate) mod limits;
pub mod memory_budget;
pub(crate) mod name;
pub(crate) mod outcome;
pub(crate) mod panics;
mod passes;
pub(crate) mod reason;
#[cfg_attr(not(feature = "remote"), path = "os/no_remote.rs")]
mod remote;
mod sha256;
mod source;
mod state;
mod store;
mod store_record;
pub(crate) mod sync;
pub(crate) mod system;
mod target;
mod temporary;
mod traffic;
mod unfinished;
mod unfinished_store;
pub(crate) mod url;
mod utc;

pub use crate::os::reason::{is_absence, plain, reason};
pub use address::{as_file_name, file_of};
pub use base64::base64;
pub use digest::Digest;
pub use durable::{make_folder, make_folder_below, parent, sync_folder};
pub use frames::from_stdin as frames_from_stdin;
pub use held::Folder;
pub use identity::{Identity, is_same, same_file};
pub use leftovers::remove_leftovers;
pub use passes::Passes;
pub use remote::unfinished_uploads;
pub use sha256::Sha256;
pub use source::Source;
pub use state::{CHANGED, Compared, FileRecord, FileState, InputRecord, Samples};
pub use store::{Part, Span, is_folder_of_files, is_store_name};
pub use store_record::{PageRanges, StoreRun, StoreTask};
pub use target::{Target, check_regular, open_stream};
pub use temporary::{TemporaryFolder, remove_temporary_folders};
pub use traffic::Traffic;
pub use unfinished::forget_unfinished;
pub use unfinished_store::replaces_store;
pub use utc::utc;
