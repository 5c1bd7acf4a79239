//! `jobc port-forward`: makes ports of tasks available on loopback here.

use std::os::fd::AsFd as _;
use std::process::ExitCode;

use jobc_place::transfer::{ForwardRequest, PortForwardReport};
use jobc_sys::signals::Signals;

use super::found::Places;
use super::jobs::Result;
use crate::runtime::args::task_access::PortForwardArgs;
use crate::runtime::message::container_warning;
use crate::table::escape_control;
use crate::terminal;

/// Forwards ports until Ctrl-C.
pub(crate) fn run(args: &PortForwardArgs) -> Result<ExitCode> {
    let found = Places::default().find(&args.job)?;
    let signals = Signals::block_forwarded()?;
    let report = |report: PortForwardReport| match report {
        PortForwardReport::Listening { local, task, port } => {
            terminal::print(&format!("127.0.0.1:{local} is port {port} of {task}\n"));
        }
        PortForwardReport::Failed(why) => terminal::eprint(&container_warning(&escape_control(&why))),
    };
    let request = ForwardRequest { forwards: &args.ports, stop: signals.as_fd(), report: &report };
    found.place.port_forward(&found.job()?.name, request)?;
    // The signal that ended it must not end this process too.
    while signals.next().is_some() {}
    Ok(ExitCode::SUCCESS)
}
