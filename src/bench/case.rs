//! A row of a table: before the run its description and work, afterwards its result.

use super::context::{BenchContext, Host};
use super::figure::{Figure, Published, Time};
use super::papers::{self, Topic};
use super::table::Table;
use crate::gpu::driver::Facts;
use crate::timing::Limit;
use anyhow::Result;

/// The rate that a row's rate is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ceiling {
    /// None: the row counts calls, or no ceiling is known.
    None,
    /// The rate of this row of the table `ceilings`, measured in the same run.
    Measured(&'static str),
    /// The GPU's theoretical peak: memory clock × width, or link generation × lanes.
    Stated(Limit),
}

/// What a row needs of the GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needs {
    /// This compute capability or a later one.
    Capability(i32, i32),
    /// Managed memory that the host may use while the GPU works.
    ManagedMemory,
}

impl Needs {
    /// What is missing of it, if something is.
    pub fn missing(self, facts: &Facts) -> Option<String> {
        let (major, minor) = facts.capability;
        match self {
            Needs::Capability(first, second) if facts.capability < (first, second) => Some(
                format!("compute capability {first}.{second}, and this GPU has {major}.{minor}"),
            ),
            Needs::ManagedMemory if !facts.managed => {
                Some("managed memory that the host may use while the GPU works".into())
            }
            _ => None,
        }
    }
}

/// The result of a case, whose output has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The time of one launch, call or pass.
    pub time: Time,
    /// An additional observation, if there is one.
    pub remark: Option<String>,
}

impl From<Time> for Measured {
    fn from(time: Time) -> Measured {
        Measured { time, remark: None }
    }
}

type OnGpu = Box<dyn Fn(&BenchContext) -> Result<Measured>>;
type OnHost = Box<dyn Fn(&Host) -> Result<Measured>>;

/// The work of a case.
pub enum Work {
    /// Work on the GPU: checks its result, then times it.
    Gpu(OnGpu),
    /// Work on the host.
    Host(OnHost),
}

/// The description of a row.
#[derive(Clone, Debug)]
pub struct About {
    /// A unique name that is the same in every run: `memory/copy`.
    pub id: String,
    /// The table that shows it.
    pub table: Table,
    /// The name in the table.
    pub name: String,
    /// The system that it measures.
    pub topic: &'static Topic,
    /// What the paper states, for each of its machines; the first is compared with.
    pub published: Vec<Published>,
    /// Bytes as the paper counts them; 0 if it counts calls.
    pub bytes: u64,
    /// Whether its time depends on the host's pageable memory: the placement of the pages differs
    /// from run to run.
    pub pageable: bool,
}

/// A row that can be run.
pub struct Case {
    /// Its description.
    pub about: About,
    /// Bytes of device memory that it touches.
    pub footprint: u64,
    /// The rate that its rate is compared with.
    pub ceiling: Ceiling,
    /// What it needs of the GPU, if it does not run on all.
    pub needs: Option<Needs>,
    /// Its work.
    pub work: Work,
}

impl Case {
    /// A row that runs on the GPU and moves `bytes`, which also occupy as many bytes of device
    /// memory.
    pub fn gpu<R: Into<Measured>>(
        table: Table,
        id: impl Into<String>,
        name: impl Into<String>,
        topic: &'static str,
        bytes: u64,
        work: impl Fn(&BenchContext) -> Result<R> + 'static,
    ) -> Case {
        let work = move |context: &BenchContext| Ok(work(context)?.into());
        Case::new(table, id, name, topic, bytes, Work::Gpu(Box::new(work)))
    }

    /// A row that runs on the host.
    pub fn host<R: Into<Measured>>(
        table: Table,
        id: impl Into<String>,
        name: impl Into<String>,
        topic: &'static str,
        bytes: u64,
        work: impl Fn(&Host) -> Result<R> + 'static,
    ) -> Case {
        let work = move |host: &Host| Ok(work(host)?.into());
        Case::new(table, id, name, topic, bytes, Work::Host(Box::new(work)))
    }

    fn new(
        table: Table,
        id: impl Into<String>,
        name: impl Into<String>,
        topic: &'static str,
        bytes: u64,
        work: Work,
    ) -> Case {
        Case {
            about: About {
                id: format!("{}/{}", table.name(), id.into()),
                table,
                name: name.into(),
                topic: papers::topic(topic),
                published: Vec::new(),
                bytes,
                pageable: matches!(work, Work::Host(_)),
            },
            footprint: bytes,
            ceiling: Ceiling::None,
            needs: None,
            work,
        }
    }

