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
mod reported;
mod selection;
mod series;
mod sweep_page;
mod tables;
mod timeline;

use std::path::Path;
use std::process::ExitCode;

use jobc_sys::error::{Error, Kind};

use super::jobs::{Failure, Jobs, Result, name, read};
use super::newest;
use super::subject::Subject;
use super::sweep::Comparison;
use crate::runtime::args::watch::ReportArgs;
use crate::terminal;
use data::ReportData;
#[cfg(feature = "remote")]
pub(crate) use reported::{ClusterReport, ReportedEvent};
use sweep_page::SweepData;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let subject = newest::subject_or_newest(&jobs, name(args.job.as_ref())?)?;
    let path = args.output.clone().unwrap_or_else(|| format!("{}.html", subject.id()).into());
    let page = match &subject {
        Subject::Job(directory) => {
            if args.jobs || !args.metrics.metric.is_empty() {
                let (option, help) = if args.jobs {
                    ("`--jobs` is for", "leave `--jobs` out")
                } else {
                    ("`--metric` compares", "`jobc ps --metric` shows a metric of its tasks")
                };
                let error = format!("{option} the jobs of a sweep, and `{}` is one job", directory.id);
                return Err(Failure::usage_error(Error::new(Kind::Config, error).help(help)));
            }
            page::page(&ReportData::gather(directory, read(directory)?))
        }
        Subject::Sweep(sweep) => {
            let comparison = Comparison::gather(&jobs, sweep, &args.metrics)?;
            let is_stdout = path == Path::new("-");
            let beside = |job: &str| path.with_file_name(format!("{job}.html"));
            if args.jobs {
                if is_stdout {
                    let error =
                        Error::new(Kind::Config, "`--jobs` writes files, and `-o -` writes to stdout");
                    return Err(Failure::usage_error(error.help("name a file with `-o`")));
                }
                for (directory, record) in comparison.rows.iter().filter_map(|row| row.job.clone()) {
                    let page = page::page(&ReportData::gather(&directory, record));
                    write(&beside(&directory.id.to_string()), &page)?;
                }
            }
            let report = |job: &str| (!is_stdout && beside(job).exists()).then(|| format!("{job}.html"));
            let data = SweepData::gather(&comparison, &report);
            sweep_page::page(&comparison, ("Job file", &sweep.source.display().to_string()), &data)
        }
    };
    write(&path, &page)
}

/// Writes the page of a job on a cluster.
#[cfg(feature = "remote")]
pub(crate) fn write_cluster_report(path: &Path, report: ClusterReport) -> Result<ExitCode> {
    write(path, &page::page(&ReportData::of_cluster(report)))
}

/// Writes the page of a sweep on a cluster. `report` names the report of a job next to the page.
#[cfg(feature = "remote")]
pub(crate) fn write_cluster_sweep(
    path: &Path,
    comparison: &Comparison,
    target: &str,
    report: &dyn Fn(&str) -> Option<String>,
) -> Result<ExitCode> {
    write(path, &sweep_page::page(comparison, ("Target", target), &SweepData::gather(comparison, report)))
}

fn write(path: &Path, page: &str) -> Result<ExitCode> {
    if path == Path::new("-") {
        terminal::print(page);
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(path, page).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        let why = jobc_sys::error::describe(errno);
        Error::new(Kind::System, format!("cannot write `{}`: {why}", path.display()))
            .help("name another file with `-o`, or `-o -` for standard output")
    })?;
    terminal::print(&format!("{}\n", path.display()));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
