//! The driver's errors as messages.

use anyhow::{Error, Result, anyhow};
use cudarc::driver::CudaContext;
use cudarc::driver::result::DriverError;

/// The driver's description of an error, or its number if there is none.
pub(super) fn description(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("CUDA error {:?}", error.0),
    }
}

/// An error of the driver in its own words.
pub(in crate::gpu) fn in_words(error: DriverError) -> Error {
    anyhow!("{}", description(&error))
}

/// Makes the context this thread's.
pub(super) fn bind(context: &CudaContext) -> Result<()> {
    context.bind_to_thread().map_err(in_words)
}

/// As `bind`, before something is given back to the context. The binding keeps an error that it could not return, such as one
/// of destroying an event, and returns it from the next call, whatever that is for: the first attempt clears it. Without the
/// second attempt, memory would stay allocated, or page-locked, for good.
pub(super) fn bound_to_give_back(context: &CudaContext) -> bool {
    context.bind_to_thread().is_ok() || context.bind_to_thread().is_ok()
}
