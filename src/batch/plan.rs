//! `--dry-run`: the files, pixels, memory and time of a batch, from the headers alone, and which
//! files would be refused, skipped or made. Nothing is written.

use super::journal::{Past, Sight, Verdict};
use super::naming::Naming;
use super::progress::Progress;
use super::report::{is_page, is_report};
use super::sheet;
use super::{Batch, Item, format_of};
use crate::engine::{Destination, NamedSource, Resources, largest_page, plan_file};
use crate::formats::png::Mode;
use crate::formats::{Format, PageSurvey};
use crate::gpu::Devices;
use crate::os::console;
use crate::os::count::{plural, size};
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::os::system;
use crate::os::url::is_url;
use crate::os::{check_regular, fault, is_store_name, parent, reason, replaces_store};
use anyhow::{Context, Result, anyhow, bail, ensure};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// Bytes of samples per second that one core processes from PNG to PNG with `--png fast`, on a disk that keeps up. No
/// time is printed for other work, which may take twenty times as long.
const CORE_RATE: f64 = 170e6;

/// The planned treatment of a file without errors.
pub enum DryRun {
    /// It would be processed: the shapes and metadata sizes of its pages (none for a stream, which
    /// only the run can read), whether the result replaces a file, and whether `CORE_RATE` is that of the work.
    Done {
        /// The size of each page.
        pages: Vec<PageSurvey>,
        /// Whether the result replaces a file.
        replaces: bool,
        /// Whether `CORE_RATE` is the rate of the work.
        has_rate: bool,
        /// The plan of each page, as text.
        plans: Vec<String>,
    },
    /// An earlier run processed it.
    Before,
}

impl Batch<'_, '_> {
    /// Prints the plan on standard output, and returns the outcome that the run would have.
    pub(super) fn print_plan(&self, earlier: Option<&Past>) -> Result<Outcome> {
        let items = &self.items.items;
        self.print_skipped(&Progress::new(0, self.options.verbosity, true));
        let devices = Devices::idle(self.common.device.choice);
        let foreseen: Vec<Result<DryRun>> = items
            .par_iter()
            .map(|item| self.foresee(item, earlier, &devices))
            .collect();
        for (item, foreseen) in items.iter().zip(&foreseen) {
            let arrow = item
                .output
                .as_ref()
                .map(|path| format!(" → {}", path.shown()));
            let (input, arrow) = (item.input.shown(), arrow.unwrap_or_default());
            match foreseen {
                Ok(_) if self.options.verbosity.quiet => {}
                Ok(foreseen) => {
                    console::print(&format!("{input}{arrow}: {foreseen}"))?;
                    if self.common.verbose {
                        foreseen.print_plans()?;
                    }
                }
                Err(error) => console::print(&format!("{error:#}"))?,
            }
        }
        for unread in &self.items.unread {
            console::print(&format!("{:#}", unread.error()))?;
        }
        let report = self.check_report();
        if let Err(error) = &report {
            console::print(&format!("{error:#}"))?;
        }
        let folders = match self.naming {
            Some(Naming::Folder { folder, .. }) if self.items.has_any() => {
                new_folders(folder, &foreseen, items)
            }
            _ => BTreeSet::new(),
        };
        if let Some(first) = folders.first() {
            let more = if folders.len() > 1 { ", …" } else { "" };
            let count = plural(folders.len(), "folder");
            let first = first.shown();
            console::print(&format!("{count} would be created ({first}{more})"))?;
        }
        console::print(&self.summary(&foreseen))?;
        let fine = self.items.unread.is_empty() && foreseen.iter().all(Result::is_ok);
        Ok(if fine && report.is_ok() {
            Outcome::Done
        } else {
            Outcome::SomeFailed
        })
    }

