//! Holds a job back, or lets it go on: by the field of its kind, or by its Workload, where Kueue decides about that field.

use jobc_sys::error::{Error, Kind, Result};
use serde_json::json;

use super::client::{Client, MERGE};
use super::lifecycle;
use super::objects::ClusterJob;
use super::queue;
use super::state::{QUEUE, metadata};

/// Holds a job back or lets it go on. Its pods are deleted meanwhile, which is waited for.
pub(crate) fn hold(client: &Client, found: &ClusterJob, hold: bool) -> Result<()> {
    let what = format!("{} job `{}`", if hold { "pause" } else { "resume" }, found.name());
    let (path, change) = if metadata(&found.object, "labels", QUEUE).is_some() {
        let Some(workload) = queue::workload_path(client, found) else {
            let error = Error::new(Kind::State, format!("cannot {what}: Kueue has no Workload for it"));
            return Err(error.help("it may not be installed, or you may not read `workloads.kueue.x-k8s.io`"));
        };
        (workload, json!({"spec": {"active": !hold}}))
    } else if let Some(change) = found.workload.suspension(hold) {
        (found.path(&client.config().namespace), change)
    } else {
        let error = Error::new(
            Kind::Unsupported,
            format!("cannot {what}: a {} cannot be suspended", found.workload.shown()),
        );
        return Err(error.help("stop it, and submit it again later"));
    };
    client
        .patch(&format!("{path}?fieldManager=jobc"), MERGE, &change)
        .map_err(|error| error.into_error(&what))?;
    if hold { lifecycle::wait_for_pods(client, found, false) } else { Ok(()) }
}
