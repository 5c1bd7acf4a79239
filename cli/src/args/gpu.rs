//! The commands about GPUs.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use jobc_schema::gpu::Vendor;

use super::format::{FormatArg, Shown, yaml_or_json};

#[derive(Debug, ClapArgs)]
pub(crate) struct GpuArgs {
    #[command(subcommand)]
    pub command: GpuCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GpuCommand {
    /// List the GPUs of this machine: what they are, who uses them, who has them
    Ls(LsArgs),
    /// List which job has which GPU, and who waits for some
    Leases(LeasesArgs),
    /// Write a CDI file of this machine's GPUs, by which podman, Docker, containerd and others give them to containers
    Cdi(CdiArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// Show more of each: its place on the bus, its links, the processes that use it
    #[arg(long, short)]
    pub wide: bool,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LeasesArgs {
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CdiArgs {
    /// Where to; standard output unless given. Engines read /etc/cdi and /var/run/cdi
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How it is written; a file whose name ends with `.json` is JSON
    #[arg(long, value_parser = yaml_or_json(), default_value = "yaml")]
    pub format: FormatArg,
    /// Whose GPUs; those of the first vendor that there is unless given
    #[arg(long, value_enum)]
    pub vendor: Option<VendorArg>,
}

/// The vendors whose cards are looked for on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VendorArg {
    Nvidia,
    Amd,
    Intel,
}

impl From<VendorArg> for Vendor {
    fn from(vendor: VendorArg) -> Self {
        match vendor {
            VendorArg::Nvidia => Self::Nvidia,
            VendorArg::Amd => Self::Amd,
            VendorArg::Intel => Self::Intel,
        }
    }
}
