//! The jobs of a sweep side by side: their values, states, durations and metrics.

use jobc_job::directory::Directory;
use jobc_job::local_place;
use jobc_job::metric_choice::{JobMetrics, MetricChoice};
use jobc_job::record::Record;
use jobc_job::sweep::{Sweep, SweepCombination};
use jobc_job::user_metrics::format_number;
use jobc_place::job::JobDetail;
use jobc_place::metric::MetricNumber;
use jobc_place::output::SweepJob;
use jobc_place::state::JobState;
use jobc_place::time::Time;
use jobc_place::time::format_duration;
use jobc_schema::metric::Better;
use jobc_schema::progress::is_progress;
use jobc_sys::error::Result;
use serde_json::Value;

use super::found::NamedJobs;
use super::jobs::Jobs;
use crate::runtime::args::metric::MetricArgs;
use crate::runtime::message::INTERRUPTED;
use crate::table::Table;
use jobc_oci::RUNTIME_FAILURE_EXIT_CODE;

/// A sweep with the records of its jobs.
pub(crate) struct Comparison {
    /// The sweep: its id, or its handle.
    pub name: String,
    /// The axes, in the order of the job file.
    pub axes: Vec<String>,
    /// The compared values.
    pub metrics: Vec<ComparedMetric>,
    /// A row for each combination.
    pub rows: Vec<ComparedJob>,
}

/// A metric that is compared.
pub(crate) struct ComparedMetric {
    /// What it is.
    pub choice: MetricChoice,
    /// Its heading.
    pub title: String,
    /// Which values are better, if it is known.
    pub better: Option<Better>,
}

/// A combination of a sweep.
pub(crate) struct ComparedJob {
    /// Its values and its job.
    pub combination: SweepCombination,
    /// The job's id, or its handle.
    pub name: String,
    /// The state of the job, or that there is none any more.
    pub state: String,
    /// The job; none if it was removed.
    pub job: Option<(Directory, JobDetail)>,
    /// The value of each metric.
    pub metrics: Vec<Option<f64>>,
}

impl Comparison {
    /// Reads the records of the jobs of a sweep.
    pub(crate) fn gather(jobs: &Jobs, sweep: &Sweep, args: &MetricArgs) -> Result<Self> {
        let mut rows = Vec::with_capacity(sweep.combinations.len());
        for combination in &sweep.combinations {
            let directory = jobs.directories().job(&combination.job);
            // None if it was removed.
            let directory = directory.record.is_dir().then_some(directory);
            let record = directory.as_ref().map(Record::read).transpose()?.flatten();
            let state = record.as_ref().map_or("removed", |record| record.state.as_str()).to_owned();
            let name = combination.job.to_string();
            let job = directory.zip(record).map(|(directory, record)| {
                let detail = local_place::detail(&directory, record);
                (directory, detail)
            });
            rows.push(ComparedJob { combination: combination.clone(), name, state, job, metrics: vec![] });
        }
        Ok(Self::of(sweep.id.to_string(), rows, args))
    }

    /// Reads the metrics of jobs.
    pub(crate) fn of(name: String, mut rows: Vec<ComparedJob>, args: &MetricArgs) -> Self {
        let mut axes: Vec<String> = Vec::new();
        for axis in rows.iter().flat_map(|row| row.combination.values.keys()) {
            if !axes.contains(axis) {
                axes.push(axis.clone());
            }
        }
        let mut choices = choices(args, rows.iter().filter_map(|row| row.job.as_ref()).map(|(_, job)| job));
        let detected = if choices.is_empty() { detected(&rows) } else { None };
        let is_loss = detected.as_ref().is_some_and(|name| rank(name) <= LOSS);
        choices.extend(detected.map(MetricChoice::Name));
        for row in &mut rows {
            let Some((directory, job)) = &row.job else {
                row.metrics = vec![None; choices.len()];
                continue;
            };
            let metrics = JobMetrics::new(directory, job);
            row.metrics = choices.iter().map(|choice| metrics.value(choice, None)).collect();
        }
        let compared = |choice: &MetricChoice| ComparedMetric {
            choice: choice.clone(),
            title: choice.title(),
            better: args.better.or_else(|| better(choice, &rows)).or(is_loss.then_some(Better::Lower)),
        };
        let metrics = choices.iter().map(compared).collect();
        Self { name, axes, metrics, rows }
    }

    /// The row with the best value of a metric, if it is known which values are better. NaN is never the best.
    pub(crate) fn best(&self, metric: usize) -> Option<usize> {
        let better = self.metrics.get(metric)?.better?;
        let value = |row: usize| self.rows[row].metrics[metric];
        let with_value = (0..self.rows.len()).filter(|&row| value(row).is_some_and(|value| !value.is_nan()));
        with_value.reduce(|best, row| {
            let is_better =
                value(row).zip(value(best)).is_some_and(|(row, best)| better.is_better(row, best));
            if is_better { row } else { best }
        })
    }

