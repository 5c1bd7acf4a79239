//! `jobc report`: one page about a job, in one file that loads nothing.
//!
//! It is made from the job's files alone, so it can be written while the job runs, after it, and again. Charts are drawings
//! in the page (SVG); there is no program in it, and the page forbids itself to run one, since it shows what tasks
//! print.

mod chart;
mod facts;
mod html;
mod page;
mod plots;
mod tables;
mod time_line;

use std::path::Path;
use std::process::ExitCode;

use jobc_sys::error::{Error, Kind};

use super::jobs::{Jobs, Result};
use crate::args::watch::ReportArgs;
use crate::terminal;
use facts::Facts;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let (folder, record) = Jobs::open()?.record(&args.job)?;
    let page = page::page(&Facts::gather(&folder, record));
    let path = args.output.clone().unwrap_or_else(|| format!("{}.html", folder.id).into());
    if path == Path::new("-") {
        terminal::print(&page);
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(&path, page).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        let why = jobc_sys::error::describe(errno);
        Error::new(Kind::Machine, format!("cannot write `{}`: {why}", path.display()))
            .help("name another file with `-o`, or `-o -` for standard output")
    })?;
    terminal::print(&format!("{}\n", path.display()));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
