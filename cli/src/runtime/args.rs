//! The command line of the commands in [`super::commands`].

pub(crate) mod build_access;
pub(crate) mod container;
pub(crate) mod doctor;
mod duration;
mod format;
pub(crate) mod gpu;
pub(crate) mod gpu_option;
pub(crate) mod history;
pub(crate) mod image;
pub(crate) mod image_build;
pub(crate) mod image_tools;
pub(crate) mod jobs;
pub(crate) mod lock;
pub(crate) mod metric;
pub(crate) mod run;
pub(crate) mod run_command;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod submit;
pub(crate) mod targets;
pub(crate) mod task_access;
pub(crate) mod watch;

use clap::{Parser, Subcommand};

use crate::args::values::GLOBAL_OPTION_ORDER;
use crate::args::{ColorArg, FormatArg};
use {doctor::DoctorArgs, gpu::GpuArgs, image::ImageArgs, jobs::JobCommand, lock::LockArgs, run::RunArgs};
use {submit::SubmitArgs, targets::TargetsArgs};

/// The description of `jobc run`, which [`RuntimeCommand`] and [`RunCommand`] share.
const ABOUT_RUN: &str = "Run a job file, a command or an OCI bundle on this host";

/// Its forms.
const RUN_USAGE: &str = "jobc run [OPTIONS] [PATH]
       jobc run [OPTIONS] -- COMMAND...
       jobc run [OPTIONS] --image IMAGE -- COMMAND...";

/// The commands that run jobs and containers on this host.
#[derive(Debug, Subcommand)]
pub(crate) enum RuntimeCommand {
    #[command(about = ABOUT_RUN, override_usage = RUN_USAGE)]
    Run(Box<RunArgs>),
    /// Submit a job to a cluster
    ///
    /// The job is built for the target, checked with the cluster and created there, and its handle, `TARGET/NAME`, is
    /// printed. Submitting the same job twice creates it once. `ps`, `logs`, `inspect`, `events`, `wait`, `stop` and
    /// `rm` accept handles.
    Submit(Box<SubmitArgs>),
    #[command(flatten)]
    Job(JobCommand),
    /// Manage images: pull, build, import, save, push
    Image(ImageArgs),
    /// List GPUs and GPU leases, and write CDI files
    Gpu(GpuArgs),
    /// Record the digests of a job's images in jobc.lock
    Lock(LockArgs),
    /// Check whether this host can run containers, and suggest fixes
    ///
    /// The checks run jobs that exit immediately. Nothing on the host changes. The exit status is 0 if the user can run
    /// containers, otherwise 1.
    Doctor(DoctorArgs),
    /// List targets, and check access to clusters
    Targets(TargetsArgs),
    /// Serve a web page and a REST API to write, submit and watch jobs
    ///
    /// A link with a token is printed. Jobs keep running when the server ends, and it shows those that were started without
    /// it. It listens on loopback; connect from elsewhere with `ssh -L 8750:127.0.0.1:8750 HOST`.
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
}

/// `jobc run` alone: it must start without building the options of all other commands.
#[derive(Debug, Parser)]
#[command(
    name = "jobc run",
    bin_name = "jobc run",
    about = ABOUT_RUN,
    override_usage = RUN_USAGE,
    max_term_width = 100
)]
pub(crate) struct RunCommand {
    /// Output format of findings
    #[arg(long, value_enum, default_value_t = FormatArg::Text, display_order = GLOBAL_OPTION_ORDER)]
    pub format: FormatArg,
    /// When to use colors [default: auto]
    #[arg(
        long,
        value_enum,
        env = "JOBC_COLOR",
        value_name = "WHEN",
        alias = "colour",
        display_order = GLOBAL_OPTION_ORDER
    )]
    pub color: Option<ColorArg>,
    #[command(flatten)]
    pub run: RunArgs,
}
