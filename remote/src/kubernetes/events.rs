//! The events of a job: those of its object, of the objects below it, and of its pods.

use std::collections::BTreeSet;

use jobc_sys::error::Result;
use serde::Deserialize;

use super::client::{Client, encode};
use super::objects::{ClusterJob, children};
use super::pods::Pod;
use super::state::text;
use super::status::ApiError;
use super::watch::list;
use crate::place::Event;

/// Objects whose events are asked for one by one; of a larger job, the events of the namespace are read.
const MAX_EVENT_QUERIES: usize = 20;

/// An event, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEvent {
    #[serde(default)]
    metadata: RawMetadata,
    #[serde(default)]
    involved_object: RawObject,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    count: Option<u64>,
    #[serde(default)]
    last_timestamp: Option<String>,
    #[serde(default)]
    event_time: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata {
    creation_timestamp: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawObject {
    kind: String,
    name: String,
    uid: String,
}

/// The events of a job with these pods, the oldest first.
pub(crate) fn of_job(client: &Client, found: &ClusterJob, pods: &[Pod]) -> Result<Vec<Event>> {
    let path = format!("/api/v1/namespaces/{}/events", client.config().namespace);
    let mut uids: BTreeSet<String> = BTreeSet::from([found.uid().to_owned()]);
    if found.workload.kind == "JobSet" {
        let children = children(client, found.name());
        uids.extend(children.iter().map(|child| text(child, "/metadata/uid").to_owned()));
    }
    uids.extend(pods.iter().map(|pod| pod.metadata.uid.clone()));
    let failed = |error: ApiError| error.into_error("list events");
    let mut raw: Vec<RawEvent> = Vec::new();
    if uids.len() <= MAX_EVENT_QUERIES {
        for uid in &uids {
            let query = format!("fieldSelector={}", encode(&format!("involvedObject.uid={uid}")));
            raw.extend(list::<RawEvent>(client, &path, &query).map_err(failed)?);
        }
    } else {
        raw = list(client, &path, "").map_err(failed)?;
        raw.retain(|event| uids.contains(&event.involved_object.uid));
    }
    let mut events: Vec<Event> = raw.into_iter().map(Event::from).collect();
    events.sort_by(|a, b| a.time.cmp(&b.time));
    Ok(events)
}

impl From<RawEvent> for Event {
    fn from(raw: RawEvent) -> Self {
        let time = raw.last_timestamp.or(raw.event_time).unwrap_or(raw.metadata.creation_timestamp);
        let kind = raw.involved_object.kind.to_lowercase();
        Self {
            time,
            object: format!("{kind}/{}", raw.involved_object.name),
            is_warning: raw.kind == "Warning",
            reason: raw.reason,
            message: raw.message,
            count: raw.count.unwrap_or(1),
        }
    }
}
