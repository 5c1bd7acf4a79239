//! The commands about jobs on this machine.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::format::Shown;
use super::values::parse_duration;
use super::watch::{EventsArgs, Lines, LogsArgs, ReportArgs, StatsArgs};

/// The commands about jobs on this machine, in the order of `jobc --help`.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// List the jobs of this user on this machine, or the tasks of one
    Ps(PsArgs),
    /// Show what is known of a job
    Inspect(InspectArgs),
    /// Show what tasks print
    Logs(LogsArgs),
    /// Show what a job goes through
    Events(EventsArgs),
    /// Show what tasks use, once a second
    Stats(StatsArgs),
    /// Watch what tasks use, on the whole terminal
    Top(StatsArgs),
    /// Write a page about a job: its time line, what it used, how it ended, the last it printed
    Report(ReportArgs),
    /// Run a further program in a task
    Exec(JobExecArgs),
    /// Count and time a task's calls to the drivers of GPUs, through strace
    Trace(TraceArgs),
    /// End jobs: ask every task, and kill what is left after the grace period
    Stop(StopArgs),
    /// Send a signal to a job's tasks; `KILL` to all of them ends the job now
    Kill(KillArgs),
    /// Freeze every task of jobs
    Pause(JobsArgs),
    /// Let frozen jobs go on
    Resume(JobsArgs),
    /// Wait until jobs have ended; exits with the job's exit code
    Wait(JobsArgs),
    /// Remove ended jobs: their records, logs and samples
    Rm(RmArgs),
    /// Remove old records, and what killed commands have left
    Gc(GcArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PsArgs {
    /// Jobs that have ended, too
    #[arg(long, short)]
    pub all: bool,
    /// Only their ids
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub shown: Shown,
    /// Show the tasks of this job: an id such as `train.2`, or a name, which is its newest run
    pub job: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub shown: Shown,
    /// The job: an id such as `train.2`, or a name, which is its newest run
    pub job: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobExecArgs {
    /// Pass our standard input on; without it, and without a terminal, the program has none
    #[arg(long, short)]
    pub interactive: bool,
    /// Give it a terminal
    #[arg(long, short, conflicts_with = "format")]
    pub tty: bool,
    /// Its user and group, by name or number
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub user: Option<String>,
    /// Its working directory
    #[arg(long, short, value_name = "DIR")]
    pub workdir: Option<String>,
    /// Set a variable; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Give it the task's secret variables, too, read anew from where the job file says
    #[arg(long)]
    pub secrets: bool,
    #[command(flatten)]
    pub lines: Lines,
    /// The job: an id such as `train.2`, or a name, which is its newest run
    pub job: String,
    /// The task, which may be left out where the job has one alone, then the program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "[TASK] [--] COMMAND"
    )]
    pub words: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TraceArgs {
    /// How long to trace, such as `10s` or `2m`; less where the task ends before
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub duration: Duration,
    #[command(flatten)]
    pub shown: Shown,
    /// The job: an id such as `train.2`, or a name, which is its newest run
    pub job: String,
    /// The task, such as `worker-0`, which may be left out where one runs alone
    pub task: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StopArgs {
    /// How long tasks may take, such as `10s` or `2m`; what the job file says unless given
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// Do not wait for the end
    #[arg(long)]
    pub no_wait: bool,
    #[command(flatten)]
    pub jobs: JobsArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KillArgs {
    /// The signal, by name or number
    #[arg(long, short, value_name = "SIGNAL", default_value = "KILL")]
    pub signal: String,
    /// Kill the job's supervisor, and with it everything of the job, where it does not answer
    #[arg(long, conflicts_with_all = ["signal", "tasks"])]
    pub force: bool,
    #[command(flatten)]
    pub shown: Shown,
    /// The job: an id such as `train.2`, or a name, which is its newest run
    pub job: String,
    /// The tasks, such as `worker-0`, or a role for all of its tasks; all tasks unless given
    #[arg(value_name = "TASK")]
    pub tasks: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobsArgs {
    #[command(flatten)]
    pub shown: Shown,
    /// The jobs: ids such as `train.2`, or names, which are their newest runs
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RmArgs {
    /// Kill it first where it runs, and remove what cannot be read
    #[arg(long, short)]
    pub force: bool,
    #[command(flatten)]
    pub jobs: JobsArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GcArgs {
    /// Remove the records of jobs that ended so long ago
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "7d")]
    pub older_than: Duration,
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub shown: Shown,
}
