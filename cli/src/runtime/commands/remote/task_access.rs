//! `jobc port-forward` and `jobc copy` of tasks on clusters.

use std::os::fd::AsFd as _;
use std::process::ExitCode;

use jobc_place::job_ref::Handle;
use jobc_remote::place::{CopyRequest, PortForward, PortForwardReport};
use jobc_schema::plural;
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signals;
use serde_json::json;

use super::handle::failure;
use crate::args::FormatArg;
use crate::runtime::args::task_access::{CopyArgs, PortForwardArgs, path_in_task};
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::commands::target_table::TargetTable;
use crate::runtime::message::container_warning;
use crate::table::escape_control;
use crate::terminal;

/// Forwards ports until Ctrl-C.
pub(super) fn port_forward(args: &PortForwardArgs, handle: &Handle) -> Result<ExitCode> {
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let forwards: Vec<PortForward> = args
        .ports
        .iter()
        .map(|port| PortForward { local: port.local, task: port.task.clone(), port: port.port.clone() })
        .collect();
    let signals = Signals::block_forwarded()?;
    let report = |report: PortForwardReport| match report {
        PortForwardReport::Listening { local, task, port } => {
            terminal::print(&format!("127.0.0.1:{local} is port {port} of {task}\n"));
        }
        PortForwardReport::Failed(why) => terminal::eprint(&container_warning(&escape_control(&why))),
    };
    place.port_forward(&handle.name, &forwards, signals.as_fd(), &report).map_err(failure)?;
    // The signal that ended it must not end this process too.
    while signals.next().is_some() {}
    Ok(ExitCode::SUCCESS)
}

/// Copies files into a task or out of it.
pub(super) fn copy(args: &CopyArgs, handle: &Handle) -> Result<ExitCode> {
    let (task, remote, local, into_task) = match (path_in_task(&args.source), path_in_task(&args.destination))
    {
        (Some((task, path)), None) => (task, path, &args.destination, false),
        (None, Some((task, path))) => (task, path, &args.source, true),
        _ => {
            let error = Error::new(Kind::Config, "one of the two paths must be in a task");
            let help =
                format!("write it as `TASK:PATH`, as in `jobc copy {handle} train-0:/output/model.pt .`");
            return Err(Failure::usage_error(error.help(help)));
        }
    };
    let request =
        CopyRequest { task: task.to_owned(), remote: remote.to_owned(), local: local.into(), into_task };
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let copied = place.copy(&handle.name, &request).map_err(failure)?;
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
