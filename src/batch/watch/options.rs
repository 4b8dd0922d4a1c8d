//! The options of a watch.

use std::path::PathBuf;
use std::time::Duration;

/// How long a file must be unchanged where no event tells that it is whole.
const SETTLE: Duration = Duration::from_secs(1);

/// The options of a watch.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Watching {
    /// Stay, and process files as they come into the folders, what is there first, until Ctrl-C; what an earlier run has done is skipped
    #[arg(long, help_heading = "Watched folders")]
    pub watch: bool,

    /// End when all is done and nothing has come for so many SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub idle: Option<Duration>,

    /// End when a file of this NAME is in an input folder, after all that came before it
    #[arg(
        long,
        value_name = "NAME",
        requires = "watch",
        help_heading = "Watched folders"
    )]
    pub until_file: Option<PathBuf>,

    /// Look at the folders every so many SECONDS, where no events come, as on network file systems
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub poll: Option<Duration>,

    /// Take a file that no event calls whole when size and time have not changed for so many SECONDS [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub settle: Option<Duration>,
}

impl Watching {
    /// How long a file must be unchanged where no event tells that it is whole.
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
        .ok_or_else(|| "expected seconds, as 5 or 0.5".into())
}
