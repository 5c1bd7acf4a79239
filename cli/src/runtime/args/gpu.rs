//! The commands about GPUs.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use jobc_schema::gpu::Vendor;

use super::format::{OutputArgs, one_of, or_json};
use crate::args::FormatArg;

#[derive(Debug, ClapArgs)]
pub(crate) struct GpuArgs {
    #[command(subcommand)]
    pub command: GpuCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GpuCommand {
    /// List the GPUs of this host with their users and jobs
    Ls(LsArgs),
    /// List the GPUs of each job, and the jobs that wait for GPUs
    Leases(LeasesArgs),
    /// Write a CDI specification of the GPUs of this host
    ///
    /// podman, Docker, containerd and other container engines read it to pass GPUs to containers.
    Cdi(CdiArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// Also show full UUIDs, bus addresses, links, temperature, power, clocks and settings
    #[arg(long, short)]
    pub wide: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LeasesArgs {
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CdiArgs {
    /// File to write [default: stdout]
    ///
    /// Container engines read the files in /etc/cdi and /var/run/cdi.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Output format; a file name that ends in `.json` selects JSON
    #[arg(long, value_parser = or_json("yaml"), default_value = "yaml")]
    pub format: FormatArg,
    /// GPU vendor [default: the vendor of the first GPU]
    #[arg(long, value_parser = one_of([Vendor::Nvidia, Vendor::Amd, Vendor::Intel], Vendor::as_str))]
    pub vendor: Option<Vendor>,
}
