//! Panics of other libraries, turned into errors: damaged input must not end the program, and a library's
//! message about its own source code must not reach the user.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread runs a call whose panics are caught.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// What a call returns, or the message with which it panicked. Nothing is printed.
///
/// Only panics on the calling thread are silenced. What `call` changed before it panicked must not be used
/// afterwards.
///
/// # Errors
/// The message of the panic.
pub fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CATCHING.get() {
                report(info);
            }
        }));
    });
    let outer = CATCHING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    CATCHING.set(outer);
    outcome.map_err(|cause| match cause.downcast::<String>() {
        Ok(message) => *message,
        Err(cause) => cause.downcast_ref().map_or("?", |text: &&str| *text).into(),
    })
}

#[cfg(test)]
#[allow(clippy::panic, reason = "panics are what is tested")]
mod tests {
    use super::catch_panic;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(catch_panic(|| 7), Ok(7));
        assert_eq!(
            catch_panic(|| panic!("a text")),
            Err::<(), _>("a text".into())
        );
        let number = 3;
        let formatted = catch_panic(|| panic!("number {number}"));
        assert_eq!(formatted, Err::<(), _>("number 3".into()));
    }

    #[test]
    fn a_call_within_a_call_keeps_the_outer_one_silent() {
        let outer = catch_panic(|| {
            let inner = catch_panic(|| panic!("inner"));
            assert_eq!(inner, Err::<(), _>("inner".into()));
            panic!("outer")
        });
        assert_eq!(outer, Err::<(), _>("outer".into()));
    }
}
