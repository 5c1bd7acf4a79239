//! The commands that show the output, resource usage and events of jobs.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use jobc_place::job_ref::JobRef;
use jobc_place::time::Time;

use super::duration::parse_duration;
use super::format::{OutputArgs, or_json};
use super::metric::MetricArgs;
use crate::args::FormatArg;
use crate::runtime::completion::jobs::{
    JobFilter, TaskFilter, job_and_tasks, jobs_or_handles, jobs_sweeps_or_handles,
};

#[derive(Debug, ClapArgs)]
pub(crate) struct LogsArgs {
    /// Follow the output until the job ends
    #[arg(long, short)]
    pub follow: bool,
    /// Number of lines to show from the end of each task's output [default: all]
    #[arg(long, short = 'n', value_name = "LINES")]
    pub tail: Option<u64>,
    /// Show only lines newer than a duration (`10m`) or a time (`2026-11-21T13:31:53Z`) [default: all]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub since: Option<Time>,
    /// Show the time of each line
    #[arg(long, short)]
    pub timestamps: bool,
    /// Show only this attempt of each task, counted from 1 [default: all]
    #[arg(long, value_name = "NUMBER")]
    pub attempt: Option<u32>,
    #[command(flatten)]
    pub lines: LineFormatArgs,
    /// Job and tasks [default: all tasks of the newest job]
    ///
    /// A job is an ID such as `train.2`, or a job name for its newest run. A sweep is named like a job. A task is
    /// `worker-0`, or a role for all its tasks. Without a job, tasks of the newest job are meant. A handle such as
    /// `lab/train` names a job on a cluster.
    #[arg(value_names = ["JOB", "TASK"], num_args = 0.., add = job_and_tasks(JobFilter::All, TaskFilter::All))]
    pub words: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct EventsArgs {
    /// Follow the events until the job ends
    #[arg(long, short)]
    pub follow: bool,
    #[command(flatten)]
    pub lines: LineFormatArgs,
    /// Job ID such as `train.2`, a job name for its newest run, or a handle such as `lab/train` [default: the newest job]
    #[arg(add = jobs_or_handles(JobFilter::All))]
    pub job: Option<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    /// Print one sample and exit instead of refreshing every second
    #[arg(long)]
    pub no_stream: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job or sweep IDs such as `train.2`, names, or one handle such as `lab/train` [default: all running jobs]
    #[arg(value_name = "JOB", add = jobs_sweeps_or_handles(JobFilter::Running))]
    pub jobs: Vec<JobRef>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// File to write, or `-` for stdout [default: `<job>.html` in the current directory]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the reports of the jobs of a sweep too, next to its own, which links to them
    #[arg(long)]
    pub jobs: bool,
    /// Write OpenTelemetry traces (OTLP in JSON) instead of a page [default file: `<job>.otlp.json`]
    ///
    /// The job is a span; its steps and the attempts of its tasks are spans below it.
    #[arg(long, conflicts_with_all = ["jobs", "metric"])]
    pub traces: bool,
    #[command(flatten)]
    pub metrics: MetricArgs,
    /// Job or sweep ID such as `train.2`, a name for its newest run, or a handle such as `lab/train` [default: the newest job
    /// or sweep]
    #[arg(add = jobs_sweeps_or_handles(JobFilter::All))]
    pub job: Option<JobRef>,
}

/// The output format of a command that prints line by line.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct LineFormatArgs {
    /// Output format; `json` prints one object per line
    #[arg(long, value_parser = or_json("text"), default_value = "text")]
    pub format: FormatArg,
}

/// A time: a duration before now, or RFC 3339 with or without a zone; the default zone is UTC.
pub(super) fn parse_time(text: &str) -> Result<Time, String> {
    if let Ok(ago) = parse_duration(text) {
        let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        return Ok(Time::from_millis(Time::now().millis().saturating_sub(ago)));
    }
    humantime::parse_rfc3339_weak(text)
        .map(Time::of)
        .map_err(|_| "write a time such as `10m`, or a moment such as `2026-11-21T13:31:53Z`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_a_duration_ago_or_a_timestamp() {
        let ago = parse_time("10m").unwrap();
        assert!((590..=610).contains(&Time::now().since(ago).as_secs()));
        for text in ["2026-11-21T13:31:53Z", "2026-11-21 13:31:53", "2026-11-21T13:31:53.000Z"] {
            assert_eq!(parse_time(text).unwrap().to_string(), "2026-11-21T13:31:53.000Z", "{text}");
        }
        for text in ["", "yesterday", "10 parsecs"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
