//! What the papers claim, and the rows by which each claim is judged: the one table of pairs. A
//! claim is that one row is so many times as slow as another, that both are the same, that a call
//! returns at once, or that a row reaches a share of the GPU's peak.

use super::case::Row as Measured;
use super::figure::short;
use super::papers::{self, Paper, Topic};
use super::table::Table;
use super::transfer::AT_ONCE;
use clap::ValueEnum;

mod table;

pub use table::CLAIMS;

/// A row, by its name or as the best or worst of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pick {
    /// The row with this id.
    Row(&'static str),
    /// The fastest of the rows whose ids begin so, on this GPU.
    Best(&'static str, Shapes),
    /// The slowest of them.
    Worst(&'static str, Shapes),
}

/// Which shapes of block of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shapes {
    /// All.
    All,
    /// At least as many threads along x as along y.
    Wide,
    /// More threads along y than along x.
    Tall,
}

impl Shapes {
    /// Whether a shape, written as at the end of an id (`8x32`), is one of these.
    fn has(self, shape: &str) -> bool {
        let side = |text: &str| text.parse::<u32>().ok();
        let sides = shape.split_once('x').map(|(x, y)| (side(x), side(y)));
        match (self, sides) {
            (Shapes::All, _) => true,
            (Shapes::Wide, Some((x, y))) => x >= y,
            (Shapes::Tall, Some((x, y))) => x < y,
            (_, None) => false,
        }
    }
}

impl Pick {
    /// The row among those that were measured.
    pub fn find<'r>(&self, rows: &'r [Measured]) -> Option<&'r Measured> {
        let seconds = |row: &&Measured| row.time().map_or(f64::MAX, |time| time.median);
        let of = |prefix: &'static str, shapes: Shapes| {
            rows.iter().filter(move |row| {
                let shape = row.about.id.strip_prefix(prefix);
                row.time().is_some() && shape.is_some_and(|shape| shapes.has(shape))
            })
        };
        match *self {
            Pick::Row(id) => rows
                .iter()
                .find(|row| row.about.id == id && row.time().is_some()),
            Pick::Best(prefix, shapes) => {
                of(prefix, shapes).min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
            }
            Pick::Worst(prefix, shapes) => {
                of(prefix, shapes).max_by(|a, b| seconds(a).total_cmp(&seconds(b)))
            }
        }
    }

    /// The id, or the beginning of the ids.
    pub fn id(&self) -> &'static str {
        match *self {
            Pick::Row(id) | Pick::Best(id, _) | Pick::Worst(id, _) => id,
        }
    }

    /// The pick in words: the id, or `best of transpose/naive-1024-*`.
    pub fn text(&self) -> String {
        let which = |shapes| match shapes {
            Shapes::All => "",
            Shapes::Wide => " with x ≥ y",
            Shapes::Tall => " with y > x",
        };
        match *self {
            Pick::Row(id) => id.into(),
            Pick::Best(id, shapes) => format!("best of {id}*{}", which(shapes)),
            Pick::Worst(id, shapes) => format!("worst of {id}*{}", which(shapes)),
        }
    }

    /// The table that the rows belong to.
    fn table(&self) -> Option<Table> {
        let name = self.id().split('/').next()?;
        let tables = Table::value_variants().iter();
        tables.copied().find(|table| table.name() == name)
    }
}