    /// The table for people. The best value of a metric is marked with `*`.
    pub(crate) fn table(&self, now: Time) -> Table {
        let fixed = |names: [&str; 2]| names.map(str::to_owned);
        let mut headings = vec!["JOB".to_owned()];
        headings.extend(self.axes.iter().map(|axis| axis.to_uppercase()));
        headings.extend(fixed(["STATE", "RAN"]));
        headings.extend(self.metrics.iter().map(|metric| metric.title.to_uppercase()));
        headings.push("END".to_owned());
        let best: Vec<Option<usize>> = (0..self.metrics.len()).map(|metric| self.best(metric)).collect();
        let mut table = Table::new(headings);
        for (number, row) in self.rows.iter().enumerate() {
            let mut cells = vec![row.name.clone()];
            cells.extend(self.axes.iter().map(|axis| row.axis(axis)));
            cells.push(row.state.clone());
            cells.push(row.ran(now).unwrap_or_else(|| "-".to_owned()));
            cells.extend(row.metrics.iter().zip(&best).map(|(value, best)| {
                let mark = if *best == Some(number) { " *" } else { "" };
                value.map_or_else(|| "-".to_owned(), |value| format_number(value) + mark)
            }));
            cells.push(row.end());
            table.row(cells);
        }
        table
    }

    /// The rows for programs.
    pub(crate) fn json(&self) -> Value {
        self.rows.iter().map(|row| self.row_json(row)).collect()
    }

    fn row_json(&self, row: &ComparedJob) -> Value {
        let metrics = self.metrics.iter().zip(&row.metrics);
        let metrics = metrics.map(|(metric, value)| (metric.title.as_str(), value.map(MetricNumber)));
        let summary = row.job.as_ref().map(|(_, job)| &job.summary);
        let SweepCombination { number, values, .. } = &row.combination;
        SweepJob::new((&row.name, summary), (*number, values), &row.state, metrics.collect()).json()
    }

    /// The number of jobs in each state: `2 succeeded, 1 running`.
    pub(crate) fn counts(&self) -> String {
        count(self.rows.iter().map(|row| row.state.as_str()))
    }
}

impl ComparedJob {
    /// The value of an axis; a combination of `include` may have none.
    pub(crate) fn axis(&self, axis: &str) -> String {
        self.combination.text(axis).unwrap_or("-").to_owned()
    }

    /// How long it has run.
    pub(crate) fn ran(&self, now: Time) -> Option<String> {
        let (_, job) = self.job.as_ref()?;
        let ended = job.summary.ended.unwrap_or(now);
        job.summary.started.map(|started| format_duration(ended.since(started)))
    }

    /// Why it ended, unless it succeeded.
    pub(crate) fn end(&self) -> String {
        let job = self.job.as_ref().map(|(_, job)| &job.summary);
        let failed = job.filter(|job| job.state.is_final() && job.state != JobState::Succeeded);
        failed.map(|job| job.cause().to_owned()).unwrap_or_default()
    }
}

/// The jobs of a sweep of this host side by side, also those that were removed; none of another place.
pub(super) fn local(found: &NamedJobs, args: &MetricArgs) -> super::jobs::Result<Option<Comparison>> {
    if found.is_elsewhere() {
        return Ok(None);
    }
    let jobs = Jobs::open()?;
    let sweep = jobs.place.sweep(&found.id())?;
    Ok(sweep.map(|sweep| Comparison::gather(&jobs, &sweep, args)).transpose()?)
}

/// The number of jobs in each state: `2 succeeded, 1 running`.
pub(crate) fn count<'a>(states: impl Iterator<Item = &'a str>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for state in states {
        match counts.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    counts.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

/// The metrics to show: those of the command line, otherwise all that the jobs have reported.
pub(crate) fn choices<'a>(args: &MetricArgs, jobs: impl Iterator<Item = &'a JobDetail>) -> Vec<MetricChoice> {
    if !args.metric.is_empty() {
        return args.metric.clone();
    }
    let mut names: Vec<&str> = Vec::new();
    for metric in jobs.flat_map(|job| &job.metrics) {
        if !is_progress(&metric.name) && !names.contains(&metric.name.as_str()) {
            names.push(&metric.name);
        }
    }
    names.into_iter().map(|name| MetricChoice::Name(name.to_owned())).collect()
}

/// The metric that the logs of all jobs name, of those that name any, if the job file declares none: a loss rather than
/// others.
fn detected(rows: &[ComparedJob]) -> Option<String> {
    let jobs = rows.iter().filter_map(|row| row.job.as_ref());
    let names = jobs.map(|(directory, job)| JobMetrics::new(directory, job).detected_names());
    common(&names.filter(|names| !names.is_empty()).collect::<Vec<_>>())
}

