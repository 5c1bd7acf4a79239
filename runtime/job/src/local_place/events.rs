//! The events of a job of this host, as every place shows them.

use std::time::Duration;

use jobc_place::event::{Event, EventOutput};
use jobc_sys::error::{AtPath as _, Result};
use serde_json::Value;

use crate::directory::Directory;
use crate::event::{self, Kind};
use crate::logs::Watch;

/// Maximum time to sleep: inotify reports changes of files, but not on every file system.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// Reads what there is, and with `follow`, which says whether the job has ended, what comes until then.
pub(crate) fn read(
    directory: &Directory,
    follow: Option<&dyn Fn() -> Result<bool>>,
    output: EventOutput<'_>,
) -> Result<()> {
    let mut reader = event::Reader::new(directory);
    let mut watch = Watch::new(follow.map(|_| directory.record.clone()));
    loop {
        // What was written before the end is read after it.
        let is_last = follow.map_or(Ok(true), |has_ended| has_ended())?;
        let events = reader.read().at_path("read", directory.events_file())?;
        for event in events {
            if output(&shown(&event)).is_break() {
                return Ok(());
            }
        }
        if is_last {
            return Ok(());
        }
        watch.wait(&[], MAX_SLEEP).at_path("watch", &directory.record)?;
    }
}

const WARNINGS: [Kind; 5] =
    [Kind::NotReady, Kind::OomKilled, Kind::GpuFault, Kind::ClockSet, Kind::ClaimLost];

fn shown(event: &event::Event) -> Event {
    let word = serde_json::to_value(event.event).ok();
    let has_failed = event.detail["exit_code"].as_u64().is_some_and(|code| code != 0);
    Event {
        time: event.time.to_string(),
        event: word.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
        task: event.task.as_ref().map(ToString::to_string),
        attempt: event.attempt,
        is_warning: has_failed || WARNINGS.contains(&event.event),
        message: event::describe(event),
        detail: event.detail.clone(),
        ..Event::default()
    }
}
