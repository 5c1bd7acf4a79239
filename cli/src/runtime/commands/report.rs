//! `jobc report`: writes one page about a job or a sweep, a file without external content.
//!
//! It is made only from the job's files, so it can be written while the job runs, after it, and again. Charts are SVG
//! in the page. The page has no script and forbids scripts, since it shows output of tasks.

mod activity;
mod axis_plot;
mod chart;
mod curves;
mod data;
mod figure;
mod gpus;
mod html;
mod page;
mod plots;
mod provenance;
mod selection;
mod series;
mod sweep_page;
mod tables;
mod timeline;
mod traces;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jobc_place::job::JobSummary;
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, file_error};

use super::found::NamedJobs;
use super::jobs::{Failure, Result};
use super::newest;
use super::searched::{self, MANY_LINES};
use crate::runtime::args::watch::ReportArgs;
use crate::terminal;
use data::ReportData;
use sweep_page::SweepData;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let found = newest::named_or_newest_sweep(args.job.as_ref())?;
    if args.traces {
        return write_traces(args, &found);
    }
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(file(&found.id())));
    if !found.is_sweep() {
        refuse_options_of_sweeps(args, &found)?;
        return write(&path, &page::page(&gather(&found, found.job()?)?));
    }
    let is_stdout = path == Path::new("-");
    let beside = |id: &str| path.with_file_name(file(id));
    if args.jobs && is_stdout {
        let error = Error::new(Kind::Config, "`--jobs` writes files, and `-o -` writes to stdout");
        return Err(Failure::usage_error(error.help("name a file with `-o`")));
    }
    for job in found.members.jobs().iter().filter(|_| args.jobs) {
        write(&beside(&found.id_of(job)), &page::page(&gather(&found, job)?))?;
    }
    let comparison = searched::compare(&found, &args.metrics, Some(MANY_LINES))?;
    let report = |id: &str| (!is_stdout && beside(id).exists()).then(|| file(id));
    let data = SweepData::gather(&comparison, &report);
    let source = found.members.jobs().iter().find_map(|job| job.source.as_ref());
    let source = match (source, found.target()) {
        (_, Some(target)) => ("Target", target.to_owned()),
        (Some(source), None) => ("Job file", source.display().to_string()),
        (None, None) => ("Target", "local".to_owned()),
    };
    write(&path, &sweep_page::page(&comparison, (source.0, &source.1), &data))
}

/// The file of a report: `train.3.html`, and `lab-train-7f3k2.html` for `lab/train-7f3k2`.
fn file(id: &str) -> String {
    format!("{}.html", id.replacen('/', "-", 1))
}

fn refuse_options_of_sweeps(args: &ReportArgs, found: &NamedJobs) -> Result<()> {
    let (option, help) = match args {
        ReportArgs { jobs: true, .. } => ("`--jobs` is for", "leave `--jobs` out"),
        ReportArgs { metrics, .. } if !metrics.metric.is_empty() => {
            ("`--metric` compares", "`jobc ps --metric` shows a metric of its tasks")
        }
        _ => return Ok(()),
    };
    let error = format!("{option} the jobs of a sweep, and `{}` is one job", found.id());
    Err(Failure::usage_error(Error::new(Kind::Config, error).help(help)))
}

/// Writes the spans of a job, or of all jobs of a sweep.
fn write_traces(args: &ReportArgs, found: &NamedJobs) -> Result<ExitCode> {
    let name = file(&found.id()).replace(".html", ".otlp.json");
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(name));
    let mut resources = vec![];
    for job in found.members.jobs() {
        let detail = found.place.inspect(&job.name)?;
        let events = found.place.events(&job.name).unwrap_or_default();
        resources.push(traces::resource_spans(&found.id_of(job), &detail, &events, Time::now()));
    }
    write(&path, &format!("{}\n", serde_json::json!({ "resourceSpans": resources })))
}

/// What a place, and the files here, have of a job.
fn gather(found: &NamedJobs, job: &JobSummary) -> Result<ReportData> {
    let detail = found.place.inspect(&job.name)?;
    let searched = searched::with_numbers(found, detail, Some(MANY_LINES));
    let mut data = ReportData::gather(found.id_of(job), &searched);
    if found.is_elsewhere() {
        // Data without read permission is left out: an incomplete report is better than none.
        data.reported = Some(found.place.events(&job.name).unwrap_or_default());
        data.tails = searched::last_lines(found, &searched, data::TAIL_LINES, data::LogLine::of);
    }
    Ok(data)
}

fn write(path: &Path, page: &str) -> Result<ExitCode> {
    if path == Path::new("-") {
        terminal::print(page);
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(path, page).map_err(|error| {
        file_error("write", path, &error).help("name another file with `-o`, or `-o -` for standard output")
    })?;
    terminal::print(&format!("{}\n", path.display()));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
