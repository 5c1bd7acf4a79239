//! Commands that jobs on this host do not need, since their ports and files are here.

use std::process::ExitCode;

use jobc_sys::error::{Error, Kind};

use super::jobs::{Failure, Jobs, Result, local};
use crate::runtime::args::task_access::{CopyArgs, PortForwardArgs};

/// The ports of a job on this host are those of the host.
pub(crate) fn port_forward(args: &PortForwardArgs) -> Result<ExitCode> {
    Jobs::open()?.find(local(&args.job)?)?;
    let error = Error::new(
        Kind::Unsupported,
        format!("job `{}` runs on this host: its ports are reachable", args.job),
    );
    Err(Failure::usage_error(
        error.help("`JOBC_PORT_<LABEL>` in the environment of a task has the number of a port"),
    ))
}

/// The data and outputs of a job on this host are directories of the host.
pub(crate) fn copy(args: &CopyArgs) -> Result<ExitCode> {
    Jobs::open()?.find(local(&args.job)?)?;
    let error = Error::new(Kind::Unsupported, format!("job `{}` runs on this host", args.job));
    let help =
        format!("read its outputs here, or a file of a task with `jobc exec {} TASK -- cat FILE`", args.job);
    Err(Failure::usage_error(error.help(help)))
}
