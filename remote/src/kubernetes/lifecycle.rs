//! Waits for the end of a job, and deletes it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use jobc_schema::percent::encode_segment;
use jobc_sys::error::{Error, Kind, Result};
use serde_json::{Value, json};

use super::client::Client;
use super::objects::{ClusterJob, summary};
use super::state::text;
use super::watch::{Change, watch};
use crate::place::{JobState, JobSummary};

/// How long a deletion may take until its pods are gone.
const DELETE_TIMEOUT: Duration = Duration::from_mins(2);

/// Waits for the end of a job with one watch; `progress` gets each new state, and can end the wait.
pub(crate) fn wait(
    client: &Client,
    found: &ClusterJob,
    progress: &mut dyn FnMut(&JobSummary) -> ControlFlow<()>,
) -> Result<Option<JobSummary>> {
    let mut last = summary(client, found);
    if progress(&last).is_break() {
        return Ok(None);
    }
    if last.state.is_final() {
        return Ok(Some(last));
    }
    let wanted = last.name.clone();
    let query = format!("fieldSelector={}", encode_segment(&format!("metadata.name={wanted}")));
    let mut end = None;
    let mut look = |object: Option<Value>| {
        let same = object.filter(|object| text(object, "/metadata/uid") == found.uid());
        let now = match same {
            Some(object) => summary(client, &ClusterJob { workload: found.workload, object }),
            None => JobSummary { state: JobState::Stopped, reason: None, message: None, ..last.clone() },
        };
        let is_new = (now.state, now.tasks) != (last.state, last.tasks);
        last = now;
        if is_new && progress(&last).is_break() {
            return ControlFlow::Break(());
        }
        if last.state.is_final() {
            end = Some(last.clone());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    watch::<Value>(client, &found.workload.path(&client.config().namespace), &query, &mut |change| {
        match change {
            Change::All(mut objects) => look(objects.pop()),
            Change::Changed(object) => look(Some(object)),
            Change::Deleted(_) => look(None),
        }
    })
    .map_err(|error| error.into_error(&format!("wait for job `{wanted}`")))?;
    Ok(end)
}

/// Deletes a job with its pods, and waits until it is gone.
pub(crate) fn delete(client: &Client, found: &ClusterJob) -> Result<()> {
    let (uid, path) = (found.uid(), found.path(&client.config().namespace));
    // By default, a deleted Job leaves its pods behind.
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid},
    });
    match client.delete(&path, &options) {
        Ok(()) => {}
        // Gone already, or another job of the same name is there.
        Err(error) if error.is(404) || error.is(409) => return Ok(()),
        Err(error) => return Err(error.into_error(&format!("delete job `{}`", found.name()))),
    }
    let deadline = Instant::now() + DELETE_TIMEOUT;
    while client
        .find::<Value>(&path)
        .map_err(|error| error.into_error("read the job"))?
        .is_some_and(|object| text(&object, "/metadata/uid") == uid)
    {
        if Instant::now() > deadline {
            return Err(Error::new(
                Kind::State,
                format!("job `{}` is being deleted, and is still there", found.name()),
            )
            .help("a finalizer holds it; `kubectl describe` shows it"));
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    Ok(())
}
