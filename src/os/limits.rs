//! The memory and cores that this process may use, as bounded by the machine, the process's control
//! groups (cgroups(7), both versions), Slurm and `ulimit -v`.

use crate::os::system;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// Bytes of memory that are assumed free if the system does not say.
const UNKNOWN: u64 = 4 << 30;

/// The least that is assumed free, in bytes: with less nothing could be processed.
const LEAST: u64 = 64 << 20;

/// Addresses for each core, in bytes: glibc reserves 64 MiB for the allocations of each of its threads, and 128 MiB for a moment.
const ADDRESSES_PER_CORE: u64 = 256 << 20;

/// Half of the memory that is free to this process, in bytes.
pub fn free_memory() -> u64 {
    let free = System::here().free_memory();
    let left = address_space();
    let free = free.into_iter().chain(left).min();
    free.unwrap_or(UNKNOWN).max(LEAST) / 2
}

/// Threads that this process can run at the same time.
pub fn cores() -> usize {
    // Respects the process's affinity, and some control groups.
    let available = thread::available_parallelism().map_or(1, usize::from);
    let addressable = |bytes| usize::try_from(bytes / ADDRESSES_PER_CORE).unwrap_or(usize::MAX);
    let bounds = [System::here().cores(), address_space().map(addressable)];
    let bounds = bounds.into_iter().flatten();
    bounds.fold(available, usize::min).max(1)
}

/// The memory and cores that control groups, as containers and batch systems set them, allow this process, in words;
/// `None` without a limit.
pub fn control_groups() -> Option<String> {
    System::here().control_groups()
}

/// Bytes of address space that `ulimit -v` leaves.
fn address_space() -> Option<u64> {
    let most = system::address_space_limit()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(most.saturating_sub(kib(&status, "VmSize:")?))
}

/// The number of KiB that a file in /proc gives for `name`, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// The places where limits are looked up; tests provide their own.
struct System<'a> {
    /// Prefix of every path; `/` except in tests.
    root: &'a Path,
    /// Looks up an environment variable.
    variable: &'a dyn Fn(&str) -> Option<String>,
}

/// A control group that bounds this process: its own, or one above it.
struct Group {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl System<'_> {
    /// The real system.
    fn here() -> System<'static> {
        System {
            root: Path::new("/"),
            variable: &|name| env::var(name).ok(),
        }
    }

    /// Bytes of free memory: the smallest of all limits.
    fn free_memory(&self) -> Option<u64> {
        let machine = kib(&self.read("proc/meminfo"), "MemAvailable:").or_else(system::free_memory);
        let groups = self.groups("memory");
        let groups = groups.iter().filter_map(Group::free_memory);
        groups.chain(machine).chain(self.slurm_memory()).min()
    }

    /// The limits of the control groups, in words.
    fn control_groups(&self) -> Option<String> {
        let groups = self.groups("memory");
        let memory = groups.iter().filter_map(Group::memory_limit).min();
        let memory = memory.map(|bytes| format!("{} MiB of memory", bytes >> 20));
        let groups = self.groups("cpu");
        let cores = groups.iter().filter_map(Group::cores).reduce(f64::min);
        let cores = cores.map(|cores| format!("{cores:.1} cores"));
        let limits: Vec<String> = memory.into_iter().chain(cores).collect();
        (!limits.is_empty()).then(|| format!("a control group allows {}", limits.join(" and ")))
    }

    /// Bytes of memory that Slurm grants; not every cluster enforces them with control groups.
    fn slurm_memory(&self) -> Option<u64> {
        let mib = match self.number("SLURM_MEM_PER_NODE") {
            Some(mib) => mib,
            None => {
                let cpus = self.number("SLURM_CPUS_PER_TASK").unwrap_or(1);
                self.number("SLURM_MEM_PER_CPU")?.checked_mul(cpus)?
            }
        };
        mib.checked_mul(1 << 20)
    }

    /// Whole cores that the quotas of the control groups and Slurm grant; `None` without a limit.
    fn cores(&self) -> Option<usize> {
        let groups = self.groups("cpu");
        let quotas = groups.iter().filter_map(Group::cores);
        let quotas = quotas.map(|cores| cores as u64);
        let cores = quotas.chain(self.number("SLURM_CPUS_PER_TASK")).min()?;
        usize::try_from(cores.max(1)).ok()
    }

    /// A number above 0 from the environment; Slurm's 0 stands for no limit.
    fn number(&self, name: &str) -> Option<u64> {
        let number = (self.variable)(name)?.parse().ok()?;
        (number > 0).then_some(number)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_default()
    }

    /// The groups of `controller` that contain this process, from its own upwards as far as they
    /// are mounted.
    fn groups(&self, controller: &str) -> Vec<Group> {
        let (own, mounts) = (
            self.read("proc/self/cgroup"),
            self.read("proc/self/mountinfo"),
        );
        let mut groups = Vec::new();
        for mount in mounts.lines().filter_map(Mount::parse) {
            let has = |list: &str| list.split(',').any(|name| name == controller);
            let version = match mount.kind {
                "cgroup" if has(mount.options) => Version::One,
                "cgroup2" => Version::Two,
                _ => continue,
            };
            // A line is ID:controllers:path; version 2 has ID 0 and names no controller.
            let path = own.lines().find_map(|line| {
                let (id, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                let ours = match version {
                    Version::One => has(controllers),
                    Version::Two => id == "0" && controllers.is_empty(),
                };
                ours.then_some(path)
            });
            let Some(path) = path else { continue };
            // A container sees only a part of the hierarchy, mounted as if it were the whole; if
            // the path is not in that part (it belongs to another namespace), the mounted root is
            // the limiting group.
            let below = Path::new(path).strip_prefix(mount.root);
            let below = below.unwrap_or(Path::new(""));
            let top = mount.point.trim_start_matches('/');
            let folders = below.ancestors().map(|part| self.root.join(top).join(part));
            groups.extend(folders.map(|folder| Group { folder, version }));
        }
        groups
    }
}

