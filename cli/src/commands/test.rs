//! `jobc test`: compiles all jobs of a repository and compares them with their golden files.

mod cache;
mod case;
mod golden;
mod junit;
mod print;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};

use crate::args::{FormatArg, TestArgs};
use crate::input::reason;
use crate::job_files::find;
use crate::outcome::Outcome;
use crate::terminal;

use cache::Cache;
use case::CaseResult;
use print::Totals;

pub(crate) fn run(args: &TestArgs, format: FormatArg) -> Outcome {
    let here = [Utf8PathBuf::from(".")];
    let jobs = match find(if args.jobs.is_empty() { &here } else { &args.jobs }, &args.golden) {
        Ok(jobs) => jobs,
        Err(why) => return super::report_input_error(&why),
    };
    let start = Instant::now();
    let is_text = !matches!(format, FormatArg::Json);
    let cache = if args.no_cache { None } else { Cache::open() };
    let results = run_all(&jobs, args, cache.as_ref(), |result| {
        if is_text {
            terminal::print(&print::text(result));
        }
    });
    if let Some(cache) = &cache {
        cache.clean();
    }
    let totals = Totals::of(&results, start.elapsed());
    if is_text {
        terminal::print(&totals.text());
        if totals.differing() > 0 && !args.accept {
            terminal::eprint("jobc: `jobc test --accept` writes the golden files of jobs that differ\n");
        }
    } else {
        terminal::print(&format!("{:#}\n", print::json(&results, &totals)));
    }
    if let Some(path) = &args.junit
        && let Err(error) = write_report(path, &junit::report(&results, &totals))
    {
        terminal::eprint(&crate::report::cannot_write(path, &error));
        return Outcome::SystemError;
    }
    match totals {
        Totals { errors: 0, accepted, .. } if args.accept || totals.differing() == accepted => {
            Outcome::Success
        }
        _ => Outcome::Errors,
    }
}

/// Tests the jobs on all CPUs. `progress` gets the results in the order of the jobs.
fn run_all(
    jobs: &[Utf8PathBuf],
    args: &TestArgs,
    cache: Option<&Cache>,
    progress: impl Fn(&CaseResult),
) -> Vec<CaseResult> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(jobs.len());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    if sender.send((index, case::run(job, args, cache))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut waiting, mut results) = (BTreeMap::new(), Vec::with_capacity(jobs.len()));
        for (index, result) in receiver {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&results.len()) {
                progress(&result);
                results.push(result);
            }
        }
        results
    })
}

fn write_report(path: &Utf8Path, text: &str) -> std::io::Result<()> {
    if path == "-" {
        terminal::print(text);
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|error| {
            std::io::Error::other(format!("cannot create `{parent}`: {}", reason(&error)))
        })?;
    }
    std::fs::write(path, text)
}
