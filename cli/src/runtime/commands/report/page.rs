//! The whole page.

use jobc_place::job::JobDetail;
use jobc_place::progress::Progress;
use jobc_place::state::JobState;
use jobc_place::time::Time;

use super::chart::format_run_time;
use super::data::{MAX_LOGS, ReportData};
use super::html::{escape, format_backticks, moment};
use super::{activity, curves, gpus, plots, provenance, selection, tables, timeline};
use crate::runtime::local_time::Zone;

/// The style, for light and dark mode.
const STYLE: &str = include_str!("report.css");

/// What the page may load and run: only its own style.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The whole page.
pub(super) fn page(facts: &ReportData) -> String {
    let mut out = head(&facts.title);
    out += &header(facts);
    let mut section = |title: &str, content: String| {
        if !content.is_empty() {
            out += &format!("<section>\n<h2>{title}</h2>\n{content}</section>\n");
        }
    };
    let logs = selection::select(&facts.job, MAX_LOGS, facts.end());
    section("Timeline", activity::activity(facts) + &legend() + &timeline::timeline(facts, &logs));
    section("Metrics", curves::of_job(facts));
    section("GPUs", gpus::gpus(facts));
    section("Resource use", plots::plots(facts));
    section("Tasks", tables::tasks(facts, &logs));
    section("Logs", tables::logs(facts, &logs));
    if facts.reported.is_none() {
        section("Command, host and job file", provenance::provenance(facts));
    }
    section("Events", tables::events(facts));
    let until = if facts.job.summary.state.is_final() { "" } else { ", while the job ran" };
    out + &foot(facts.now, &facts.zone, until)
}

/// The beginning of a page up to its content.
pub(super) fn head(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_SECURITY_POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} – jobc</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )
}

/// The end of a page, written at this moment.
pub(super) fn foot(now: Time, zone: &Zone, until: &str) -> String {
    format!(
        "</main>\n<footer>Written by jobc {} on {}{until}.</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        moment(now, zone)
    )
}

fn header(facts: &ReportData) -> String {
    let (detail, job) = (&facts.job, &facts.job.summary);
    let state = job.state.as_str();
    let mut out = format!(
        "<header>\n<h1>{} <span class=\"state {}\">{state}</span></h1>\n",
        escape(&facts.title),
        color(job.state)
    );
    if let Some(description) = &job.description {
        out += &format!("<p>{}</p>\n", escape(description));
    }
    if job.state.is_final() {
        out += &format!(
            "<p class=\"end {}\">{} <small>exit code {}</small></p>\n",
            color(job.state),
            format_backticks(&job.end_text()),
            job.exit_code()
        );
    }
    out += "<ul class=\"known\">\n";
    for (name, value) in header_fields(facts) {
        out += &format!("<li><small>{name}</small> <span>{value}</span></li>\n");
    }
    out += "</ul>\n";
    if !detail.notes.is_empty() {
        let notes: String =
            detail.notes.iter().map(|note| format!("<li>{}</li>\n", format_backticks(note))).collect();
        out += &format!("<ul class=\"notes\">\n{notes}</ul>\n");
    }
    out + "</header>\n"
}

/// `40%, 12 min left (400 of 1000)`.
fn progress_text(progress: &Progress) -> String {
    format!("{} ({} of {})", progress.text(), progress.done, progress.total)
}

/// Names, and values as HTML.
fn header_fields(facts: &ReportData) -> Vec<(&'static str, String)> {
    let (detail, job) = (&facts.job, &facts.job.summary);
    let moment = |time: Option<Time>| time.map(|time| moment(time, &facts.zone));
    let ran = job.started.map(|started| format_run_time(facts.end().since(started)));
    let attempt = (detail.attempt > 1).then(|| detail.attempt.to_string());
    let claimed = detail.fact("takes").map(escape);
    let progress = Progress::of_job(&detail.metrics, &detail.tasks, facts.now);
    let energy = Some(facts.usage.energy).filter(|energy| energy.millijoules().is_some());
    let cost = facts.usage.cost.as_ref().map(|cost| escape(&cost.text()));
    let all = [
        ("Tasks", Some(escape(&job.tasks_text()))),
        ("Submitted", moment(job.submitted)),
        ("Started", moment(job.started)),
        ("Ended", moment(job.ended)),
        ("Ran", ran),
        ("Progress", progress.map(|progress| escape(&progress_text(&progress)))),
        ("Energy", energy.map(|energy| escape(&energy.text()))),
        ("Cost", cost),
        ("Attempt of the job", attempt),
        ("Claimed", claimed),
        ("Limits not enforced", Some(unenforced(detail)).filter(|names| !names.is_empty())),
        ("Host", facts.origin.as_ref().map(|origin| escape(&origin.host.name))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The limits of any task that nothing enforces, in the words of the job file.
fn unenforced(detail: &JobDetail) -> String {
    let names = [("cpu_millis", "CPU"), ("memory_bytes", "memory"), ("pids", "processes")];
    let is_any = |key: &str| {
        let mut limits = detail.tasks.iter().flat_map(|task| &task.unenforced);
        limits.any(|known| known == key)
    };
    let names = names.into_iter().filter(|(key, _)| is_any(key)).map(|(_, name)| name);
    names.collect::<Vec<_>>().join(", ")
}

fn legend() -> String {
    let entries = [
        ("held", "created, waiting"),
        ("runs", "running"),
        ("good", "succeeded"),
        ("bad", "failed"),
        ("still", "stopped"),
    ];
    let entries = entries.map(|(class, words)| format!("<span><i class=\"{class}\"></i>{words}</span>"));
    format!("<p class=\"legend\">{}<span><i class=\"mark\"></i>ready</span></p>\n", entries.concat())
}

/// The class of a state.
pub(super) fn color(state: JobState) -> &'static str {
    match state {
        JobState::Succeeded => "good",
        JobState::Failed | JobState::TimedOut | JobState::Lost => "bad",
        JobState::Running | JobState::Preparing => "runs",
        _ => "still",
    }
}
