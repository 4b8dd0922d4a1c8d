//! A row of a table before it is run (what it is, whose, what it counts) and after (what was found).

use super::Table;
use super::context::{BenchContext, Host};
use super::figure::{Figure, Published, Time};
use super::papers::{self, Topic};
use crate::timing::Limit;
use anyhow::Result;

/// What a row's rate is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ceiling {
    /// Nothing: the row counts calls, or no ceiling is known.
    None,
    /// What this row of the table `ceilings` measured in the same run.
    Measured(&'static str),
    /// The GPU's own statement: memory clock × width, or link generation × lanes.
    Stated(Limit),
}

/// What running a case gave, its result checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// How long it took.
    pub time: Time,
    /// What else was seen, if anything.
    pub remark: Option<String>,
}

impl From<Time> for Measured {
    fn from(time: Time) -> Measured {
        Measured { time, remark: None }
    }
}

type OnGpu = Box<dyn Fn(&BenchContext) -> Result<Measured>>;
type OnHost = Box<dyn Fn(&Host) -> Result<Measured>>;

/// How a case is run.
pub enum Work {
    /// On the GPU; checks what it computes, then times it.
    Gpu(OnGpu),
    /// On the host.
    Host(OnHost),
}

/// What a row says of itself, run or not.
#[derive(Clone, Debug)]
pub struct About {
    /// The same in every run, unique among all: `memory/copy`.
    pub id: String,
    /// The table that shows it.
    pub table: Table,
    /// What a reader sees.
    pub name: String,
    /// The system that it shows.
    pub topic: &'static Topic,
    /// The paper's figure for it.
    pub published: Option<Published>,
    /// Bytes as the paper counts them; 0 where it counts calls.
    pub bytes: u64,
    /// Whether its time hangs on the host's ordinary memory: where its pages happen to lie differs
    /// from run to run.
    pub pageable: bool,
}

/// A row that can be run.
pub struct Case {
    /// What it is.
    pub about: About,
    /// Bytes of device memory that it touches.
    pub footprint: u64,
    /// What its rate is held against.
    pub ceiling: Ceiling,
    /// How it is run.
    pub work: Work,
}

impl Case {
    /// A row that runs on the GPU, and moves `bytes`, which lie in as many bytes of its memory.
    pub fn gpu(
        table: Table,
        id: impl Into<String>,
        name: impl Into<String>,
        topic: &'static str,
        bytes: u64,
        work: impl Fn(&BenchContext) -> Result<Measured> + 'static,
    ) -> Case {
        Case::new(table, id, name, topic, bytes, Work::Gpu(Box::new(work)))
    }

    /// A row that runs on the host.
    pub fn host(
        table: Table,
        id: impl Into<String>,
        name: impl Into<String>,
        topic: &'static str,
        bytes: u64,
        work: impl Fn(&Host) -> Result<Measured> + 'static,
    ) -> Case {
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
                published: None,
                bytes,
                pageable: matches!(work, Work::Host(_)),
            },
            footprint: bytes,
            ceiling: Ceiling::None,
            work,
        }
    }

    /// With the paper's figure.
    pub fn published(mut self, figure: Figure, machine: &'static str) -> Case {
        self.about.published = Some(Published { figure, machine });
        self
    }

    /// Held against a ceiling.
    pub fn under(mut self, ceiling: Ceiling) -> Case {
        self.ceiling = ceiling;
        self
    }

    /// Depends on the host's ordinary memory.
    pub fn pageable(mut self, pageable: bool) -> Case {
        self.about.pageable = pageable;
        self
    }

    /// Touches this much device memory.
    pub fn touching(mut self, bytes: u64) -> Case {
        self.footprint = bytes;
        self
    }
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Right, and timed.
    Measured(Measured),
    /// Wrong, or it did not run: why.
    Failed(String),
    /// Not tried: why.
    LeftOut(String),
}

/// A row that was run.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub about: About,
    /// Whether what it touches stays in the GPU's level-2 cache.
    pub fits_l2: bool,
    /// What its rate is held against, in GB/s.
    pub ceiling: Option<f64>,
    /// What was found.
    pub outcome: Outcome,
}

impl Row {
    /// Its time, where it was measured.
    pub fn time(&self) -> Option<Time> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured.time),
            _ => None,
        }
    }

    /// GB/s, or calls a second where it counts calls.
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.time()?.median.max(1e-12);
        Some(match self.about.bytes {
            0 => 1.0 / seconds,
            bytes => bytes as f64 / seconds / 1e9,
        })
    }

    /// Percent of its ceiling.
    pub fn percent(&self) -> Option<f64> {
        Some(100.0 * self.rate()? / self.ceiling?)
    }

    /// How many times as fast as published.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.rate()? / self.about.published?.rate())
    }

    /// What is worth knowing besides the numbers.
    pub fn diagnostics(&self) -> String {
        let mut diagnostics = Vec::new();
        if self.fits_l2 && self.about.bytes > 0 {
            diagnostics.push("fits L2");
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

/// The rate of the row that is called `id`, where it was measured.
pub fn rate_of(rows: &[Row], id: &str) -> Option<f64> {
    rows.iter().find(|row| row.about.id == id)?.rate()
}
