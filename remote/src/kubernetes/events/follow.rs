//! The events of a job as they happen, until it ends.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use jobc_sys::error::{Error, Kind, Result};

use super::super::client::Client;
use super::super::lifecycle;
use super::super::objects::ClusterJob;
use super::super::watch::{Change, watch};
use super::{Observed, RawEvent};
use crate::place::EventOutput;

/// Events that come this long after the end of a job are still shown: components report with a delay.
const AFTER_END: Duration = Duration::from_secs(2);
/// Events on their way to the user.
const MAX_QUEUED: usize = 1024;

/// The reports of the two watches.
enum Item {
    Events(Vec<RawEvent>),
    /// The job ended, or cannot be watched.
    End(Result<()>),
}

/// Passes each event on once, and again when it has happened again.
pub(crate) fn follow(client: &Arc<Client>, found: ClusterJob, output: EventOutput<'_>) -> Result<()> {
    let (sender, receiver) = sync_channel(MAX_QUEUED);
    let name = found.name().to_owned();
    {
        let (client, sender) = (Arc::clone(client), sender.clone());
        spawn(move || watch_events(&client, &sender))?;
    }
    let of_job = Arc::clone(client);
    spawn(move || {
        let end = lifecycle::wait(&of_job, &found, &mut |_| ControlFlow::Continue(()));
        let _ = sender.send(Item::End(end.map(drop)));
    })?;
    let mut shown: BTreeMap<String, u64> = BTreeMap::new();
    let mut end = None;
    loop {
        let timeout =
            end.map_or(Duration::from_mins(1), |end: Instant| end.saturating_duration_since(Instant::now()));
        let events = match receiver.recv_timeout(timeout) {
            Ok(Item::Events(events)) => events,
            Ok(Item::End(Ok(()))) => {
                end = Some(Instant::now() + AFTER_END);
                continue;
            }
            Ok(Item::End(Err(error))) => return Err(error),
            Err(RecvTimeoutError::Timeout) if end.is_none() => continue,
            Err(_) => return Ok(()),
        };
        let own = events.into_iter().filter(|event| event.is_of(&name));
        let mut news: Vec<Observed> = own
            .filter(|event| {
                let (uid, count) = event.identity();
                let before = shown.insert(uid, count);
                before.is_none_or(|before| before < count)
            })
            .map(Observed::from)
            .collect();
        news.sort_by(|a, b| a.event.time.cmp(&b.event.time));
        for observed in news {
            if output(&observed.event).is_break() {
                return Ok(());
            }
        }
    }
}

fn watch_events(client: &Client, sender: &SyncSender<Item>) {
    let path = format!("/api/v1/namespaces/{}/events", client.config().namespace);
    let result = watch::<RawEvent>(client, &path, "", &mut |change| {
        let events = match change {
            Change::All(events) => events,
            Change::Changed(event) => vec![event],
            Change::Deleted(_) => vec![],
        };
        match sender.send(Item::Events(events)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    if let Err(error) = result {
        let _ = sender.send(Item::End(Err(error.into_error("follow events"))));
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("events".to_owned()).stack_size(256 << 10).spawn(work);
    thread.map(drop).map_err(|error| Error::new(Kind::System, format!("cannot create a thread: {error}")))
}
