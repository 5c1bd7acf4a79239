//! `jobc copy`: copies files into a task or out of it.

use std::process::ExitCode;

use jobc_place::transfer::CopyRequest;
use jobc_schema::plural;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::found::Places;
use super::jobs::{Failure, Result};
use crate::args::FormatArg;
use crate::runtime::args::task_access::{CopyArgs, path_in_task};
use crate::runtime::message::container_warning;
use crate::table::escape_control;
use crate::terminal;

pub(crate) fn run(args: &CopyArgs) -> Result<ExitCode> {
    let (task, remote, local, into_task) = match (path_in_task(&args.source), path_in_task(&args.destination))
    {
        (Some((task, path)), None) => (task, path, &args.destination, false),
        (None, Some((task, path))) => (task, path, &args.source, true),
        _ => {
            let error = Error::new(Kind::Config, "one of the two paths must be in a task");
            let help =
                format!("write it as `TASK:PATH`, as in `jobc copy {} train-0:/output/model.pt .`", args.job);
            return Err(Failure::usage_error(error.help(help)));
        }
    };
    let request =
        CopyRequest { task: task.to_owned(), remote: remote.to_owned(), local: local.into(), into_task };
    let found = Places::default().find(&args.job)?;
    let copied = found.place.copy(&found.job()?.name, &request)?;
    for skipped in &copied.skipped {
        terminal::eprint(&container_warning(&escape_control(&format!("not copied: {skipped}"))));
    }
    if args.output_args.format == FormatArg::Json {
        terminal::print(&format!("{}\n", json!(copied)));
    } else {
        let files = plural(copied.entries, "file");
        terminal::print(&format!("copied {files}, {} bytes\n", copied.bytes));
    }
    Ok(ExitCode::SUCCESS)
}
