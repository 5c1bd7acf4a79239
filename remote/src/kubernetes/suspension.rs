//! Holds a job back, lets it go on, or stops it: by the field of its kind, or by its Workload, where Kueue decides about
//! that field.

use std::time::SystemTime;

use jobc_sys::error::{Error, Kind, Result};
use serde_json::{Value, json};

use super::client::{Client, MERGE};
use super::lifecycle;
use super::objects::{self, ClusterJob};
use super::queue;
use super::state::{QUEUE, STOPPED, metadata};

/// Holds a job back or lets it go on. Its pods are deleted meanwhile, which is waited for.
pub(crate) fn hold(client: &Client, found: &ClusterJob, hold: bool) -> Result<()> {
    let what = format!("{} job `{}`", if hold { "pause" } else { "resume" }, found.name());
    match suspend(client, found, hold, &what)? {
        Suspension::Done => {}
        Suspension::NoWorkload => {
            let error = Error::new(Kind::State, format!("cannot {what}: Kueue has no Workload for it"));
            return Err(error.help("it may not be installed, or you may not read `workloads.kueue.x-k8s.io`"));
        }
        Suspension::Unsupported => {
            let kind = found.workload.shown();
            let error = Error::new(Kind::Unsupported, format!("cannot {what}: a {kind} cannot be suspended"));
            return Err(error.help("stop it, and submit it again later"));
        }
    }
    if hold { lifecycle::wait_for_pods(client, found, false) } else { Ok(()) }
}

/// Stops a job, whose object stays as its record where its kind can be suspended. Other objects are deleted.
pub(crate) fn stop(client: &Client, found: &ClusterJob, wait: bool) -> Result<()> {
    let what = format!("stop job `{}`", found.name());
    // The mark comes first: without it the job would only be paused.
    let at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mark = json!({"metadata": {"uid": found.uid(), "annotations": {STOPPED: at}}});
    let is_queued = metadata(&found.object, "labels", QUEUE).is_some();
    if !is_queued && found.workload.suspend.is_none() || !change(client, found, &mark, &what)? {
        return lifecycle::delete(client, found, wait);
    }
    match suspend(client, found, true, &what)? {
        Suspension::Done if wait => lifecycle::wait_for_pods(client, found, false),
        Suspension::Done => Ok(()),
        // Kueue would let it run later.
        Suspension::NoWorkload | Suspension::Unsupported => lifecycle::delete(client, found, wait),
    }
}

/// Stops a job, and has its pods killed at once.
pub(crate) fn kill(client: &Client, found: &ClusterJob) -> Result<()> {
    stop(client, found, false)?;
    let what = format!("kill job `{}`", found.name());
    for pod in objects::pods(client, found)?.iter().filter(|pod| !pod.has_ended()) {
        let path = format!("/api/v1/namespaces/{}/pods/{}", client.config().namespace, pod.metadata.name);
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}});
        match client.delete(&path, &options) {
            Err(error) if !error.is(404) && !error.is(409) => return Err(error.into_error(&what)),
            _ => {}
        }
    }
    lifecycle::wait_for_pods(client, found, false)
}

/// The result of a suspension.
enum Suspension {
    Done,
    /// Kueue does not know the job yet, or is not there.
    NoWorkload,
    /// The kind cannot be suspended.
    Unsupported,
}

fn suspend(client: &Client, found: &ClusterJob, suspend: bool, what: &str) -> Result<Suspension> {
    if metadata(&found.object, "labels", QUEUE).is_some() {
        let Some(path) = queue::workload_path(client, found) else { return Ok(Suspension::NoWorkload) };
        let activity = json!({"spec": {"active": !suspend}});
        client
            .patch(&format!("{path}?fieldManager=jobc"), MERGE, &activity)
            .map_err(|error| error.into_error(what))?;
        return Ok(Suspension::Done);
    }
    let Some(suspension) = found.workload.suspension(suspend) else { return Ok(Suspension::Unsupported) };
    change(client, found, &suspension, what)?;
    Ok(Suspension::Done)
}

/// Changes the object of a job; returns whether it is still there.
fn change(client: &Client, found: &ClusterJob, patch: &Value, what: &str) -> Result<bool> {
    let address = format!("{}?fieldManager=jobc", found.path(&client.config().namespace));
    match client.patch(&address, MERGE, patch) {
        Ok(_) => Ok(true),
        // Gone already, or another job of the same name is there.
        Err(error) if error.is(404) || error.is(409) => Ok(false),
        Err(error) => Err(error.into_error(what)),
    }
}
