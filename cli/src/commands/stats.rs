//! `jobc stats`: what tasks use, once a second.

mod rows;

use std::process::ExitCode;
use std::time::Duration;

use jobc_job::folder::Folder;
use jobc_job::logs::Watch;
use jobc_job::metrics::Live;
use jobc_job::record::Record;

use super::follow::output::{Outputs, To, or_end};
use super::jobs::{self, Jobs, Result};
use crate::args::FormatArg;
use crate::args::watch::StatsArgs;
use crate::table::Table;
use crate::terminal;
pub(super) use rows::{Row, Rows};

/// How often tasks are looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a single look takes: CPU time is compared with that so long before.
const GLANCE: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode> {
    let mut looked_at = LookedAt::open(args)?;
    let mut rows = Rows::default();
    let mut outputs = Outputs::new(false);
    // The first look is what the second is compared with.
    rows.take(looked_at.look()?);
    std::thread::sleep(GLANCE);
    let mut is_first = true;
    loop {
        let rows = rows.take(looked_at.look()?);
        let text = match args.shown.format {
            FormatArg::Json => rows.iter().map(|row| format!("{}\n", row.json())).collect(),
            // A list of nothing has its headings, too.
            _ => table(&rows).render(terminal::columns_of_stdout()),
        };
        let gap = if is_first || args.shown.format == FormatArg::Json { "" } else { "\n" };
        or_end(outputs.to(To::Output).map(|out| out.extend_from_slice(format!("{gap}{text}").as_bytes())));
        or_end(outputs.flush());
        is_first = false;
        if args.no_stream || looked_at.is_over()? {
            return Ok(ExitCode::SUCCESS);
        }
        looked_at.wait(PAUSE);
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

/// The jobs that are looked at.
pub(super) struct LookedAt {
    /// Those that were named; all that run where none was.
    named: bool,
    jobs: Vec<(Folder, Live)>,
    all: Jobs,
}

impl LookedAt {
    pub(super) fn open(args: &StatsArgs) -> Result<Self> {
        let all = Jobs::open()?;
        let find = |word: &String| all.find(word).map(|folder| (folder.clone(), Live::new(&folder)));
        let jobs = args.jobs.iter().map(find).collect::<Result<_>>()?;
        Ok(Self { named: !args.jobs.is_empty(), jobs, all })
    }

    /// Each job with what its tasks use now.
    pub(super) fn look(&mut self) -> Result<Vec<(Record, Vec<jobc_job::metrics::Sample>)>> {
        if !self.named {
            let running = self.all.all()?.into_iter().filter(|(_, record)| !record.state.is_final());
            let running: Vec<Folder> = running.map(|(folder, _)| folder).collect();
            self.jobs.retain(|(folder, _)| running.contains(folder));
            for folder in running {
                if !self.jobs.iter().any(|(known, _)| *known == folder) {
                    let live = Live::new(&folder);
                    self.jobs.push((folder, live));
                }
            }
        }
        let look = |(folder, live): &mut (Folder, Live)| {
            let record = jobs::read(folder)?;
            let samples = live.look(&record);
            Ok((record, samples))
        };
        self.jobs.iter_mut().map(look).collect()
    }

    /// Whether all jobs that were named have ended, or none runs.
    fn is_over(&self) -> Result<bool> {
        for (folder, _) in &self.jobs {
            let record = jobs::read(folder)?;
            let gone = record.supervisor.is_some_and(|supervisor| !supervisor.is_alive());
            if !record.state.is_final() && !gone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits, but not for the end of a job.
    fn wait(&self, longest: Duration) {
        let until = std::time::Instant::now() + longest;
        let mut watch = Watch::new(self.jobs.iter().map(|(folder, _)| folder.record.clone()));
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() || watch.wait(&[], left).is_err() || self.is_over().unwrap_or(true) {
                return;
            }
        }
    }
}