fn common(of_jobs: &[Vec<String>]) -> Option<String> {
    let (first, others) = of_jobs.split_first()?;
    let common = first.iter().filter(|name| others.iter().all(|names| names.contains(name)));
    common.min_by_key(|name| rank(name)).cloned()
}

/// The rank of the last name that is a loss.
const LOSS: u8 = 1;

/// The order in which a detected metric is preferred: `loss`, other losses, the rest, learning rates.
fn rank(name: &str) -> u8 {
    let has = |part: &str| name.split(|c: char| !c.is_alphanumeric()).any(|known| known == part);
    match () {
        () if name == "loss" => 0,
        () if has("loss") => LOSS,
        () if has("lr") || has("rate") => 3,
        () => 2,
    }
}

/// Which values of a metric are better, where the job file says so.
fn better(choice: &MetricChoice, rows: &[ComparedJob]) -> Option<Better> {
    let MetricChoice::Name(name) = choice else { return None };
    rows.iter().find_map(|row| row.job.as_ref()?.1.metric(name)?.better)
}

/// The exit code of `jobc run` for an ended job.
pub(crate) fn exit_code(record: &Record) -> u8 {
    record.end.as_ref().map_or(RUNTIME_FAILURE_EXIT_CODE, |end| end.exit_code)
}

/// The exit code of a sweep of this many jobs, of those of its jobs: 0 if all succeeded, 130 if they were interrupted, 1
/// if one failed. That of a single job is its own.
pub(crate) fn overall_exit_code(codes: &[u8], jobs: usize) -> u8 {
    match () {
        () if codes.len() < jobs => RUNTIME_FAILURE_EXIT_CODE,
        () if codes.len() == 1 => codes[0],
        () if codes.iter().all(|code| *code == 0) => 0,
        () if codes.contains(&INTERRUPTED) => INTERRUPTED,
        () => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u32, values: &str, metric: Option<f64>) -> ComparedJob {
        ComparedJob {
            combination: SweepCombination::new(
                number,
                &serde_json::from_str(values).unwrap(),
                format!("tune-{number}.1").parse().unwrap(),
            ),
            name: format!("tune-{number}.1"),
            state: "removed".to_owned(),
            job: None,
            metrics: vec![metric],
        }
    }

    fn comparison(better: Option<Better>) -> Comparison {
        Comparison {
            name: "tune.1".to_owned(),
            axes: vec!["lr".to_owned(), "模型".to_owned()],
            metrics: vec![ComparedMetric {
                choice: MetricChoice::Name("loss".to_owned()),
                title: "loss".to_owned(),
                better,
            }],
            rows: vec![
                row(0, r#"{"lr": 0.1, "模型": "小"}"#, Some(0.5)),
                row(1, r#"{"lr": 1e-3, "模型": "大"}"#, Some(f64::NAN)),
                row(2, r#"{"lr": 5}"#, Some(0.25)),
                row(3, r#"{"lr": 6}"#, None),
            ],
        }
    }

    #[test]
    fn a_detected_metric_is_one_that_all_jobs_have_and_a_loss_first() {
        let chosen = |of_jobs: &[&[&str]]| {
            let names = |names: &&[&str]| names.iter().map(|&name| name.to_owned()).collect();
            common(&of_jobs.iter().map(names).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[&["lr", "acc", "val_loss", "loss"], &["loss", "lr"]]).as_deref(), Some("loss"));
        assert_eq!(chosen(&[&["lr", "acc", "val_loss"], &["val_loss", "acc"]]).as_deref(), Some("val_loss"));
        assert_eq!(chosen(&[&["learning_rate", "acc"]]).as_deref(), Some("acc"));
        assert_eq!(chosen(&[&["lr"]]).as_deref(), Some("lr"));
        assert_eq!(chosen(&[&["acc"], &["loss"]]), None);
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn combinations_are_rows_and_the_best_is_marked() {
        let table = comparison(Some(Better::Lower)).table(Time::from_millis(0)).render(None);
        assert_eq!(
            table,
            "JOB       LR     模型  STATE    RAN  LOSS    END\n\
             tune-0.1  0.1    小    removed  -    0.5\n\
             tune-1.1  0.001  大    removed  -    nan\n\
             tune-2.1  5      -     removed  -    0.25 *\n\
             tune-3.1  6      -     removed  -    -\n"
        );
        assert_eq!(comparison(Some(Better::Higher)).best(0), Some(0));
        assert_eq!(comparison(None).best(0), None);
        assert_eq!(comparison(None).counts(), "4 removed");
    }
}
