//! The jobs of clusters: asked again after a while, so that a page that looks often does not ask them often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::limits::Limits;
use crate::local_jobs::Row;
use crate::own::Own;
use crate::workspace::Workspace;

/// How long an answer is shown before clusters are asked again.
const FRESH: Duration = Duration::from_secs(5);
/// How long a first answer is waited for.
const FIRST: Duration = Duration::from_secs(4);

/// A place that cannot be reached.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Unreachable {
    /// The place.
    place: String,
    /// Why.
    message: String,
}

/// What is known of the jobs of clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clusters {
    pub(crate) rows: Vec<Arc<Row>>,
    pub(crate) unreachable: Vec<Unreachable>,
    at: Option<Instant>,
}

/// The answer that is known, which one request at a time makes anew.
#[derive(Default)]
pub(crate) struct ClusterCache {
    known: std::sync::Mutex<Clusters>,
    asking: tokio::sync::Mutex<()>,
}

impl Clusters {
    /// What is known; the first time, what clusters answer in time.
    pub(crate) async fn latest(
        cache: &Arc<ClusterCache>,
        workspace: &Workspace,
        limits: &Arc<Limits>,
    ) -> Self {
        // Without a targets file, no cluster was chosen.
        if workspace.targets.is_none() {
            return Self::default();
        }
        let known = cache.known();
        if known.at.is_some_and(|at| at.elapsed() < FRESH) {
            return known;
        }
        let (cell, limits) = (Arc::clone(cache), Arc::clone(limits));
        let own = Own::about(workspace, "ps").words(&["--all", "--all-targets", "--format=json"]);
        let asking = tokio::spawn(async move {
            let Ok(_turn) = cell.asking.try_lock() else { return };
            let answer = Self::ask(own, &limits).await;
            *cell.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = answer;
        });
        if known.at.is_none() {
            let _ = tokio::time::timeout(FIRST, asking).await;
        }
        cache.known()
    }

    async fn ask(own: Own, limits: &Limits) -> Self {
        let finished = own.run(limits).await;
        let at = Some(Instant::now());
        let Ok(finished) = finished else { return Self { at, ..Self::default() } };
        let jobs: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
        let remote = jobs.as_array().into_iter().flatten().filter(|job| job["target"].is_string());
        let unreachable = finished.stderr.lines().filter_map(|line| {
            let (place, message) = line.split_once("target `")?.1.split_once("`: ")?;
            Some(Unreachable { place: place.to_owned(), message: message.to_owned() })
        });
        Self {
            rows: remote.filter_map(Row::parse).map(Arc::new).collect(),
            unreachable: unreachable.collect(),
            at,
        }
    }
}

impl ClusterCache {
    fn known(&self) -> Clusters {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