/// A line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
struct Mount<'a> {
    /// The mounted folder of the file system.
    root: &'a str,
    /// The mount point.
    point: &'a str,
    /// The type of the file system.
    kind: &'a str,
    /// The file system's own options.
    options: &'a str,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        Some(Mount {
            root: before.next()?,
            point: before.next()?,
            kind: after.next()?,
            options: after.nth(1)?,
        })
    }
}

impl Group {
    /// Bytes of memory that the group may use.
    fn memory_limit(&self) -> Option<u64> {
        let limits: &[&str] = match self.version {
            Version::One => &["memory.limit_in_bytes"],
            // Above `high`, processes are throttled without end.
            Version::Two => &["memory.max", "memory.high"],
        };
        let limits = limits.iter().filter_map(|name| self.number(name));
        // For no limit, version 1 has a number larger than any memory.
        limits.min().filter(|&bytes| bytes < 1 << 50)
    }

    /// Bytes of memory that the group may still use. Inactive file pages do not count as used, since the
    /// kernel reclaims them first.
    fn free_memory(&self) -> Option<u64> {
        let (used, inactive) = match self.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file "),
            Version::Two => ("memory.current", "inactive_file "),
        };
        let limit = self.memory_limit()?;
        let stat = self.read("memory.stat");
        let inactive = stat.lines().find_map(|line| line.strip_prefix(inactive));
        let inactive: u64 = inactive.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        let used = self.number(used).unwrap_or(0).saturating_sub(inactive);
        Some(limit.saturating_sub(used))
    }

    /// The cores' worth of time that the group may use.
    fn cores(&self) -> Option<f64> {
        let (quota, period) = match self.version {
            Version::One => (
                self.number("cpu.cfs_quota_us")?,
                self.number("cpu.cfs_period_us")?,
            ),
            Version::Two => {
                let text = self.read("cpu.max");
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            }
        };
        (period > 0).then(|| quota as f64 / period as f64)
    }

    /// A number from a file; `None` without a limit (`max`, -1).
    fn number(&self, name: &str) -> Option<u64> {
        self.read(name).trim().parse().ok()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MACHINE: (&str, &str) = (
        "proc/meminfo",
        "MemTotal: 99 kB\nMemAvailable: 16777216 kB\n",
    );

    /// The root of a machine with these files.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("temporary folder");
        for (name, text) in files.iter().chain([&MACHINE]) {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            fs::write(path, text).expect("file");
        }
        root
    }

    /// The limits of the control groups of a machine with these files, in words.
    fn in_words(files: &[(&str, &str)]) -> Option<String> {
        let root = machine(files);
        let system = System {
            root: root.path(),
            variable: &|_| None,
        };
        system.control_groups()
    }

    /// The free memory in MiB and the cores of a machine with these files and variables.
    fn detected(files: &[(&str, &str)], variables: &[(&str, &str)]) -> (u64, Option<usize>) {
        let root = machine(files);
        let variable = |name: &str| {
            let variable = variables.iter().find(|(key, _)| *key == name);
            variable.map(|(_, value)| value.to_string())
        };
        let system = System {
            root: root.path(),
            variable: &variable,
        };
        let free = system.free_memory().expect("the machine's at least");
        (free / MIB, system.cores())
    }

    const TWO: &str =
        "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn no_bound_but_the_machine() {
        assert_eq!(detected(&[], &[]), (16384, None));
        let files = [
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/cgroup.procs", "1\n"),
        ];
        assert_eq!(detected(&files, &[]), (16384, None));
        assert_eq!(in_words(&files), None);
    }

    #[test]
    fn the_own_group_and_not_only_the_root() {
        let files = [
            ("proc/self/cgroup", "0::/system.slice/job_7/step_0\n"),
            ("proc/self/mountinfo", TWO),
            (
                "sys/fs/cgroup/system.slice/job_7/step_0/memory.max",
                "max\n",
            ),
            (
                "sys/fs/cgroup/system.slice/job_7/step_0/cpu.max",
                "max 100000\n",
            ),
            ("sys/fs/cgroup/system.slice/job_7/memory.max", "419430400\n"),
            (
                "sys/fs/cgroup/system.slice/job_7/memory.current",
                "209715200\n",
            ),
            (
                "sys/fs/cgroup/system.slice/job_7/memory.stat",
                "anon 5\ninactive_file 104857600\n",
            ),
            ("sys/fs/cgroup/system.slice/cpu.max", "350000 100000\n"),
            ("sys/fs/cgroup/system.slice/memory.high", "1073741824\n"),
        ];
        assert_eq!(detected(&files, &[]), (300, Some(3)));
    }

    #[test]
    fn the_doctor_missed_the_limits_of_nested_groups() {
        let job = "sys/fs/cgroup/system.slice/job_7/memory.max";
        let files = [
            ("proc/self/cgroup", "0::/system.slice/job_7\n"),
            ("proc/self/mountinfo", TWO),
            (job, "419430400\n"),
            ("sys/fs/cgroup/system.slice/cpu.max", "350000 100000\n"),
        ];
        assert_eq!(
            in_words(&files).expect("limits"),
            "a control group allows 400 MiB of memory and 3.5 cores"
        );
    }

    #[test]
    fn version_one_with_its_controllers_apart() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n\
                      31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let files = [
            (
                "proc/self/cgroup",
                "9:memory:/slurm/uid_7/job_1\n4:cpu,cpuacct:/slurm/uid_7\n0::/\n",
            ),
            ("proc/self/mountinfo", mounts),
            (
                "sys/fs/cgroup/memory/slurm/uid_7/job_1/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "sys/fs/cgroup/memory/slurm/uid_7/memory.limit_in_bytes",
                "419430400\n",
            ),
            (
                "sys/fs/cgroup/memory/slurm/uid_7/memory.usage_in_bytes",
                "314572800\n",
            ),
            (
                "sys/fs/cgroup/memory/slurm/uid_7/memory.stat",
                "inactive_file 1\ntotal_inactive_file 209715200\n",
            ),
            (
                "sys/fs/cgroup/cpu,cpuacct/slurm/uid_7/cpu.cfs_quota_us",
                "50000\n",
            ),
            (
                "sys/fs/cgroup/cpu,cpuacct/slurm/uid_7/cpu.cfs_period_us",
                "100000\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(detected(&files, &[]), (300, Some(1)));
        assert_eq!(
            in_words(&files).expect("limits"),
            "a control group allows 400 MiB of memory and 0.5 cores"
        );
    }

    #[test]
    fn a_container_sees_its_group_as_the_root() {
        // Docker and Kubernetes without a cgroup namespace: the path is the host's, and only the
        // container's part is mounted.
        let mounts = "40 25 0:26 /docker/4fa6 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let mut files = [
            ("proc/self/cgroup", "3:memory:/docker/4fa6\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "419430400\n"),
        ];
        assert_eq!(detected(&files, &[]), (400, None));
        // With a cgroup namespace the path is relative to another root, and cannot be followed.
        files[0].1 = "3:memory:/../../other\n";
        assert_eq!(detected(&files, &[]), (400, None));
        let files = [
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/memory.max", "419430400\n"),
            ("sys/fs/cgroup/cpu.max", "200000 100000\n"),
        ];
        assert_eq!(detected(&files, &[]), (400, Some(2)));
    }

    #[test]
    fn no_limit_is_reported_where_the_groups_set_none() {
        let files = [
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/memory.max", "max\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
        ];
        assert_eq!(in_words(&files), None);
        let mounts = "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let unlimited = "9223372036854771712\n";
        let files = [
            ("proc/self/cgroup", "9:memory:/\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
        ];
        assert_eq!(in_words(&files), None);
        assert_eq!(detected(&files, &[]), (16384, None));
    }

    #[test]
    fn slurm_without_control_groups() {
        let job = [("SLURM_CPUS_PER_TASK", "4"), ("SLURM_MEM_PER_NODE", "400")];
        assert_eq!(detected(&[], &job), (400, Some(4)));
        let job = [("SLURM_CPUS_PER_TASK", "4"), ("SLURM_MEM_PER_CPU", "100")];
        assert_eq!(detected(&[], &job), (400, Some(4)));
        // All the memory of the node, and a variable with an unusable value.
        let job = [("SLURM_CPUS_PER_TASK", "x"), ("SLURM_MEM_PER_NODE", "0")];
        assert_eq!(detected(&[], &job), (16384, None));
    }
}
