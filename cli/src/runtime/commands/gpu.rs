//! `jobc gpu`: the GPUs of this host.

mod cdi;
mod leases;
mod ls;

use std::process::ExitCode;

use super::jobs::Result;
use crate::runtime::args::gpu::GpuCommand;

pub(crate) fn run(command: &GpuCommand) -> Result<ExitCode> {
    match command {
        GpuCommand::Ls(ls) => ls::run(ls),
        GpuCommand::Leases(leases) => leases::run(leases),
        GpuCommand::Cdi(cdi) => cdi::run(cdi),
    }
}
