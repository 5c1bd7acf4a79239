//! The commands about what jobs used: `history` and `metrics`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap_complete::engine::ArgValueCandidates;
use jobc_place::state::JobState;
use jobc_place::time::Time;

use super::format::OutputArgs;
use super::watch::parse_time;
use crate::completion::targets;
use crate::runtime::completion::jobs::{JobFilter, jobs};

#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// Show only jobs in this state, such as `failed` (repeatable) [default: all]
    #[arg(long, value_name = "STATE", value_parser = parse_state, add = states())]
    pub state: Vec<JobState>,
    /// Show only jobs submitted after a duration before now (`7d`) or a time (`2026-11-21T13:31:53Z`) [default: all]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub since: Option<Time>,
    /// Show only jobs of this user, by name [default: all that the place shows]
    #[arg(long, short, value_name = "USER")]
    pub user: Option<String>,
    /// Number of newest jobs to show [default: all]
    #[arg(long, short = 'n', value_name = "JOBS")]
    pub limit: Option<usize>,
    /// Print smaller limits as a patch of the job files
    ///
    /// They come from the peak use in the last ten successful runs of each job, plus a fifth for memory and a tenth for
    /// CPUs. `jobc history --suggest NAME | patch -p0` applies the patch.
    #[arg(long, conflicts_with = "target")]
    pub suggest: bool,
    /// Show the jobs on the cluster of a target, instead of the jobs on this host
    #[arg(long, short, value_name = "NAME", add = targets())]
    pub target: Option<String>,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Job names, or IDs such as `train.2` [default: all jobs]
    #[arg(value_name = "JOB", add = jobs(JobFilter::All))]
    pub jobs: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct MetricsArgs {
    /// Write the metrics to `jobc.prom` in this directory, for the textfile collector of the node exporter [default:
    /// stdout]
    ///
    /// The file is replaced in one step.
    #[arg(long, value_name = "DIR", add = crate::completion::directories())]
    pub write: Option<PathBuf>,
}

/// A state, by its word.
fn parse_state(word: &str) -> Result<JobState, String> {
    JobState::ALL.iter().copied().find(|state| state.as_str() == word).ok_or_else(|| {
        let words: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
        let near = jobc_compiler::suggest::nearest(word, words.iter().copied());
        near.map_or_else(|| format!("known: {}", words.join(", ")), |near| format!("did you mean `{near}`?"))
    })
}

/// Completes states.
fn states() -> ArgValueCandidates {
    ArgValueCandidates::new(|| JobState::ALL.iter().map(|state| state.as_str().into()).collect())
}