    /// Plans one file; files are planned in the order in which they would be processed.
    fn foresee(&self, item: &Item, earlier: Option<&Past>, devices: &Devices) -> Result<DryRun> {
        let overwrite = self.template.is_some_and(|template| template.overwrite);
        let sight = Sight::inspect(item);
        let verdict = match earlier {
            Some(past) => past.verdict(item, &sight, overwrite)?,
            None => sight.verdict(overwrite),
        };
        let replaced = match verdict {
            Verdict::Done => return Ok(DryRun::Before),
            Verdict::Make(replaced) => replaced,
            Verdict::Refused(why) => return Err(self.refused(item, why)),
        };
        let unread = || format!("cannot read {}", item.input.shown());
        let result = self.template.zip(item.output.as_deref());
        let mut replaces = false;
        if let Some((_, output)) = result {
            let makes_folders = matches!(self.naming, Some(Naming::Folder { .. }));
            let unwritten = || format!("cannot write {}", output.shown());
            if makes_folders {
                check_regular(output).with_context(unwritten)?;
            }
            replaces = can_be_written(output, replaced.something(), makes_folders)
                .with_context(unwritten)?;
        }
        if item.is_stream() {
            return Ok(DryRun::Done {
                pages: Vec::new(),
                plans: Vec::new(),
                replaces,
                has_rate: false,
            });
        }
        let source = item.source().with_context(unread)?;
        let destination = result.map(|(template, output)| Destination {
            path: output.into(),
            format: format_of(template, output),
            ..template.clone()
        });
        let budget = self.options.budget();
        let resources = Resources {
            budget: budget.as_ref(),
            position: item.position,
            ..Resources::new(devices, self.common.reading)
        };
        let input = NamedSource {
            path: &item.input,
            source: &source,
        };
        let foreseen = plan_file(self.ops, input, destination.as_ref(), &resources)?;
        let is_png = |format: &Format| format.id == "png";
        let (from, to) = (foreseen.format, foreseen.output_format);
        let is_fast = destination.is_some_and(|it| it.options.png == Mode::Fast);
        Ok(DryRun::Done {
            has_rate: is_fast && is_png(from) && to.is_some_and(is_png),
            pages: foreseen.pages,
            plans: foreseen.plans,
            replaces,
        })
    }

    /// Whether the report could be created.
    fn check_report(&self) -> Result<()> {
        let Some(path) = &self.options.report else {
            return Ok(());
        };
        if is_page(path) {
            return sheet::REPORT.check(path);
        }
        let overwrite = self.template.is_some_and(|template| template.overwrite);
        let goes_on = overwrite || self.options.resume || is_report(path);
        // Reports may be written into the output folder.
        let makes_folders = match self.naming {
            Some(naming) => path.starts_with(naming.folder()),
            None => false,
        };
        can_be_written(path, goes_on, makes_folders)
            .with_context(|| format!("cannot write {}", path.shown()))?;
        Ok(())
    }

    fn summary(&self, foreseen: &[Result<DryRun>]) -> String {
        let unread = self.items.unread.len();
        let files = foreseen.len() + unread;
        let failed = foreseen.iter().filter(|foreseen| foreseen.is_err()).count() + unread;
        let todo: Vec<&[PageSurvey]> = foreseen
            .iter()
            .filter_map(|foreseen| match foreseen {
                Ok(DryRun::Done { pages, .. }) => Some(pages.as_slice()),
                _ => None,
            })
            .collect();
        let mut line = format!("{}: {} to do", plural(files, "file"), todo.len());
        let before = files - failed - todo.len();
        for (count, what) in [(before, "already done"), (failed, "would fail")] {
            if count > 0 {
                line += &format!(", {count} {what}");
            }
        }
        let pages = || todo.iter().copied().flatten();
        let pixels: u64 = pages().map(|page| page.shape.pixels() as u64).sum();
        let bytes: u64 = pages().map(|page| page.shape.bytes() as u64).sum();
        let threads = self.workers().threads(todo.len());
        // Only one page of a stack is in memory at a time.
        let mut each: Vec<u64> = todo
            .iter()
            .map(|pages| largest_page(self.ops, pages))
            .collect();
        each.sort_unstable_by(|a, b| b.cmp(a));
        let at_once: u64 = each.iter().take(threads).sum();
        let limit = self.options.memory();
        let largest = each.first().copied().unwrap_or(0);
        line += &format!(
            "; {}, {:.3} Gpx, {:.2} GB of samples; {}, at most {} of memory",
            plural(pages().count(), "page"),
            pixels as f64 / 1e9,
            bytes as f64 / 1e9,
            plural(threads, "thread"),
            size(at_once.min(limit.max(largest)))
        );
        let unrated = |foreseen: &Result<DryRun>| {
            matches!(
                foreseen,
                Ok(DryRun::Done {
                    has_rate: false,
                    ..
                })
            )
        };
        if !todo.is_empty() && !foreseen.iter().any(unrated) {
            let seconds = bytes as f64 / CORE_RATE / threads as f64;
            line += &format!("; about {seconds:.0} s if the disk keeps up");
        }
        line
    }
}