    /// Adds the paper's figure for one of its machines.
    pub fn published(self, figure: Figure, machine: &'static str) -> Case {
        self.stating(Some(figure), None, machine)
    }

    /// Adds what the paper states in words.
    pub fn stated(self, words: &'static str, machine: &'static str) -> Case {
        self.stating(None, Some(words), machine)
    }

    /// Adds the paper's figure, if it is to be compared with, and its words, if they say more.
    pub fn stating(
        mut self,
        figure: Option<Figure>,
        words: Option<&'static str>,
        machine: &'static str,
    ) -> Case {
        self.about.published.push(Published {
            figure,
            words,
            machine,
        });
        self
    }

    /// Sets the ceiling.
    pub fn under(mut self, ceiling: Ceiling) -> Case {
        self.ceiling = ceiling;
        self
    }

    /// Sets what it needs of the GPU.
    pub fn needing(mut self, needs: Needs) -> Case {
        self.needs = Some(needs);
        self
    }

    /// Sets the system that it measures.
    pub fn topic(mut self, topic: &'static str) -> Case {
        self.about.topic = papers::topic(topic);
        self
    }

    /// Marks the row as dependent on pageable memory.
    pub fn pageable(mut self, pageable: bool) -> Case {
        self.about.pageable = pageable;
        self
    }

    /// Sets the bytes of device memory that it touches.
    pub fn touching(mut self, bytes: u64) -> Case {
        self.footprint = bytes;
        self
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The result was correct and was timed.
    Measured(Measured),
    /// The result was wrong, or the case failed, with the reason.
    Failed(String),
    /// The case was not run, with the reason.
    LeftOut(String),
}

/// A row that was run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its description.
    pub about: About,
    /// Whether the memory that it touches fits into the GPU's level-2 cache.
    pub fits_l2: bool,
    /// The rate that its rate is compared with, in GB/s.
    pub ceiling: Option<f64>,
    /// The peak that the GPU states for its memory, in GB/s.
    pub peak: Option<f64>,
    /// Its outcome.
    pub outcome: Outcome,
}

impl Row {
    /// Its time, if it was measured.
    pub fn time(&self) -> Option<Time> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured.time),
            _ => None,
        }
    }

    /// GB/s, or calls per second if the row counts calls.
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.time()?.median.max(1e-12);
        Some(match self.about.bytes {
            0 => 1.0 / seconds,
            bytes => bytes as f64 / seconds / 1e9,
        })
    }

    /// Percent of its ceiling; none of calls.
    pub fn percent(&self) -> Option<f64> {
        let ceiling = self.ceiling.filter(|_| self.about.bytes > 0)?;
        Some(100.0 * self.rate()? / ceiling)
    }

    /// The published time divided by its own: how many times as fast as published.
    pub fn ratio(&self) -> Option<f64> {
        let then = self.about.published.first()?.seconds(self.about.bytes)?;
        Some(then / self.time()?.median.max(1e-12))
    }

    /// The rate at which the row's work would take the published time.
    pub fn published_rate(&self) -> Option<f64> {
        let then = self.about.published.first()?.seconds(self.about.bytes)?;
        Some(match self.about.bytes {
            0 => 1.0 / then,
            bytes => bytes as f64 / then / 1e9,
        })
    }

    /// What the paper states, for all of its machines; empty where it states nothing.
    pub fn published(&self) -> String {
        let texts: Vec<String> = self.about.published.iter().map(Published::text).collect();
        texts.join(", ")
    }

    /// Notes beside the numbers.
    pub fn diagnostics(&self) -> String {
        let mut diagnostics = Vec::new();
        if self.fits_l2 && self.about.bytes > 0 {
            diagnostics.push("fits L2");
        }
        if self.time().is_some_and(|time| time.is_unstable()) {
            diagnostics.push("unstable");
        }
        match &self.outcome {
            Outcome::Measured(Measured {
                remark: Some(remark),
                ..
            }) => diagnostics.push(remark),
            Outcome::Measured(_) => (),
            Outcome::Failed(why) | Outcome::LeftOut(why) => diagnostics.push(why),
        }
        diagnostics.join("; ")
    }
}
