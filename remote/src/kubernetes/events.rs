//! The events of a job: those of its object, of the objects below it, and of its pods.

mod follow;

use std::collections::BTreeSet;

use jobc_schema::percent::encode_segment;
use jobc_sys::error::Result;
use serde::Deserialize;

use super::client::Client;
use super::objects::{ClusterJob, children};
use super::pods::Pod;
use super::state::text;
use super::status::ApiError;
use super::watch::list;
use crate::place::Event;

pub(crate) use follow::follow;

/// Objects whose events are asked for one by one; of a larger job, the events of the namespace are read.
const MAX_EVENT_QUERIES: usize = 20;

/// Whether the events of a job with this number of tasks are requested one by one.
pub(crate) fn are_few(tasks: u64) -> bool {
    tasks < MAX_EVENT_QUERIES as u64
}

/// The fields of an event that are read.
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
    #[serde(default)]
    source: RawSource,
    #[serde(default)]
    reporting_component: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSource {
    component: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata {
    uid: String,
    creation_timestamp: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawObject {
    kind: String,
    name: String,
    uid: String,
}

impl RawEvent {
    /// Whether it is about an object of a run: names of its pods and Jobs begin with that of the run, which no other run
    /// has.
    fn is_of(&self, run: &str) -> bool {
        let object = &self.involved_object.name;
        object == run || object.strip_prefix(run).is_some_and(|rest| rest.starts_with('-'))
    }

    /// The identity of a report: its object in the API, and its count.
    fn identity(&self) -> (String, u64) {
        (self.metadata.uid.clone(), self.count.unwrap_or(1))
    }
}

/// An event with the component that reports it.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) event: Event,
    pub(crate) source: String,
}

/// The events of a job with these pods, the oldest first. Without its pods, as those of a large job, its events are found
/// among those of the namespace by the names of their objects.
pub(crate) fn of_job(client: &Client, found: &ClusterJob, pods: Option<&[Pod]>) -> Result<Vec<Observed>> {
    let path = format!("/api/v1/namespaces/{}/events", client.config().namespace);
    let mut uids: BTreeSet<String> = BTreeSet::from([found.uid().to_owned()]);
    if found.workload.has_jobset() {
        let children = children(client, found.name());
        uids.extend(children.iter().map(|child| text(child, "/metadata/uid").to_owned()));
    }
    uids.extend(pods.unwrap_or_default().iter().map(|pod| pod.metadata.uid.clone()));
    let failed = |error: ApiError| error.into_error("list events");
    let mut raw: Vec<RawEvent> = Vec::new();
    if pods.is_some() && uids.len() <= MAX_EVENT_QUERIES {
        for uid in &uids {
            let query = format!("fieldSelector={}", encode_segment(&format!("involvedObject.uid={uid}")));
            raw.extend(list::<RawEvent>(client, &path, &query).map_err(failed)?);
        }
    } else {
        raw = list(client, &path, "").map_err(failed)?;
        raw.retain(|event| uids.contains(&event.involved_object.uid) || event.is_of(found.name()));
    }
    let mut events: Vec<Observed> = raw.into_iter().map(Observed::from).collect();
    events.sort_by(|a, b| a.event.time.cmp(&b.event.time));
    Ok(events)
}

impl From<RawEvent> for Observed {
    fn from(raw: RawEvent) -> Self {
        let time = raw.last_timestamp.or(raw.event_time).unwrap_or(raw.metadata.creation_timestamp);
        let kind = raw.involved_object.kind.to_lowercase();
        let event = Event {
            time,
            object: format!("{kind}/{}", raw.involved_object.name),
            is_warning: raw.kind == "Warning",
            event: raw.reason,
            message: raw.message,
            count: raw.count.filter(|count| *count > 1),
            ..Event::default()
        };
        // Events of the newer API name a controller instead of a component.
        let source =
            if raw.source.component.is_empty() { raw.reporting_component } else { raw.source.component };
        Self { event, source }
    }
}