/// What the paper says of the ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    /// The paper states this ratio, in these words.
    Stated(f64, &'static str),
    /// This ratio was computed from the figures that the paper states.
    Computed(f64, &'static str),
    /// The paper states, or its figures give, ratios between these.
    Between(f64, f64, &'static str),
    /// The paper says that there is no difference.
    Same(&'static str),
    /// The paper counts transactions or bytes, which is no ratio of speeds.
    Count(&'static str),
    /// The paper says which is slower, and gives no figure.
    Slower,
}

impl Then {
    /// The least and the most that the ratio may be.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        match *self {
            Then::Stated(ratio, _) | Then::Computed(ratio, _) => Some((ratio, ratio)),
            Then::Between(low, high, _) => Some((low, high)),
            Then::Same(_) => Some((1.0, 1.0)),
            Then::Count(_) | Then::Slower => None,
        }
    }

    /// What the paper states, with its words; what was computed is marked.
    pub fn text(&self) -> String {
        match *self {
            Then::Stated(ratio, words) => format!("{}×: {words}", short(ratio)),
            Then::Computed(ratio, words) => format!("{}×, computed from {words}", short(ratio)),
            Then::Between(low, high, words) => {
                format!("{}–{}×: {words}", short(low), short(high))
            }
            Then::Same(words) => format!("no difference: {words}"),
            Then::Count(words) => format!("{words} (a count, not a speed)"),
            Then::Slower => "no figure".into(),
        }
    }
}

/// What two rows are compared by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// The time of the same work.
    Time,
    /// The bytes moved in a second.
    Rate,
}

/// How a claim is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// The first row is so many times as slow as the second.
    Pair(Pick, Pick, By, Then),
    /// The call of this row returns before the work that was queued earlier is done, or waits.
    Returns(&'static str, bool),
    /// The row reaches this share of the peak that the GPU states for its memory; the paper's words.
    Share(&'static str, f64, &'static str),
}

/// A claim of a paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// A name of its own.
    pub key: &'static str,
    /// The system of which it is made.
    pub topic: &'static str,
    /// The claim in a sentence.
    pub says: &'static str,
    /// How it is judged.
    pub test: Test,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The ratio is about the paper's.
    Holds,
    /// It is more than twice the paper's advantage.
    Stronger,
    /// Less than half of the paper's advantage is left.
    Weaker,
    /// The paper gives no ratio of speeds, and the direction is as it says.
    HoldsHere,
    /// The paper says that there is no difference, and there is none.
    StillSame,
    /// There is none, but there was one.
    NoLonger,
    /// There is one, but there was none; or a call no longer does what it did.
    Differs,
    /// The other row is the slower.
    Reversed,
    /// A row that it needs was not measured.
    NotJudged,
}

impl Verdict {
    /// The verdict in words.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "Still holds",
            Verdict::Stronger => "Holds more than then",
            Verdict::Weaker => "Still holds, but weaker",
            Verdict::HoldsHere => "Holds here",
            Verdict::StillSame => "Still no difference",
            Verdict::NoLonger => "No longer matters here",
            Verdict::Differs => "It is different now",
            Verdict::Reversed => "Reversed",
            Verdict::NotJudged => "Not judged",
        }
    }

    /// Its colour on the page.
    pub fn class(self) -> &'static str {
        match self {
            Verdict::Holds | Verdict::Stronger | Verdict::HoldsHere | Verdict::StillSame => "holds",
            Verdict::Weaker => "weaker",
            Verdict::NoLonger | Verdict::NotJudged => "gone",
            Verdict::Differs | Verdict::Reversed => "against",
        }
    }
}

/// The verdict on a ratio of times or rates, for what the paper says of it.
pub fn judged(here: f64, then: Then) -> Verdict {
    if matches!(then, Then::Same(_)) {
        return match here {
            here if (0.87..=1.15).contains(&here) => Verdict::StillSame,
            _ => Verdict::Differs,
        };
    }
    match then.bounds() {
        Some((low, high)) if (0.97 * low..=1.03 * high).contains(&here) => Verdict::Holds,
        _ if here < 0.95 => Verdict::Reversed,
        _ if here < 1.05 => Verdict::NoLonger,
        Some((_, high)) if here - 1.0 > 2.0 * (high - 1.0) => Verdict::Stronger,
        Some((low, _)) if here - 1.0 >= 0.5 * (low - 1.0) => Verdict::Holds,
        Some(_) => Verdict::Weaker,
        None => Verdict::HoldsHere,
    }
}

/// A claim with what this run says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The claim.
    pub claim: &'static Claim,
    /// The verdict.
    pub verdict: Verdict,
    /// The ratio, the share, or for a call that returns its time in seconds.
    pub here: Option<f64>,
    /// The ids of the rows that were compared.
    pub rows: Vec<String>,
    /// The rows that were not measured.
    pub missing: Vec<String>,
    /// Those of their tables that were not run.
    pub needs: Vec<Table>,
}

