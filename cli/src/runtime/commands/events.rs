//! `jobc events`: prints the events of a job, at any place.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::ExitCode;

use jobc_place::event::Event;

use super::follow::output::{OutputStream, OutputStreams, or_exit};
use super::jobs::Result;
use super::newest;
use crate::args::FormatArg;
use crate::runtime::args::watch::EventsArgs;
use crate::table::escape_control;

pub(crate) fn run(args: &EventsArgs) -> Result<ExitCode> {
    let found = newest::named_or_newest(args.job.as_ref())?;
    let job = found.job()?;
    if args.job.is_none() {
        newest::show_choice(&found.id(), job.state.as_str());
    }
    let mut outputs = OutputStreams::new(false);
    let is_json = args.lines.format == FormatArg::Json;
    let mut show = |event: &Event, width: usize| {
        let line =
            if is_json { serde_json::to_string(event).unwrap_or_default() } else { text(event, width) };
        let written = outputs.select(OutputStream::Stdout).map(|out| writeln!(out, "{line}"));
        or_exit(written.and_then(|written| written));
        if args.follow {
            or_exit(outputs.flush());
        }
    };
    if args.follow {
        let known = found.place.events(&job.name).unwrap_or_default();
        let mut width = known.iter().map(|event| subject(event).len()).max().unwrap_or_default();
        let mut each = |event: &Event| {
            width = width.max(subject(event).len());
            show(event, width);
            ControlFlow::Continue(())
        };
        found.place.follow_events(&job.name, &mut each)?;
    } else {
        let events = found.place.events(&job.name)?;
        let width = events.iter().map(|event| subject(event).len()).max().unwrap_or_default();
        for event in &events {
            show(event, width);
        }
    }
    or_exit(outputs.flush());
    Ok(ExitCode::SUCCESS)
}

/// What an event is about: a task, or an object of a cluster; nothing of the job itself.
fn subject(event: &Event) -> &str {
    event.task.as_deref().filter(|_| event.object.is_empty()).unwrap_or(&event.object)
}

/// One event per line, with what it is about padded to the longest name:
/// `2026-11-21T13:31:53.250Z  worker-0  started  process 4711`.
fn text(event: &Event, width: usize) -> String {
    let attempt = event.attempt.filter(|&attempt| attempt > 1).map(|attempt| format!("attempt {attempt}"));
    let message = Some(event.message.clone()).filter(|message| !message.is_empty());
    let words = [attempt, message].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let times = event.count.map(|count| format!(" ({count} times)")).unwrap_or_default();
    let line = format!("{}  {:width$}  {:13}  {words}{times}", event.time, subject(event), event.event);
    escape_control(line.trim_end())
}
