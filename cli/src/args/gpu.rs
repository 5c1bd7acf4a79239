//! The commands about GPUs.

use clap::{Args as ClapArgs, Subcommand};

use super::jobs::Shown;

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
