//! The command line of `jobc targets`.

use camino::Utf8PathBuf;
use clap::{Args as ClapArgs, Subcommand};

use super::format::OutputArgs;
use crate::completion;

#[derive(Debug, ClapArgs)]
pub(crate) struct TargetsArgs {
    #[command(subcommand)]
    pub command: TargetsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TargetsCommand {
    /// List the targets
    Ls(TargetsLsArgs),
    /// Check whether you can submit jobs to a target
    ///
    /// It queries the version, the resource kinds and your permissions on the cluster. The exit status is 1 if a
    /// permission required for submitting is missing.
    Check(TargetsCheckArgs),
    /// Show the free nodes, GPUs and queues of targets
    ///
    /// It shows what you may read there.
    Free(TargetsFreeArgs),
    /// Print the Kubernetes Role and ClusterRole with the permissions that jobc needs
    Role(TargetsRoleArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TargetsLsArgs {
    #[command(flatten)]
    pub file: TargetsFileArgs,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TargetsCheckArgs {
    /// Target
    #[arg(add = completion::targets())]
    pub target: String,
    #[command(flatten)]
    pub file: TargetsFileArgs,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TargetsFreeArgs {
    /// Targets [default: all that jobs can be submitted to]
    #[arg(value_name = "TARGET", add = completion::targets())]
    pub names: Vec<String>,
    #[command(flatten)]
    pub file: TargetsFileArgs,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TargetsRoleArgs {
    /// Target whose namespace the Role applies to [default: the namespace `default`]
    #[arg(add = completion::targets())]
    pub target: Option<String>,
    #[command(flatten)]
    pub file: TargetsFileArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TargetsFileArgs {
    /// Targets file [default: `targets.yaml` in the current directory or in a parent directory]
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub targets: Option<Utf8PathBuf>,
}
