//! `jobc report`: writes one page about a job, a file without external content.
//!
//! It is made only from the job's files, so it can be written while the job runs, after it, and again. Charts are SVG
//! in the page. The page has no script and forbids scripts, since it shows output of tasks.

mod activity;
mod chart;
mod data;
mod gpus;
mod html;
mod page;
mod plots;
mod provenance;
mod selection;
mod series;
mod tables;
mod timeline;

use std::path::Path;
use std::process::ExitCode;

use jobc_sys::error::{Error, Kind};

use super::jobs::{Jobs, Result};
use super::newest;
use crate::runtime::args::watch::ReportArgs;
use crate::terminal;
use data::ReportData;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let (directory, record) = newest::named_or_newest(&Jobs::open()?, args.job.as_deref())?;
    let page = page::page(&ReportData::gather(&directory, record));
    let path = args.output.clone().unwrap_or_else(|| format!("{}.html", directory.id).into());
    if path == Path::new("-") {
        terminal::print(&page);
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(&path, page).map_err(|error| {
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
