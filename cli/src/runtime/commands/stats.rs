//! `jobc stats`: prints the resource usage of tasks, once per second.

mod rows;

use std::process::ExitCode;
use std::time::Duration;

use jobc_job::directory::Directory;
use jobc_job::logs::Watch;
use jobc_job::metrics::LiveUsage;
use jobc_job::record::Record;

use super::follow::output::{OutputStream, OutputStreams, or_exit};
use super::jobs::{self, Jobs, Result, local};
use super::subject::Subject;
use crate::args::FormatArg;
use crate::runtime::args::watch::StatsArgs;
use crate::table::Table;
use crate::terminal;
pub(super) use rows::{Row, UsageRows};

/// Interval of samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Time between the two samples of a single output, which CPU time is computed from.
const FIRST_SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// The message if there is nothing to sample.
pub(super) const NO_JOB_RUNS: &str =
    "no job is running; start one with `jobc run`, or list ended ones with `jobc ps -a`";

pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode> {
    let mut looked_at = SampledJobs::open(args)?;
    let mut rows = UsageRows::default();
    let mut outputs = OutputStreams::new(false);
    // The first sample is the base of the second.
    rows.update(looked_at.sample()?);
    std::thread::sleep(FIRST_SAMPLE_INTERVAL);
    let mut is_first = true;
    loop {
        let rows = rows.update(looked_at.sample()?);
        let text = match args.output_args.format {
            FormatArg::Json => rows.iter().map(|row| format!("{}\n", row.json())).collect(),
            // An empty list has headings, too.
            _ => table(&rows).render(terminal::columns_of_stdout()),
        };
        let gap = if is_first || args.output_args.format == FormatArg::Json { "" } else { "\n" };
        or_exit(
            outputs
                .select(OutputStream::Stdout)
                .map(|out| out.extend_from_slice(format!("{gap}{text}").as_bytes())),
        );
        or_exit(outputs.flush());
        if is_first && args.output_args.format == FormatArg::Text && looked_at.is_idle() {
            terminal::eprint(&format!("jobc: {NO_JOB_RUNS}\n"));
        }
        is_first = false;
        if args.no_stream || looked_at.have_ended()? {
            return Ok(ExitCode::SUCCESS);
        }
        looked_at.wait(SAMPLE_INTERVAL);
    }
}

fn table(rows: &[Row]) -> Table<9> {
    let mut table = Table::new(["JOB", "TASK", "CPU", "MEMORY", "LIMIT", "READ", "WRITTEN", "PIDS", "GPU"]);
    for row in rows {
        let mut cells = row.cells().into_iter();
        table.row(std::array::from_fn(|_| cells.next().unwrap_or_default()));
    }
    table
}

/// The jobs to sample.
pub(super) struct SampledJobs {
    /// Whether the jobs were named; otherwise all running jobs are sampled.
    named: bool,
    jobs: Vec<(Directory, LiveUsage)>,
    all: Jobs,
}

impl SampledJobs {
    pub(super) fn open(args: &StatsArgs) -> Result<Self> {
        let all = Jobs::open()?;
        let subjects = args.jobs.iter().map(|job| all.subject(local(job)?)).collect::<Result<Vec<_>>>()?;
        let mut jobs = Vec::new();
        for subject in subjects {
            for directory in subject.directories(&all) {
                // Of a sweep, ended jobs would only be in the way.
                let is_shown =
                    matches!(subject, Subject::Job(_)) || !jobs::read(&directory)?.state.is_final();
                if is_shown {
                    let live = LiveUsage::new(&directory);
                    jobs.push((directory, live));
                }
            }
        }
        Ok(Self { named: !args.jobs.is_empty(), jobs, all })
    }

    /// Each job with the current usage of its tasks.
    pub(super) fn sample(&mut self) -> Result<Vec<(Record, Vec<jobc_job::metrics::Sample>)>> {
        if !self.named {
            let running =
                self.all.place.records()?.into_iter().filter(|(_, record)| !record.state.is_final());
            let running: Vec<Directory> = running.map(|(directory, _)| directory).collect();
            self.jobs.retain(|(directory, _)| running.contains(directory));
            for directory in running {
                if !self.jobs.iter().any(|(known, _)| *known == directory) {
                    let live = LiveUsage::new(&directory);
                    self.jobs.push((directory, live));
                }
            }
        }
        let look = |(directory, live): &mut (Directory, LiveUsage)| {
            let record = jobs::read(directory)?;
            let samples = live.sample(&record);
            Ok((record, samples))
        };
        self.jobs.iter_mut().map(look).collect()
    }

    /// Whether no job runs, and none was named.
    fn is_idle(&self) -> bool {
        !self.named && self.jobs.is_empty()
    }

    /// Whether all named jobs have ended, or none runs.
    fn have_ended(&self) -> Result<bool> {
        for (directory, _) in &self.jobs {
            let record = jobs::read(directory)?;
            let gone = record.supervisor.is_some_and(|supervisor| !supervisor.is_alive());
            if !record.state.is_final() && !gone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits, but not beyond the end of the jobs.
    fn wait(&self, longest: Duration) {
        let until = std::time::Instant::now() + longest;
        let mut watch = Watch::new(self.jobs.iter().map(|(directory, _)| directory.record.clone()));
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() || watch.wait(&[], left).is_err() || self.have_ended().unwrap_or(true) {
                return;
            }
        }
    }
}
