//! `jobc inspect`: prints the details of a job, at any place.

use std::process::ExitCode;

use jobc_place::job::JobDetail;
use jobc_place::output::InspectedJob;
use jobc_place::progress::Progress;
use jobc_place::time::{Time, format_ago, format_duration};
use jobc_place::verdict::Judgment;

use super::job_list::state_text;
use super::jobs::{Result, json_text};
use super::newest;
use super::searched::Searched;
use super::sweep::choices;
use super::tasks_table::tasks_table;
use crate::args::FormatArg;
use crate::runtime::args::jobs::InspectArgs;
use crate::runtime::args::metric::MetricArgs;
use crate::table::escape_control;
use crate::terminal;

/// Tasks that are listed; `jobc ps` lists all.
const MAX_TASKS: usize = 50;

pub(crate) fn run(args: &InspectArgs) -> Result<ExitCode> {
    let found = newest::named_or_newest(args.job.as_ref())?;
    let job = found.job()?;
    let detail = found.place.inspect(&job.name)?;
    found.note_reasons(&detail.summary, &detail.reasons);
    if args.output_args.format == FormatArg::Json {
        let more = found.place.more(&job.name)?;
        terminal::print(&json_text(&InspectedJob::new(&found.id_of(job), &detail, more).json()));
        return Ok(ExitCode::SUCCESS);
    }
    let id = found.id_of(job);
    let now = Time::now();
    let mut text = text_details(&id, &detail, now);
    let searched = Searched::of_detail(&found, detail);
    let detail = &searched.detail;
    if !detail.tasks.is_empty() {
        let metrics = choices(&MetricArgs::default(), std::iter::once(detail));
        let shown = &detail.tasks[..MAX_TASKS.min(detail.tasks.len())];
        text += &format!(
            "\n{}",
            tasks_table(&searched, shown, &metrics, now).render(terminal::columns_of_stdout())
        );
        if detail.tasks.len() > MAX_TASKS {
            text += &format!("... and {} more; `jobc ps {id}` lists all\n", detail.tasks.len() - MAX_TASKS);
        }
    }
    terminal::print(&(text + &earlier_attempts(detail)));
    Ok(ExitCode::SUCCESS)
}

fn text_details(id: &str, detail: &JobDetail, now: Time) -> String {
    let job = &detail.summary;
    let mut lines = vec![("job", id.to_owned())];
    let mut add = |what, text: Option<String>| lines.extend(text.map(|text| (what, text)));
    let moment = |time: Time| format!("{time} ({})", format_ago(time, now));
    add("description", job.description.clone());
    add("state", Some(state_text(job)));
    add("end", job.state.is_final().then(|| job.cause().to_owned()));
    add("exit code", job.end.as_ref().map(|end| end.exit_code.to_string()));
    let verdict = job.end.as_ref().and_then(|end| end.verdict.as_ref());
    add("verdict", verdict.map(|verdict| verdict.kind.to_string()));
    for text in verdict.iter().flat_map(|verdict| &verdict.evidence) {
        add("evidence", Some(text.clone()).filter(|text| !job.cause().contains(text.as_str())));
    }
    add("next", verdict.and_then(|verdict| verdict.next.clone()));
    add("object", Some(job.kind.clone()));
    add("tasks", (job.tasks.wanted > 1).then(|| job.tasks_text()));
    add("user", job.user.clone());
    add("source", job.source.as_ref().map(|source| source.display().to_string()));
    add("submitted", job.submitted.map(moment));
    add("started", job.started.map(moment));
    add("ended", job.ended.map(moment));
    add("ran", job.started.map(|time| format_duration(job.ended.unwrap_or(now).since(time))));
    let progress = Progress::of_job(&detail.metrics, &detail.tasks, now);
    add("progress", progress.map(|known| format!("{} ({} of {})", known.text(), known.done, known.total)));
    add("attempt", (detail.attempt > 1).then(|| detail.attempt.to_string()));
    lines.extend(detail.facts.iter().cloned());
    lines.extend(detail.notes.iter().map(|note| ("note", note.clone())));
    // The end says it already.
    let end = job.end_text();
    lines
        .extend(detail.reasons.iter().filter(|reason| **reason != end).map(|reason| ("why", reason.clone())));
    lines.retain(|(_, text)| !text.is_empty());
    lines.iter().map(|(what, text)| format!("{what:12} {}\n", escape_control(text))).collect()
}

/// The attempts before the last one, one per line.
fn earlier_attempts(detail: &JobDetail) -> String {
    let attempts =
        detail.tasks.iter().flat_map(|task| task.earlier.iter().map(move |attempt| (&task.task, attempt)));
    attempts
        .map(|(task, attempt)| {
            let end = attempt.end_text().unwrap_or_default();
            let verdict = attempt.verdict.as_ref().and_then(Judgment::of_failure);
            let verdict = verdict.map(|verdict| format!(" ({verdict})")).unwrap_or_default();
            format!("{task}, attempt {}: {}{verdict}\n", attempt.attempt, escape_control(&end))
        })
        .collect()
}
