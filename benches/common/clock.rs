//! Processor time, which is meaningful even on a busy machine.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Time that this process ran, on all cores together.
pub fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
