//! The commands about jobs on this host.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use jobc_place::job_ref::JobRef;

use super::duration::parse_duration;
use super::format::OutputArgs;
use super::history::{HistoryArgs, MetricsArgs};
use super::metric::MetricArgs;
use super::task_access::{CopyArgs, PortForwardArgs};
use super::watch::{EventsArgs, LineFormatArgs, LogsArgs, ReportArgs, StatsArgs};
use crate::completion::targets;
use crate::runtime::completion::jobs::{
    JobFilter, TaskFilter, job_and_tasks, jobs, jobs_or_handles, jobs_sweeps_or_handles, tasks,
};
use crate::runtime::completion::signals;

/// The commands about jobs on this host.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// List your jobs, the tasks of a job, or the jobs of a sweep
    Ps(PsArgs),
    /// Show the details of a job
    #[command(alias = "describe")]
    Inspect(InspectArgs),
    /// Show the output of tasks
    Logs(LogsArgs),
    /// Show the events of a job
    Events(EventsArgs),
    /// Show the resource usage of tasks, once per second
    Stats(StatsArgs),
    /// Show the resource usage of tasks in full screen
    Top(StatsArgs),
    /// Write an HTML report of a job or a sweep
    ///
    /// The report of a job shows the timeline, the resource usage, the exit status and the last output. The report of a
    /// sweep compares its jobs.
    Report(ReportArgs),
    /// Show what jobs used, and suggest smaller limits
    ///
    /// A row is a role: peak CPUs and memory of a task of what it may use, and the GPU hours of the job. Samples of the
    /// jobs on this host are the source; `jobc rm` and `jobc gc` remove them.
    History(HistoryArgs),
    /// Print metrics of the jobs on this host for Prometheus
    ///
    /// A timer that runs `jobc metrics --write DIR` keeps them up to date without a daemon.
    Metrics(MetricsArgs),
    /// Run a command in a running task
    #[command(override_usage = "jobc exec [OPTIONS] [JOB] [TASK] [--] COMMAND...")]
    Exec(JobExecArgs),
    /// Make ports of tasks on a cluster available on this host
    ///
    /// Connections to a port on 127.0.0.1 are forwarded to the task until Ctrl-C.
    PortForward(PortForwardArgs),
    /// Copy files to or from a task on a cluster
    ///
    /// The image of the task must have `tar`.
    Copy(CopyArgs),
    /// Count and time the GPU driver calls of a task with strace
    Trace(TraceArgs),
    /// Stop jobs
    ///
    /// Every task gets SIGTERM, and SIGKILL after its grace period.
    #[command(alias = "cancel")]
    Stop(StopArgs),
    /// Send a signal to the tasks of a job
    ///
    /// Sending `KILL` to all tasks ends the job.
    Kill(KillArgs),
    /// Pause all tasks of jobs
    ///
    /// On Kubernetes, a paused job has no pods: its tasks start again when it is resumed. On Slurm, only users with the
    /// right to suspend jobs can pause a job that runs.
    Pause(PauseArgs),
    /// End the tasks of jobs until they are resumed [preview]
    ///
    /// Tasks leave as `preemption` of the job says, and the resources of the job are given back. A resumed job waits for
    /// resources like one of `--queue`. On clusters, this is `jobc pause`.
    Suspend(PauseArgs),
    /// Resume paused and suspended jobs
    Resume(PauseArgs),
    /// Wait until jobs end, and exit with the exit code of the job
    ///
    /// For several jobs, it is the first nonzero exit code; for a sweep, the exit code of `jobc run`.
    Wait(WaitArgs),
    /// Remove the records, logs and samples of finished jobs
    Rm(RmArgs),
    /// Remove old jobs, and leftovers of killed commands
    Gc(GcArgs),
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "one per option")]
pub(crate) struct PsArgs {
    /// Also show finished jobs
    #[arg(long, short)]
    pub all: bool,
    /// Print only IDs
    #[arg(long, short)]
    pub quiet: bool,
    /// List the jobs on the cluster of a target, instead of the jobs on this host
    #[arg(long, short, value_name = "NAME", conflicts_with = "job", add = targets())]
    pub target: Option<String>,
    /// List the queue of this host: the jobs of all users that hold resources or wait for them, and for whom they wait
    #[arg(long, conflicts_with_all = ["job", "target", "all_targets", "all", "quiet"])]
    pub queue: bool,
    /// List the jobs on this host and on the clusters of all targets
    #[arg(long, short = 'A', conflicts_with_all = ["job", "target"])]
    pub all_targets: bool,
    #[command(flatten)]
    pub metrics: MetricArgs,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Show the tasks of this job, or the jobs of this sweep: an ID such as `train.2`, a name for its newest run, or a
    /// handle such as `lab/train`
    #[arg(add = jobs_sweeps_or_handles(JobFilter::All))]
    pub job: Option<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job ID such as `train.2`, a job name for its newest run, or a handle such as `lab/train` [default: the newest job]
    #[arg(add = jobs_or_handles(JobFilter::All))]
    pub job: Option<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobExecArgs {
    /// Pass stdin to the command
    ///
    /// Without `-i` and `-t`, the stdin of the command is /dev/null.
    #[arg(long, short)]
    pub interactive: bool,
    /// Allocate a terminal; stdin is passed to it
    #[arg(long, short, conflicts_with = "format")]
    pub tty: bool,
    /// User and group, by name or number [default: from the task]
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub user: Option<String>,
    /// Working directory [default: from the task]
    #[arg(long, short, value_name = "DIR")]
    pub workdir: Option<String>,
    /// Set an environment variable (repeatable)
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Also pass the secret variables of the task; they are read again from their sources
    #[arg(long)]
    pub secrets: bool,
    #[command(flatten)]
    pub lines: LineFormatArgs,
    /// Job, task, command and arguments
    ///
    /// A job is an ID such as `train.2`, a job name for its newest run, or a handle such as `lab/train`. The task can be
    /// omitted if only one is running. `jobc exec -- COMMAND` runs the command in the newest running job.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        add = job_and_tasks(JobFilter::Running, TaskFilter::Running),
        value_name = "[JOB] [TASK] [--] COMMAND"
    )]
    pub words: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TraceArgs {
    /// How long to trace, such as `10s` or `2m`; tracing stops early if the task ends
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub duration: Duration,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job ID such as `train.2`, or a job name for its newest run [default: the newest running job]
    #[arg(add = jobs(JobFilter::Running))]
    pub job: Option<JobRef>,
    /// Task such as `worker-0` [default: the only running task]
    #[arg(add = tasks(TaskFilter::Running))]
    pub task: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StopArgs {
    /// Time between SIGTERM and SIGKILL, such as `10s` or `2m` [default: from the job file]
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// Do not wait for the jobs to end
    #[arg(long)]
    pub no_wait: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job or sweep IDs such as `train.2`, or names [default: the only running job or sweep]
    ///
    /// A sweep stands for all of its jobs. A handle such as `lab/train` names a job on a cluster. On Kubernetes its pods are
    /// deleted, and their output up to now is kept on this host; `jobc rm` removes both. On a terminal, jobc asks for
    /// confirmation if no job is named.
    #[arg(value_name = "JOB", add = jobs_sweeps_or_handles(JobFilter::Running))]
    pub jobs: Vec<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WaitArgs {
    /// Exit with 75 if the jobs have not ended after this time, such as `30m` or `2h`
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// [preview] Ring the bell and show a desktop notification at the end, where the terminal or notify-send can
    #[arg(long)]
    pub notify: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job or sweep IDs such as `train.2`, names, or handles [default: the newest running one, or else the newest one]
    #[arg(value_name = "JOB", add = jobs_sweeps_or_handles(JobFilter::Running))]
    pub jobs: Vec<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KillArgs {
    /// Signal, by name or number
    #[arg(long, short, value_name = "SIGNAL", default_value = "KILL", add = signals())]
    pub signal: String,
    /// Kill a supervisor that does not respond, along with all processes of the job
    #[arg(long, conflicts_with_all = ["signal", "tasks"])]
    pub force: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job ID such as `train.2`, a name for its newest run, or a handle such as `lab/train`
    #[arg(add = jobs_or_handles(JobFilter::Running))]
    pub job: JobRef,
    /// Task such as `worker-0`, or a role for all its tasks [default: all tasks]
    #[arg(value_name = "TASK", add = tasks(TaskFilter::All))]
    pub tasks: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobsArgs {
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job or sweep IDs such as `train.2`, names for their newest runs, or handles such as `lab/train`
    #[arg(required = true, value_name = "JOB", add = jobs_sweeps_or_handles(JobFilter::All))]
    pub jobs: Vec<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job or sweep IDs such as `train.2`, or names for their newest runs [default: the only one that runs, or is paused]
    #[arg(value_name = "JOB", add = jobs_sweeps_or_handles(JobFilter::Running))]
    pub jobs: Vec<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RmArgs {
    /// Kill running jobs first, and also remove unreadable records
    #[arg(long, short)]
    pub force: bool,
    #[command(flatten)]
    pub jobs: JobsArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GcArgs {
    /// Remove only jobs that finished longer ago than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "7d")]
    pub older_than: Duration,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
}
