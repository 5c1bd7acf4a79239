//! The live table of jobs in the foreground: the resource usage of their tasks, below their output.
//!
//! Only on a terminal: pipes, files and `--plain` have no table.

use std::time::{Duration, Instant};

use jobc_job::directory::Directory;
use jobc_job::local_place::{measured, summary};
use jobc_job::metrics::LiveUsage;
use jobc_job::record::Record;
use jobc_place::job::JobSummary;
use jobc_place::time::Time;
use rustix::stdio::stderr;
use rustix::termios::tcgetwinsize;

use crate::runtime::commands::follow::Follower;
use crate::runtime::commands::stats::{Row, UsageRows};
use crate::runtime::commands::top::heading;
use crate::table::{Table, truncate};

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Samples take at most this part of the time.
const MAX_SHARE: u32 = 20;
/// Minimum number of lines of a terminal with a table.
const MIN_LINES: usize = 10;
/// Maximum number of jobs with their own line, and of tasks.
const MAX_JOBS: usize = 3;
const MAX_TASKS: usize = 12;

/// The table of some jobs.
pub(super) struct LiveTable {
    jobs: Vec<(Directory, LiveUsage)>,
    rows: UsageRows,
    next: Instant,
}

impl LiveTable {
    /// A table of these jobs; the first is drawn with the first sample.
    pub(super) fn new(jobs: impl Iterator<Item = Directory>) -> Self {
        let with_usage = |directory: Directory| {
            let usage = LiveUsage::new(&directory);
            (directory, usage)
        };
        Self { jobs: jobs.map(with_usage).collect(), rows: UsageRows::default(), next: Instant::now() }
    }

    /// Draws the table again when it is time for a sample.
    pub(super) fn draw(&mut self, follower: &mut Follower) {
        let began = Instant::now();
        if began < self.next {
            return;
        }
        let size = tcgetwinsize(stderr()).ok();
        let (columns, height) = size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()));
        let mut jobs = Vec::new();
        for (directory, usage) in &mut self.jobs {
            if let Ok(Some(record)) = Record::read(directory)
                && !record.state.is_final()
            {
                let samples = usage.sample(&record);
                jobs.push((summary(&record), measured(&record, samples)));
            }
        }
        let (summaries, tasks): (Vec<_>, Vec<_>) =
            jobs.into_iter().map(|(job, tasks)| ((job.name.clone(), job.clone()), (job.name, tasks))).unzip();
        let rows = self.rows.update(tasks);
        let last_line = |row: &Row| follower.last_line(&row.job, &row.usage.task);
        let lines = if height < MIN_LINES || summaries.is_empty() {
            vec![]
        } else {
            lines(&summaries, &rows, &last_line, columns, height, Time::now())
        };
        follower.set_footer(lines);
        self.next = Instant::now() + INTERVAL.max(began.elapsed() * MAX_SHARE);
    }

    /// Removes the table from the screen until it is drawn again.
    pub(super) fn hide(&mut self, follower: &mut Follower) {
        follower.set_footer(vec![]);
        self.next = Instant::now();
    }
}

/// The lines for a terminal of that size.
fn lines(
    jobs: &[(String, JobSummary)],
    rows: &[Row],
    last_line: &dyn Fn(&Row) -> Option<String>,
    columns: usize,
    height: usize,
    now: Time,
) -> Vec<String> {
    let mut out = heading(jobs, rows, now);
    if out.len() > MAX_JOBS {
        let more = out.len() - MAX_JOBS + 1;
        out.truncate(MAX_JOBS - 1);
        out.push(format!("and {more} more jobs"));
    }
    let count = rows.len().min((height / 3).min(MAX_TASKS));
    let mut table = Table::new(["TASK", "STATE", "CPU", "MEMORY", "GPU", "LAST LINE"]);
    for row in &rows[..count] {
        let [_, _, cpu, memory, .., gpu] = row.cells();
        let task = row.usage.task.to_string();
        let task = if jobs.len() > 1 { format!("{} {task}", row.job) } else { task };
        table.row([
            task,
            row.usage.state.as_str().to_owned(),
            cpu,
            memory,
            gpu,
            last_line(row).unwrap_or_default(),
        ]);
    }
    if count > 0 {
        out.extend(table.render(Some(columns)).lines().map(str::to_owned));
    }
    if rows.len() > count {
        out.push(format!("and {} more tasks; `jobc top` shows all", rows.len() - count));
    }
    // A line as wide as the terminal would make some of them wrap.
    out.iter().map(|line| truncate(line, columns.saturating_sub(1))).collect()
}

#[cfg(test)]
mod tests;
