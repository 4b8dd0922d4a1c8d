//! The driver's errors in words.

use cudarc::driver::result::DriverError;

/// The driver's description of an error, or its number if there is none.
pub(super) fn description(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("CUDA error {:?}", error.0),
    }
}