impl Claim {
    /// Its system.
    pub fn topic(&self) -> &'static Topic {
        papers::topic(self.topic)
    }

    /// The rows that it needs.
    pub fn picks(&self) -> Vec<Pick> {
        match self.test {
            Test::Pair(slow, fast, ..) => vec![slow, fast],
            Test::Returns(row, _) | Test::Share(row, ..) => vec![Pick::Row(row)],
        }
    }

    /// What the paper states.
    pub fn then(&self) -> String {
        match self.test {
            Test::Pair(.., then) => then.text(),
            Test::Returns(_, true) => "returns at once".into(),
            Test::Returns(_, false) => "waits".into(),
            Test::Share(_, share, words) => {
                format!("{:.0} %, computed from {words}", 100.0 * share)
            }
        }
    }

    /// The verdict of a run.
    pub fn judge(&'static self, rows: &[Measured]) -> Judgement {
        let picks = self.picks();
        let found: Vec<Option<&Measured>> = picks.iter().map(|pick| pick.find(rows)).collect();
        let (mut missing, mut needs) = (Vec::new(), Vec::new());
        let was_run = |table| rows.iter().any(|row| row.about.table == table);
        for (pick, _) in picks
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none())
        {
            missing.push(pick.text());
            needs.extend(pick.table().filter(|&table| !was_run(table)));
        }
        needs.dedup();
        let here = found.iter().copied().collect::<Option<Vec<_>>>();
        let here = here.and_then(|rows| self.measure(&rows));
        Judgement {
            claim: self,
            verdict: here.map_or(Verdict::NotJudged, |here| self.verdict(here)),
            here,
            rows: found
                .iter()
                .flatten()
                .map(|row| row.about.id.clone())
                .collect(),
            missing,
            needs,
        }
    }

    fn measure(&self, rows: &[&Measured]) -> Option<f64> {
        let seconds = |row: &Measured| row.time().map(|time| time.median.max(1e-12));
        match (self.test, rows) {
            (Test::Pair(_, _, By::Time, _), [slow, fast]) => Some(seconds(slow)? / seconds(fast)?),
            (Test::Pair(_, _, By::Rate, _), [slow, fast]) => Some(fast.rate()? / slow.rate()?),
            (Test::Returns(..), [row]) => seconds(row),
            (Test::Share(..), [row]) => Some(row.rate()? / row.peak?),
            _ => None,
        }
    }

    fn verdict(&self, here: f64) -> Verdict {
        match self.test {
            Test::Pair(.., then) => judged(here, then),
            Test::Returns(_, at_once) if (here < AT_ONCE) == at_once => Verdict::Holds,
            Test::Returns(..) => Verdict::Differs,
            Test::Share(_, then, _) if here >= 0.9 * then => Verdict::Holds,
            Test::Share(..) => Verdict::Weaker,
        }
    }
}

impl Judgement {
    /// What was measured: a ratio, a share, or how long a call took.
    pub fn here(&self) -> String {
        match (self.here, self.claim.test) {
            (None, _) => "—".into(),
            (Some(here), Test::Pair(..)) => format!("{}×", short(here)),
            (Some(here), Test::Returns(..)) if here < AT_ONCE => "returns at once".into(),
            (Some(_), Test::Returns(..)) => "waits".into(),
            (Some(here), Test::Share(..)) => format!("{:.0} %", 100.0 * here),
        }
    }

    /// The verdict, and where there is none which tables or rows it needs.
    pub fn verdict_text(&self) -> String {
        let names: Vec<&str> = self.needs.iter().map(|table| table.name()).collect();
        match self.verdict {
            Verdict::NotJudged if names.is_empty() => {
                format!("Not judged: not measured: {}", self.missing.join(" and "))
            }
            Verdict::NotJudged => format!("Not judged: needs the table {}", names.join(" and ")),
            verdict => verdict.text().into(),
        }
    }
}

/// The verdicts on all claims of which one row at least was measured: the papers', then those of
/// the program itself.
pub fn judge(rows: &[Measured]) -> Vec<Judgement> {
    let touched = |claim: &&Claim| claim.picks().iter().any(|pick| pick.find(rows).is_some());
    let papers = CLAIMS.iter().filter(touched);
    let mut judged: Vec<Judgement> = papers.map(|claim| claim.judge(rows)).collect();
    judged.sort_by_key(|judgement| judgement.claim.topic().paper == Paper::Own);
    judged
}
