//! The page of a sweep: its jobs side by side, and each metric over each axis.

use std::collections::BTreeMap;

use jobc_job::directory::Directory;
use jobc_job::logs::{LineFilter, Reader};
use jobc_job::metric_choice::{JobMetrics, MetricChoice};
use jobc_job::metric_history::HistoryValue;
use jobc_job::user_metrics::format_number;
use jobc_place::logs::Line;
use jobc_place::state::JobState;
use jobc_place::task::TaskStatus;
use jobc_place::time::Time;
use jobc_schema::metric::Better;
use jobc_sys::id::TaskId;

use super::super::follow::job_end::JobEnd;
use super::super::sweep::{ComparedJob, Comparison};
use super::axis_plot;
use super::curves::{self, Curve};
use super::data::MAX_HISTORY_BYTES;
use super::html::{Cell, escape, format_backticks, moment, not_shown, table};
use super::page::{color, foot, head};
use crate::runtime::local_time::Zone;

/// Maximum number of jobs in the table.
const MAX_ROWS: usize = 10_000;

/// Maximum number of failed jobs whose last output is shown.
const MAX_FAILURES: usize = 50;

/// Last lines of each task of such a job.
const LAST_LINES: u64 = 10;

/// Maximum number of plots.
const MAX_PLOTS: usize = 48;

/// What the page shows besides the comparison.
pub(super) struct SweepData {
    /// The values of each metric: of each job a list.
    pub histories: Vec<Vec<JobHistory>>,
    /// Reports of jobs next to the page, by job.
    pub reports: BTreeMap<String, String>,
    pub now: Time,
    pub zone: Zone,
}

/// The values of a metric of a job.
pub(super) struct JobHistory {
    /// The place of the job in the comparison.
    pub row: usize,
    pub values: Vec<HistoryValue>,
}

impl SweepData {
    /// Reads the values of all metrics. `reports` finds the report of a job.
    pub(super) fn gather(comparison: &Comparison, reports: &dyn Fn(&str) -> Option<String>) -> Self {
        let choices: Vec<MetricChoice> =
            comparison.metrics.iter().map(|metric| metric.choice.clone()).collect();
        let mut histories: Vec<Vec<JobHistory>> = choices.iter().map(|_| vec![]).collect();
        let mut bytes_left = MAX_HISTORY_BYTES;
        for (row, job) in comparison.rows.iter().enumerate() {
            let Some((directory, detail)) = &job.job else { continue };
            let of_job = JobMetrics::new(directory, detail).histories(&choices, &mut bytes_left);
            for (metric, histories) in histories.iter_mut().enumerate() {
                // Of several tasks, the one with the most values.
                let of_metric = of_job.iter().filter(|history| history.metric == metric);
                if let Some(longest) = of_metric.max_by_key(|history| history.values.len()) {
                    histories.push(JobHistory { row, values: longest.values.clone() });
                }
            }
        }
        let jobs = comparison.rows.iter().map(|row| &row.name);
        let reports = jobs.filter_map(|job| Some((job.clone(), reports(job)?))).collect();
        Self { histories, reports, now: Time::now(), zone: Zone::local() }
    }
}

/// The whole page.
///
/// `source` is where it is from: what kind of place, and its name.
pub(super) fn page(comparison: &Comparison, source: (&str, &str), data: &SweepData) -> String {
    let mut out = head(&comparison.name);
    out += &header(comparison, source, &data.zone);
    let mut section = |title: &str, content: String| {
        if !content.is_empty() {
            out += &format!("<section>\n<h2>{title}</h2>\n{content}</section>\n");
        }
    };
    section("Jobs", jobs(comparison, data));
    section("Metrics", curves(comparison, data));
    section("Metrics by value", plots(comparison));
    section("Failures", failures(comparison));
    let running = comparison
        .rows
        .iter()
        .any(|row| row.job.as_ref().is_some_and(|(_, job)| !job.summary.state.is_final()));
    out + &foot(data.now, &data.zone, if running { ", while the sweep ran" } else { "" })
}

fn header(comparison: &Comparison, source: (&str, &str), zone: &Zone) -> String {
    let mut out = format!("<header>\n<h1>{}</h1>\n<ul class=\"known\">\n", escape(&comparison.name));
    let mut fact = |name: &str, html: &str| {
        out += &format!("<li><small>{}</small> <span>{html}</span></li>\n", escape(name));
    };
    fact("Jobs", &escape(&comparison.counts()));
    fact(source.0, &escape(source.1));
    let jobs = || comparison.rows.iter().filter_map(|row| row.job.as_ref()).map(|(_, job)| &job.summary);
    if let Some(submitted) = jobs().filter_map(|job| job.submitted).min() {
        fact("Submitted", &moment(submitted, zone));
    }
    let is_over = jobs().all(|job| job.state.is_final());
    if let Some(ended) = jobs().filter_map(|job| job.ended).max().filter(|_| is_over) {
        fact("Ended", &moment(ended, zone));
    }
    for (number, metric) in comparison.metrics.iter().enumerate() {
        let Some(best) = comparison.best(number) else { continue };
        let word = if metric.better == Some(Better::Lower) { "Lowest" } else { "Highest" };
        let row = &comparison.rows[best];
        let value = row.metrics[number].map(format_number).unwrap_or_default();
        let values = escape(&values(comparison, row));
        fact(&format!("{word} {}", metric.title), &format!("{value} with {values}"));
    }
    out + "</ul>\n</header>\n"
}

