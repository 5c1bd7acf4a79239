//! Waits for the end of a job, and deletes it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use jobc_schema::percent::encode_segment;
use jobc_sys::error::{Error, Kind, Result};
use serde_json::{Value, json};

use super::client::Client;
use super::objects::{self, ClusterJob, summary};
use super::pods::Pod;
use super::state::text;
use super::watch::{Change, watch};
use super::why;
use crate::place::{JobProgress, JobState, JobSummary};

/// How long a deletion may take until its pods are gone, beside their grace period.
const DELETE_TIMEOUT: Duration = Duration::from_mins(2);
/// The shortest and the longest pause between two looks at a job that is being deleted.
const DELETE_INTERVALS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// The wait from which on a user is told what is waited for.
const NOTICE_DELAY: Duration = Duration::from_secs(2);

/// Waits for the end of a job with one watch; `progress` gets each new state, and can end the wait.
pub(crate) fn wait(
    client: &Client,
    found: &ClusterJob,
    progress: JobProgress<'_>,
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
        let of = |job: &JobSummary| (job.state, job.tasks, job.is_short);
        let is_new = of(&now) != of(&last);
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

/// Deletes a job with its pods. With `wait`, returns when it is gone and none of its pods runs any more: until then
/// they write to the outputs of the job.
pub(crate) fn delete(client: &Client, found: &ClusterJob, wait: bool) -> Result<()> {
    // By default, a deleted Job leaves its pods behind.
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": found.uid()},
    });
    match client.delete(&found.path(&client.config().namespace), &options) {
        Ok(()) => {}
        // Gone already, or another job of the same name is there.
        Err(error) if error.is(404) || error.is(409) => {}
        Err(error) => return Err(error.into_error(&format!("delete job `{}`", found.name()))),
    }
    if wait { wait_for_pods(client, found, true) } else { Ok(()) }
}

/// Waits until no pod of a deleted or suspended job runs any more, and says what it waits for. A deleted job goes, too.
pub(crate) fn wait_for_pods(client: &Client, found: &ClusterJob, is_deleted: bool) -> Result<()> {
    let (begun, mut grace, mut is_noticed) = (Instant::now(), Duration::ZERO, false);
    loop {
        let is_there = is_deleted && exists(client, found)?;
        let mut pods = objects::pods(client, found)?;
        pods.retain(|pod| !pod.has_ended());
        if !is_there && pods.is_empty() {
            return Ok(());
        }
        grace = pods.iter().map(Pod::grace).fold(grace, Duration::max);
        let waited = begun.elapsed();
        if waited > grace + DELETE_TIMEOUT {
            return Err(still_there(found, &pods, waited));
        }
        if waited > NOTICE_DELAY && !is_noticed {
            is_noticed = true;
            let what = if pods.is_empty() { "its object".to_owned() } else { why::names_with_nodes(&pods) };
            client.notice(&format!(
                "job `{}` is being {}; waiting for {what} to end (grace period {} s); Ctrl-C ends only the wait",
                found.name(),
                if is_deleted { "deleted" } else { "ended" },
                grace.as_secs()
            ));
        }
        std::thread::sleep((waited / 8).clamp(DELETE_INTERVALS[0], DELETE_INTERVALS[1]));
    }
}

/// Whether the very object of a job is still there.
fn exists(client: &Client, found: &ClusterJob) -> Result<bool> {
    let object: Option<Value> = client
        .find(&found.path(&client.config().namespace))
        .map_err(|error| error.into_error("read the job"))?;
    Ok(object.is_some_and(|object| text(&object, "/metadata/uid") == found.uid()))
}

fn still_there(found: &ClusterJob, pods: &[Pod], waited: Duration) -> Error {
    let job = format!("job `{}`", found.name());
    if pods.is_empty() {
        return Error::new(Kind::State, format!("{job} is being deleted, and is still there"))
            .help("a finalizer holds it; `kubectl describe` shows it");
    }
    let message = format!(
        "{job} was deleted, and after {} s still runs {}",
        waited.as_secs(),
        why::names_with_nodes(pods)
    );
    Error::new(Kind::State, message)
        .help("its node may be lost; a job with the same outputs would write to them at the same time")
}