impl DryRun {
    /// Prints the plan of each page.
    ///
    /// # Errors
    /// Standard output that cannot be written.
    pub fn print_plans(&self) -> Result<()> {
        let DryRun::Done { plans, .. } = self else {
            return Ok(());
        };
        for line in plans.iter().flat_map(|plan| plan.lines()) {
            console::print(&format!("  {line}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DryRun::Before => f.write_str("already done; --resume skips it"),
            DryRun::Done {
                pages, replaces, ..
            } => {
                let first = pages.first().map(|page| page.shape.to_string());
                f.write_str(first.as_deref().unwrap_or("a stream (not inspected)"))?;
                if pages.len() > 1 {
                    write!(f, ", {} pages", pages.len())?;
                }
                f.write_str(if *replaces { ", replaces a file" } else { "" })
            }
        }
    }
}

/// Whether writing a file would replace another.
///
/// # Errors
/// The reason why it could not be written; the caller names the file.
pub fn can_be_written(path: &Path, may_replace: bool, makes_folders: bool) -> Result<bool> {
    if path == Path::new("-") {
        return Ok(false);
    }
    if is_url(path) {
        return replaces_store(path, may_replace);
    }
    let there = match fault::metadata(path) {
        _ if is_store_name(path) => replaces_store(path, may_replace)?,
        Ok(about) if about.is_dir() => bail!("it is a directory"),
        // Pipes and devices are written to, not replaced.
        Ok(about) if !about.is_file() => return Ok(false),
        Ok(_) => true,
        // A broken link still exists as a name.
        Err(_) => path.is_symlink(),
    };
    ensure!(
        may_replace || !there,
        "it already exists (use --overwrite to replace it)"
    );
    let folder = parent(path);
    ensure!(
        makes_folders || folder.is_dir(),
        "folder {} does not exist",
        folder.shown()
    );
    let nearest = folder.ancestors().find(|folder| folder.exists());
    let nearest = nearest.unwrap_or(Path::new("."));
    ensure!(nearest.is_dir(), "{} is not a folder", nearest.shown());
    system::check_writable(nearest)
        .map_err(|error| anyhow!("folder {}: {}", nearest.shown(), reason(&error)))?;
    Ok(there)
}

/// The folders that would be created for results.
fn new_folders<'a>(
    root: &'a Path,
    foreseen: &[Result<DryRun>],
    items: &'a [Item],
) -> BTreeSet<&'a Path> {
    let done = items
        .iter()
        .zip(foreseen)
        .filter(|(_, found)| found.is_ok());
    let outputs = done.filter_map(|(item, _)| item.output.as_deref()?.parent());
    let mut folders = BTreeSet::new();
    // The output folder is created even for a shard without files.
    let root = items.is_empty().then_some(root);
    for folder in outputs.chain(root) {
        for folder in folder.ancestors() {
            if folder == Path::new("") || folders.contains(folder) || folder.exists() {
                break;
            }
            folders.insert(folder);
        }
    }
    folders
}
