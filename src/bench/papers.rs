//! The systems of the four papers, one by one: the access pattern, the lesson, and the claim that
//! this run confirms or refutes. The short names of the papers in tables and identifiers:
//! - `HABR`: "CUDA: performance aspects of typical tasks", habr.com post 119435, 2011;
//! - `LXF`: "Transposing a matrix", Kalgin and Baldin, Linux Format Russia;
//! - `REDUCE`: "GPGPU optimisation by the example of a sum", after Mark Harris's seven reductions;
//! - `NOTES`: "Methods of effective organisation of parallel computing on GPUs", lecture notes,
//!   ticket 40.

mod habr;
mod lxf;
mod notes;
mod own;
mod reduce;

use super::figure::short;

/// The paper that a system comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// "CUDA: performance aspects of typical tasks" (habr.com post 119435, 2011).
    Habr,
    /// "Transposing a matrix" (Kalgin and Baldin, Linux Format Russia).
    Lxf,
    /// "GPGPU optimisation by the example of a sum" (after Harris).
    Reduce,
    /// "Methods of effective organisation of parallel computing on GPUs" (lecture notes).
    Notes,
    /// No paper: a system that this program adds.
    Own,
}

impl Paper {
    /// The short name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Paper::Habr => "HABR",
            Paper::Lxf => "LXF",
            Paper::Reduce => "REDUCE",
            Paper::Notes => "NOTES",
            Paper::Own => "gpuimg",
        }
    }
}

/// A system, as a paper describes it.
#[derive(Debug)]
pub struct Topic {
    /// The key by which rows refer to it.
    pub key: &'static str,
    /// The paper that describes it.
    pub paper: Paper,
    /// The work that it does.
    pub system: &'static str,
    /// A drawing of which thread accesses which element.
    pub picture: &'static str,
    /// The lesson that the paper draws.
    pub lesson: &'static str,
    /// The paper's claim about two rows.
    pub claim: Option<Claim>,
}

impl Topic {
    const fn of(
        paper: Paper,
        key: &'static str,
        system: &'static str,
        picture: &'static str,
        lesson: &'static str,
        claim: Option<Claim>,
    ) -> Topic {
        Topic {
            key,
            paper,
            system,
            picture,
            lesson,
            claim,
        }
    }
}

/// A claim with the ratio that the paper gives.
const fn published(slow: &'static str, fast: &'static str, then: f64) -> Option<Claim> {
    let then = Some(then);
    Some(Claim { slow, fast, then })
}

/// A claim without a figure.
const fn described(slow: &'static str, fast: &'static str) -> Option<Claim> {
    let then = None;
    Some(Claim { slow, fast, then })
}

/// "`slow` is so many times as slow as `fast`": by the rates of two rows.
#[derive(Debug)]
pub struct Claim {
    /// The row said to be slower.
    pub slow: &'static str,
    /// The row said to be faster.
    pub fast: &'static str,
    /// The published ratio of speeds; 1 means that there is no difference, `None` that the paper
    /// gives no figure.
    pub then: Option<f64>,
}

impl Claim {
    /// Whether it still holds: computed from the rates of the two rows in this run.
    pub fn verdict(&self, rate: impl Fn(&str) -> Option<f64>) -> String {
        let (Some(slow), Some(fast)) = (rate(self.slow), rate(self.fast)) else {
            return format!(
                "Not judged: {} or {} was not measured.",
                self.slow, self.fast
            );
        };
        let here = fast / slow;
        let found = match self.then {
            Some(then) => format!("{}× published, {}× here", short(then), short(here)),
            None => format!("{}× here", short(here)),
        };
        format!(
            "{}: {found} ({} to {}).",
            judged(here, self.then),
            self.fast,
            self.slow
        )
    }
}

/// The verdict on a ratio of speeds: the remaining part of the published advantage.
pub fn judged(here: f64, then: Option<f64>) -> &'static str {
    match then {
        Some(then) if (then - 1.0).abs() < 0.01 => match here {
            here if (0.87..=1.15).contains(&here) => "Still no difference",
            here if here > 1.0 => "There is a difference now",
            _ => "Reversed",
        },
        _ if here < 0.95 => "Reversed",
        _ if here < 1.05 => "No longer matters here",
        Some(then) if here - 1.0 >= 0.5 * (then - 1.0) => "Still holds",
        Some(_) => "Still holds, but weaker",
        None => "Holds here",
    }
}

/// All systems: the papers', then the program's own.
pub fn topics() -> impl Iterator<Item = &'static Topic> {
    [
        habr::TOPICS,
        lxf::TOPICS,
        reduce::TOPICS,
        notes::TOPICS,
        own::TOPICS,
    ]
    .into_iter()
    .flatten()
}

/// The system with this key.
pub fn topic(key: &str) -> &'static Topic {
    topics()
        .find(|topic| topic.key == key)
        .unwrap_or_else(|| unreachable!("the tables name only systems that there are: {key}"))
}
