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
        let rows_with = |prefix: &'static str, shapes: Shapes| {
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
                rows_with(prefix, shapes).min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
            }
            Pick::Worst(prefix, shapes) => {
                rows_with(prefix, shapes).max_by(|a, b| seconds(a).total_cmp(&seconds(b)))
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
    /// The figures of the paper's several machines give ratios between these.
    Between(f64, f64, &'static str),
    /// The paper states that the ratio lies between these.
    Within(f64, f64, &'static str),
    /// The paper states that the ratio is at most this ("up to").
    AtMost(f64, &'static str),
    /// The paper states that the ratio is at least this ("at best").
    AtLeast(f64, &'static str),
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
            Then::Between(low, high, _) | Then::Within(low, high, _) => Some((low, high)),
            Then::AtMost(most, _) => Some((0.0, most)),
            Then::AtLeast(least, _) => Some((least, f64::INFINITY)),
            Then::Same(_) => Some((1.0, 1.0)),
            Then::Count(_) | Then::Slower => None,
        }
    }

    /// What the paper states, with its words; what was computed is marked.
    pub fn text(&self) -> String {
        match *self {
            Then::Stated(ratio, words) => format!("{}×: {words}", short(ratio)),
            Then::Computed(ratio, words) => format!("{}×, computed from {words}", short(ratio)),
            Then::Between(low, high, words) | Then::Within(low, high, words) => {
                format!("{}–{}×: {words}", short(low), short(high))
            }
            Then::AtMost(most, words) => format!("at most {}×: {words}", short(most)),
            Then::AtLeast(least, words) => format!("at least {}×: {words}", short(least)),
            Then::Same("") => "no difference".into(),
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

/// Where a claim comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper makes the claim in words, or prints its figure.
    Quoted,
    /// The paper prints the figures from which the claim is computed.
    Computed,
    /// The claim follows from what the paper says, but the paper does not make it.
    Inferred,
    /// The claim is the program's own.
    Ours,
}

impl Origin {
    /// Whether a paper itself makes the claim, so that it counts as one of the paper's.
    pub fn counts(self) -> bool {
        matches!(self, Origin::Quoted | Origin::Computed)
    }

    /// The origin in a word.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Quoted => "quoted",
            Origin::Computed => "computed",
            Origin::Inferred => "inferred",
            Origin::Ours => "ours",
        }
    }
}

/// A claim and the rows by which it is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// A unique name.
    pub key: &'static str,
    /// The system that the claim is about.
    pub topic: &'static str,
    /// The statement that the claim belongs to: several claims can test one statement of a paper,
    /// which is counted once.
    pub statement: &'static str,
    /// Where the claim comes from.
    pub origin: Origin,
    /// The claim in a message.
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
    /// The ratio lies outside the bound that the paper states.
    OutOfBound,
    /// The other row is the slower.
    Reversed,
    /// A row that it needs was not measured.
    NotJudged,
}

impl Verdict {
    /// The verdict in words.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds | Verdict::HoldsHere => "Confirmed",
            Verdict::Stronger => "Confirmed (stronger)",
            Verdict::Weaker => "Confirmed (weaker)",
            Verdict::StillSame => "Still no difference",
            Verdict::NoLonger => "No longer matters here",
            Verdict::Differs => "Changed",
            Verdict::OutOfBound => "Outside the stated bound",
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
            Verdict::Differs | Verdict::OutOfBound | Verdict::Reversed => "against",
        }
    }
}

/// The least relative difference between two rows that counts as one: clocks and placement of memory
/// move a time by as much from run to run.
const NOISE: f64 = 0.01;

/// The verdict on a ratio of times or rates, given what the paper says of it and the relative
/// uncertainty of the ratio: `NOISE` plus the interquartile ranges of the two rows.
pub fn judged(here: f64, then: Then, uncertainty: f64) -> Verdict {
    let (less, more) = (1.0 - uncertainty, 1.0 + uncertainty);
    let holds_if = |holds: bool, otherwise: Verdict| if holds { Verdict::Holds } else { otherwise };
    match then {
        Then::Same(_) if (less..=more).contains(&here) => return Verdict::StillSame,
        Then::Same(_) => return Verdict::Differs,
        Then::AtMost(most, _) => return holds_if(here <= most * more, Verdict::OutOfBound),
        Then::AtLeast(least, _) => return holds_if(here >= least * less, Verdict::OutOfBound),
        _ => (),
    }
    let Some((low, high)) = then.bounds() else {
        return match here {
            here if here < less => Verdict::Reversed,
            here if here <= more => Verdict::NoLonger,
            _ => Verdict::HoldsHere,
        };
    };
    // A ratio of single figures, taken on one machine, holds within a factor of two of the advantage.
    let (weaker, stronger) = (0.5 * (low - 1.0), 2.0 * (high - 1.0));
    match here {
        here if (low * less..=high * more).contains(&here) => Verdict::Holds,
        here if here < less => Verdict::Reversed,
        here if here <= more => Verdict::NoLonger,
        _ if matches!(then, Then::Within(..)) => Verdict::OutOfBound,
        here if here - 1.0 > stronger => Verdict::Stronger,
        here if here - 1.0 >= weaker => Verdict::Holds,
        _ => Verdict::Weaker,
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
        let times = found.iter().flatten().filter_map(|row| row.time());
        let uncertainty = NOISE + times.map(|time| time.spread).sum::<f64>();
        Judgement {
            claim: self,
            verdict: here.map_or(Verdict::NotJudged, |here| self.verdict(here, uncertainty)),
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

    fn verdict(&self, here: f64, uncertainty: f64) -> Verdict {
        match self.test {
            Test::Pair(.., then) => judged(here, then, uncertainty),
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

/// The papers' statements among these judgements, each once: of several claims that test one
/// statement, the first that was judged stands for it.
pub fn statements(judgements: &[Judgement]) -> Vec<&Judgement> {
    let mut statements: Vec<&Judgement> = Vec::new();
    for judgement in judgements.iter().filter(|it| it.claim.origin.counts()) {
        let same = |other: &&Judgement| other.claim.statement == judgement.claim.statement;
        match statements.iter().position(same) {
            None => statements.push(judgement),
            Some(at) if statements[at].verdict == Verdict::NotJudged => statements[at] = judgement,
            Some(_) => (),
        }
    }
    statements
}
