//! `gpuimg bench`: runs every system of the four papers, and the program's own kernels, on this
//! machine; checks each result before printing its time, beside the published figures.
//!
//! ```text
//!   papers/*.txt ► cases (one file a table) ─► context.rs ─► rows ─► text, JSON, HTML, comparison
//!   what it shows   what to run, what counts     runs it  case.rs    report.rs, compare.rs, html.rs
//!                                                            └─► claims.rs: the papers' claims, judged
//! ```

pub mod case;
mod ceilings;
pub mod claims;
pub mod compare;
mod context;
mod cpu;
pub mod figure;
pub mod html;
mod launch;
mod memory;
mod minmax;
mod normalize;
pub mod papers;
mod pieces;
mod production;
pub mod record;
mod reduce;
pub mod report;
mod table;
mod threads;
mod transfer;
mod transpose;

use crate::gpu::driver::Gpu;
use crate::gpu::{Choice, Unusable};
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::Outcome as Exit;
use crate::timing::{Limit, Peaks};
use anyhow::{Context, Result};
use case::{Case, Ceiling, Outcome, Row, Work};
use clap::ValueEnum;
use context::{BenchContext, Host, Sizes};
use record::RunRecord;
use report::{Machine, Report};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

pub use table::Table;

/// The rows of a table, for these sizes.
fn cases(table: Table, sizes: Sizes) -> Vec<Case> {
    match table {
        Table::Link => transfer::link(sizes),
        Table::Ceilings => ceilings::cases(sizes),
        Table::Launch => launch::cases(),
        Table::Transfer => transfer::cases(sizes),
        Table::Memory => memory::cases(sizes),
        Table::Threads => threads::cases(sizes),
        Table::Normalize => normalize::cases(sizes),
        Table::Minmax => minmax::cases(sizes),
        Table::Transpose => transpose::cases(sizes),
        Table::Reduce => reduce::cases(sizes),
        Table::Production => production::cases(sizes),
    }
}

/// All rows of all tables, for a machine with a GPU.
pub fn all_cases() -> Vec<Case> {
    Table::value_variants()
        .iter()
        .flat_map(|&table| cases(table, Sizes::FULL))
        .collect()
}

/// Which tables to run, and how to report them
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Tables to run (default: all)
    pub tables: Vec<Table>,

    /// Explain each experiment: what each thread accesses, the lesson, and whether it holds on this machine
    #[arg(long)]
    pub describe: bool,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,

    /// Compare with an earlier --json output; exit status 1 if a row became slower
    #[arg(long, value_name = "EARLIER.json")]
    pub compare: Option<PathBuf>,

    /// Allowed slowdown of a row, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 10.0,
        requires = "compare"
    )]
    pub tolerance: f64,

    /// Also write a self-contained page with charts
    #[arg(long, value_name = "REPORT.html")]
    pub html: Option<PathBuf>,

    /// Show an earlier --json output instead of measuring
    #[arg(long, value_name = "RUN.json", conflicts_with_all = ["tables", "small", "spoil"])]
    pub from: Option<PathBuf>,

    /// Tiny inputs, for a checker of memory accesses and races; the times mean nothing
    #[arg(long, hide = true)]
    pub small: bool,

    /// Spoil what the kernel of this row wrote, to see that it is noticed
    #[arg(long, hide = true, value_name = "ROW")]
    pub spoil: Option<String>,
}

/// Runs the tables and prints the report.
pub fn run(options: &Options, choice: Choice) -> Result<Exit> {
    let earlier = options
        .compare
        .as_deref()
        .map(RunRecord::read)
        .transpose()?;
    let report = match &options.from {
        Some(path) => RunRecord::read(path)?.into_report(),
        None => measured(options, choice)?,
    };
    let text = if options.json {
        RunRecord::new(&report).json()? + "\n"
    } else if options.describe {
        report.text() + &report.descriptions()
    } else {
        report.text()
    };
    console::print_lines(&text)?;
    if let Some(path) = &options.html {
        std::fs::write(path, html::page(&report))
            .with_context(|| format!("cannot write {}", path.shown()))?;
    }
    let mut exit = if report.failures() > 0 {
        Exit::SomeFailed
    } else {
        Exit::Done
    };
    if let Some(earlier) = earlier {
        let comparison = compare::Comparison::new(&earlier, &report, options.tolerance);
        // With --json, standard output has one JSON object only.
        if options.json {
            console::tell_lines(&comparison.text());
        } else {
            console::print_lines(&comparison.text())?;
        }
        if comparison.slower() > 0 {
            exit = Exit::SomeFailed;
        }
    }
    Ok(exit)
}

