//! The options of a watch.

use std::path::PathBuf;
use std::time::Duration;

/// How long a file must be unchanged if no event reports that it is complete.
const SETTLE: Duration = Duration::from_secs(1);

/// The options of a watch.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Watching {
    /// Keep running and process new files in the folders until Ctrl-C, existing files first; files that an earlier run has done are skipped
    #[arg(long, help_heading = "Watched folders")]
    pub watch: bool,

    /// Stop when all files are done and no new file has arrived for SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub idle: Option<Duration>,

    /// Stop when a file called NAME appears in an input folder, after finishing the files that arrived before it
    #[arg(
        long,
        value_name = "NAME",
        requires = "watch",
        help_heading = "Watched folders"
    )]
    pub until_file: Option<PathBuf>,

    /// Scan the folders every SECONDS, for file systems without events, such as network file systems
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub poll: Option<Duration>,

    /// Without events, treat a file as complete when its size and time have not changed for SECONDS [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub settle: Option<Duration>,
}

impl Watching {
    /// How long a file must be unchanged if no event reports that it is complete.
    pub fn settle(&self) -> Duration {
        self.settle.unwrap_or(SETTLE)
    }
}

/// A number of seconds, which may have a fraction.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // Longer ones could not be added to the present.
    duration
        .filter(|duration| duration.as_secs() < 1 << 32)
        .ok_or_else(|| "expected seconds, e.g. 5 or 0.5".into())
}