fn jobs(comparison: &Comparison, data: &SweepData) -> String {
    let mut headings = vec!["Job"];
    headings.extend(comparison.axes.iter().map(String::as_str));
    headings.extend(["State", "Ran"]);
    headings.extend(comparison.metrics.iter().map(|metric| metric.title.as_str()));
    headings.push("Why");
    let best: Vec<Option<usize>> =
        (0..comparison.metrics.len()).map(|metric| comparison.best(metric)).collect();
    let rows: Vec<Vec<Cell>> = comparison
        .rows
        .iter()
        .take(MAX_ROWS)
        .enumerate()
        .map(|(number, row)| {
            let mut cells = vec![name(row, data)];
            cells.extend(comparison.axes.iter().map(|axis| Cell::number(&row.axis(axis))));
            cells.push(Cell::html(format!("<span class=\"state {}\">{}</span>", row_color(row), row.state)));
            cells.push(Cell::number(&row.ran(data.now).unwrap_or_default()));
            cells.extend(row.metrics.iter().zip(&best).map(|(value, best)| {
                let value = value.map(format_number).unwrap_or_default();
                if *best == Some(number) {
                    Cell::number_html(format!("<strong>{}</strong> best", escape(&value)))
                } else {
                    Cell::number(&value)
                }
            }));
            cells.push(Cell::html(format_backticks(&row.end())));
            cells
        })
        .collect();
    table("Jobs", &headings, &rows) + &not_shown(comparison.rows.len().saturating_sub(MAX_ROWS), "jobs")
}

/// The job, with a link to its report, or if there is none and it failed, to its last output.
fn name(row: &ComparedJob, data: &SweepData) -> Cell {
    let report = data.reports.get(&row.name).map(|report| escape(report));
    let id = escape(&row.name);
    Cell::number_html(match report {
        Some(report) => format!("<a href=\"{report}\">{id}</a>"),
        None if is_failed(row) => format!("<a href=\"#end-{id}\">{id}</a>"),
        None => id,
    })
}

/// The values of a job: `lr=0.1, seed=2`.
fn values(comparison: &Comparison, row: &ComparedJob) -> String {
    let values = comparison.axes.iter().map(|axis| format!("{axis}={}", row.axis(axis)));
    values.collect::<Vec<_>>().join(", ")
}

/// The values of each metric over time, a line for each job.
fn curves(comparison: &Comparison, data: &SweepData) -> String {
    let metrics = comparison.metrics.iter().zip(&data.histories).enumerate();
    let metrics: Vec<(&str, Vec<Curve<'_>>)> = metrics
        .map(|(number, (metric, histories))| {
            let best = comparison.best(number);
            let mut curves: Vec<Curve<'_>> = histories
                .iter()
                .map(|history| {
                    let row = &comparison.rows[history.row];
                    let job = row.job.as_ref().map(|(_, job)| &job.summary);
                    Curve {
                        name: values(comparison, row),
                        values: &history.values,
                        begin: job.and_then(|job| job.started.or(job.submitted)).unwrap_or(data.now),
                        is_best: best == Some(history.row),
                    }
                })
                .collect();
            if curves.len() > curves::MAX_LINES {
                // The best is drawn in any case.
                curves.sort_by_key(|curve| !curve.is_best);
            }
            (metric.title.as_str(), curves)
        })
        .collect();
    curves::of_sweep(&metrics)
}

fn is_failed(row: &ComparedJob) -> bool {
    let state = row.job.as_ref().map(|(_, job)| job.summary.state);
    matches!(state, Some(JobState::Failed | JobState::TimedOut | JobState::Lost))
}

fn row_color(row: &ComparedJob) -> &'static str {
    row.job.as_ref().map_or("still", |(_, job)| color(job.summary.state))
}

