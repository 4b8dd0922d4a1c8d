//! The failures of the files of a run. If all files fail for the same reason, one line has their number and the first of them.

use crate::engine::Failure;
use crate::os::count::plural;
use crate::os::name::Shown;
use anyhow::Error;

/// The failures that are not printed yet, because all files so far have failed for the same reason.
#[derive(Debug, Default)]
pub struct Failures {
    /// The first of them is that of the first file; the others have no order.
    held: Vec<Held>,
    /// Whether each failure is printed at once: files were done, or failed for other reasons.
    differ: bool,
}

/// A failure that is not printed yet.
#[derive(Debug)]
struct Held {
    /// The position of its file among all.
    position: u64,
    failure: Failure,
    reason: String,
}

impl Failures {
    /// Adds the failure of the file at this position. Returns the lines to print now.
    pub fn add(&mut self, position: u64, error: &Error) -> Vec<String> {
        let parts = Failure::find_in(error).filter(|_| !self.differ);
        let held = parts.map(|(failure, reason)| Held {
            position,
            failure: failure.clone(),
            reason,
        });
        let is_alike = |held: &Held| match self.held.first() {
            None => true,
            Some(first) => {
                first.failure.operation == held.failure.operation && first.reason == held.reason
            }
        };
        match held {
            Some(held) if is_alike(&held) => {
                self.held.push(held);
                let last = self.held.len() - 1;
                if self.held[last].position < self.held[0].position {
                    self.held.swap(0, last);
                }
                Vec::new()
            }
            _ => {
                let mut lines = self.release();
                lines.push(format!("{error:#}"));
                lines
            }
        }
    }

    /// Returns the lines that were held back, and holds back none from now on: a file was done, or failed for another reason.
    pub fn release(&mut self) -> Vec<String> {
        self.differ = true;
        self.held.sort_by_key(|held| held.position);
        let held = self.held.drain(..);
        held.map(|held| format!("{}: {}", held.failure, held.reason))
            .collect()
    }

    /// Returns the line about all files so far, if none was printed before.
    pub fn line(&self) -> Option<String> {
        let Held {
            failure, reason, ..
        } = self.held.first()?;
        Some(match self.held.len() {
            1 => format!("{failure}: {reason}"),
            count => format!(
                "cannot {} {} (first: {}): {reason}",
                failure.operation,
                plural(count, "file"),
                failure.path.shown()
            ),
        })
    }
}

/// The lines about errors of files that are all there are.
pub fn lines(errors: impl Iterator<Item = Error>) -> Vec<String> {
    let mut failures = Failures::default();
    let lines = (0..).zip(errors);
    let mut lines: Vec<String> = lines
        .flat_map(|(position, error)| failures.add(position, &error))
        .collect();
    lines.extend(failures.line());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;
    use std::path::Path;

    fn error(name: &str, reason: &'static str) -> Error {
        anyhow!(reason).context(Failure::new("read", Path::new(name)))
    }

    #[test]
    fn one_line_if_all_fail_alike() {
        let alike = [("b", "cut"), ("a", "cut"), ("c", "cut")].map(|(name, why)| error(name, why));
        assert_eq!(
            lines(alike.into_iter()),
            ["cannot read 3 files (first: b): cut"]
        );
        assert_eq!(
            lines([error("a", "cut")].into_iter()),
            ["cannot read a: cut"]
        );
        assert!(lines(std::iter::empty()).is_empty());
    }

    #[test]
    fn a_line_each_if_reasons_differ_or_a_file_is_done() {
        let differ = [("a", "cut"), ("b", "cut"), ("c", "damaged"), ("d", "cut")];
        let differ = differ.map(|(name, why)| error(name, why));
        assert_eq!(
            lines(differ.into_iter()),
            [
                "cannot read a: cut",
                "cannot read b: cut",
                "cannot read c: damaged",
                "cannot read d: cut"
            ]
        );
        let mut failures = Failures::default();
        assert!(failures.add(1, &error("b", "cut")).is_empty());
        assert!(failures.add(0, &error("a", "cut")).is_empty());
        assert_eq!(
            failures.release(),
            ["cannot read a: cut", "cannot read b: cut"]
        );
        assert_eq!(failures.add(2, &error("c", "cut")), ["cannot read c: cut"]);
        assert_eq!(failures.line(), None);
        // An error that is not about a file.
        assert_eq!(lines([anyhow!("other")].into_iter()), ["other"]);
    }
}