/// Runs the requested tables.
fn measured(options: &Options, choice: Choice) -> Result<Report> {
    let start = Instant::now();
    let (gpu, ordinal, without) = opened(choice)?;
    let sizes = if options.small {
        Sizes::SMALL
    } else {
        Sizes::FULL
    };
    let host = Host::new(sizes)?;
    let context = gpu
        .as_ref()
        .map(|gpu| BenchContext::new(gpu, ordinal, &host))
        .transpose()?;
    let wanted = |table: &Table| options.tables.is_empty() || options.tables.contains(table);
    let mut bench = Bench {
        host: &host,
        context: context.as_ref(),
        peaks: gpu.as_ref().map(Gpu::peaks).unwrap_or_default(),
        spoil: options.spoil.as_deref(),
        rows: Vec::new(),
        left_out: 0,
    };
    for table in Table::value_variants() {
        // The ceilings are always measured: the other tables are compared with them.
        if wanted(table) || *table == Table::Ceilings {
            bench.run(cases(*table, sizes));
        }
    }
    progress("");
    let Bench { rows, left_out, .. } = bench;
    let shown = |row: &Row| wanted(&row.about.table) || matches!(row.outcome, Outcome::Failed(_));
    Ok(Report {
        machine: Machine::detect(gpu.as_ref(), host.sizes.bytes as u64)?,
        rows: rows.into_iter().filter(shown).collect(),
        left_out: without.map(|why| format!("{left_out} rows that need a GPU are left out: {why}")),
        wall: start.elapsed(),
    })
}

/// The GPU with its number, or the reason why there is none; an error if one was requested.
fn opened(choice: Choice) -> Result<(Option<Gpu>, usize, Option<String>)> {
    let ordinal = match choice {
        Choice::Cpu => return Ok((None, 0, Some("--device cpu was given".into()))),
        Choice::Auto => 0,
        Choice::Gpu(ordinal) => ordinal.unwrap_or(0),
    };
    match Gpu::open(ordinal) {
        Ok(gpu) => Ok((Some(gpu), ordinal, None)),
        Err(error) if choice == Choice::Auto && error.is::<Unusable>() => {
            Ok((None, ordinal, Some(error.root_cause().to_string())))
        }
        Err(error) => Err(error),
    }
}

/// The state of a run.
struct Bench<'a> {
    host: &'a Host,
    context: Option<&'a BenchContext<'a>>,
    peaks: Peaks,
    /// The row whose output is overwritten, to test its check.
    spoil: Option<&'a str>,
    rows: Vec<Row>,
    left_out: usize,
}

impl Bench<'_> {
    fn run(&mut self, cases: Vec<Case>) {
        for case in cases {
            progress(&case.about.id);
            let outcome = match (&case.work, self.context) {
                (Work::Host(work), _) => outcome(work(self.host)),
                (Work::Gpu(work), Some(context)) => match left_out(&case, context) {
                    Some(why) => Outcome::LeftOut(why),
                    None => {
                        context.spoil.set(self.spoil == Some(&case.about.id));
                        outcome(work(context))
                    }
                },
                (Work::Gpu(_), None) => {
                    self.left_out += 1;
                    continue;
                }
            };
            self.rows.push(self.row(case, outcome));
        }
        if let Some(context) = self.context {
            context.forget();
        }
    }

    fn row(&self, case: Case, outcome: Outcome) -> Row {
        let ceiling = match case.ceiling {
            Ceiling::None => None,
            Ceiling::Measured(id) => self
                .rows
                .iter()
                .find(|row| row.about.id == id)
                .and_then(Row::rate),
            Ceiling::Stated(Limit::Pcie) => self.peaks.pcie.as_ref().map(|(peak, _)| *peak),
            Ceiling::Stated(Limit::DeviceMemory) => self.peaks.memory,
            Ceiling::Stated(Limit::Host) => None,
        };
        let on_link = matches!(case.about.table, Table::Link | Table::Transfer);
        let on_gpu = matches!(case.work, Work::Gpu(_)) && !on_link;
        let l2 = self.context.map_or(0, |context| context.facts.l2);
        Row {
            fits_l2: on_gpu && case.footprint <= l2,
            about: case.about,
            ceiling,
            peak: self.peaks.memory,
            outcome,
        }
    }
}

fn outcome(result: Result<case::Measured>) -> Outcome {
    match result {
        Ok(measured) => Outcome::Measured(measured),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// The reason why a case cannot run on the GPU: what it needs, or memory, which must hold its data, the expected result,
/// and some reserve.
fn left_out(case: &Case, context: &BenchContext) -> Option<String> {
    let missing = case.needs.and_then(|needs| needs.missing(&context.facts));
    if let Some(missing) = missing {
        return Some(format!("left out: needs {missing}"));
    }
    let (free, _) = context.gpu.memory().ok()?;
    let needed = 2 * case.footprint;
    (needed > free as u64).then(|| {
        format!(
            "left out: needs {} MiB of device memory, and {} are free",
            needed >> 20,
            free >> 20
        )
    })
}

/// Shows on a terminal which row is running; an empty id clears the line.
fn progress(id: &str) {
    let mut terminal = io::stderr();
    if terminal.is_terminal() {
        // A progress line that cannot be written is ignored.
        let _ = write!(terminal, "\r\x1b[K{id}");
        let _ = terminal.flush();
    }
}