/// A plot of each metric over each axis.
fn plots(comparison: &Comparison) -> String {
    let mut out = String::new();
    let mut count = 0;
    for (number, metric) in comparison.metrics.iter().enumerate() {
        let best = comparison.best(number);
        for axis in &comparison.axes {
            let points = comparison.rows.iter().enumerate().filter_map(|(place, row)| {
                let value = row.metrics[number].filter(|value| value.is_finite())?;
                Some(axis_plot::Point {
                    category: row.axis(axis),
                    value,
                    name: values(comparison, row),
                    is_best: best == Some(place),
                })
            });
            let points: Vec<axis_plot::Point> = points.collect();
            if count < MAX_PLOTS {
                let plot = axis_plot::plot(&metric.title, axis, &points);
                count += usize::from(!plot.is_empty());
                out += &plot;
            }
        }
    }
    curves::grid(&out)
}

/// How failed jobs ended, with the last lines of the task that decided it.
fn failures(comparison: &Comparison) -> String {
    let failed: Vec<&ComparedJob> = comparison.rows.iter().filter(|row| is_failed(row)).collect();
    let mut out = String::new();
    for row in failed.iter().take(MAX_FAILURES) {
        let Some((directory, job)) = &row.job else { continue };
        let end = JobEnd::new(directory, &job.summary, &job.tasks);
        let output = end.as_ref().and_then(JobEnd::last_output).map(|output| output.lines(true));
        let lines = output.unwrap_or_else(|| last_lines(directory, &job.tasks));
        out += &format!(
            "<details id=\"end-{0}\"><summary>{0}: {1}</summary>\n<pre class=\"file\" role=\"region\" aria-label=\"Last output of {0}\" tabindex=\"0\">{2}</pre></details>\n",
            escape(&row.name),
            format_backticks(&row.end()),
            escape(&lines.join("\n")),
        );
    }
    out + &not_shown(failed.len().saturating_sub(MAX_FAILURES), "failed jobs")
}

/// The last lines of the tasks of a job of which it is not known which one decided its end.
fn last_lines(directory: &Directory, tasks: &[TaskStatus]) -> Vec<String> {
    let tasks: Vec<&TaskId> = tasks.iter().map(|task| &task.task).collect();
    let logs = tasks.iter().map(|task| directory.logs(task));
    let mut reader = Reader::new(logs, LineFilter::default().tail(Some(LAST_LINES)));
    let mut lines = Vec::new();
    let mut each = |number: usize, line: &Line<'_>| {
        lines.push(format!("{}: {}", tasks[number], String::from_utf8_lossy(line.text)));
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::commands::sweep::ComparedMetric;
    use jobc_job::sweep::SweepCombination;

    #[test]
    fn a_sweep_is_compared_and_nothing_in_it_is_markup() {
        let row = |number: u32, lr: f64, loss: Option<f64>| ComparedJob {
            combination: SweepCombination::new(
                number,
                &serde_json::from_value(serde_json::json!({"lr": lr, "<b>": "<i>"})).unwrap(),
                format!("tune-{number}.1").parse().unwrap(),
            ),
            name: format!("tune-{number}.1"),
            state: "removed".to_owned(),
            job: None,
            metrics: vec![loss],
        };
        let comparison = Comparison {
            name: "tune.1".to_owned(),
            axes: vec!["lr".to_owned(), "<b>".to_owned()],
            metrics: vec![ComparedMetric {
                choice: MetricChoice::Name("loss".to_owned()),
                title: "loss".to_owned(),
                better: Some(Better::Lower),
            }],
            rows: vec![row(0, 0.1, Some(0.5)), row(1, 0.01, Some(0.25)), row(2, 0.001, None)],
        };
        let value = |step: f64, value: f64| HistoryValue {
            value,
            time: None,
            attempt: 1,
            counts: [Some(step), None, None, None],
        };
        let history = |row: usize| JobHistory { row, values: vec![value(1.0, 2.0), value(2.0, 0.5)] };
        let data = SweepData {
            histories: vec![vec![history(0), history(1)]],
            reports: BTreeMap::from([("tune-0.1".to_owned(), "tune-0.1.html".to_owned())]),
            now: Time::from_millis(0),
            zone: Zone::fixed(1),
        };
        let page = page(&comparison, ("Job file", "/home/me/job.yaml"), &data);
        for text in [
            "<title>tune.1 – jobc</title>",
            "<small>Lowest loss</small> <span>0.25 with lr=0.01, &lt;b&gt;=&lt;i&gt;</span>",
            "<td class=\"n\"><strong>0.25</strong> best</td>",
            "<figcaption>loss by lr</figcaption>",
            "3 removed",
            "<a href=\"tune-0.1.html\">tune-0.1</a>",
            "<desc>loss by step of 2 jobs</desc>",
            "lr=0.01, &lt;b&gt;=&lt;i&gt; (best)",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
        assert!(!page.contains("<i>") && !page.contains("<b>"), "{page}");
        assert!(!page.contains("<figcaption>loss by &lt;b&gt;"), "an axis with one value is no comparison");
    }
}
