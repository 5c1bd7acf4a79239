//! `/jobs`: the list.

use std::sync::Arc;

use jobc_place::state::JobState;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::call::Call;
use crate::clusters::{Clusters, Unreachable};
use crate::endpoint::{Endpoint, handler, schema};
use crate::local_jobs::Row;
use crate::own::Own;
use crate::problem::Problem;
use crate::reply::{Answer, typed};

/// Jobs of an answer.
const DEFAULT_LIMIT: u32 = 100;
/// The most that can be asked for.
const MAX_LIMIT: u32 = 10_000;

/// Which jobs are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobsQuery {
    /// `local`, or the name of a target [default: all places].
    #[serde(default)]
    pub(crate) place: Option<String>,
    /// States, with commas between; `active` and `ended` stand for several [default: all].
    #[serde(default)]
    pub(crate) state: Option<String>,
    /// Words that the name, the description or the cause contains.
    #[serde(default)]
    pub(crate) q: Option<String>,
    /// Only jobs of this sweep.
    #[serde(default)]
    pub(crate) sweep: Option<String>,
    /// How many [default: 100].
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) limit: Option<u32>,
    /// `next` of the answer before.
    #[serde(default)]
    pub(crate) after: Option<String>,
}

/// A page of the list.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema: the rows are text already")]
struct JobsPage {
    /// Jobs, the newest first, as `jobc ps --format json` prints them.
    jobs: Vec<serde_json::Map<String, Value>>,
    /// What `after` is for the next page; null on the last.
    next: Option<String>,
    /// How many jobs there are on all pages.
    total: usize,
    /// Places that cannot be reached.
    unreachable: Vec<Unreachable>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/jobs", "list_jobs", "List jobs", handler!(list))
            .query(schema::<JobsQuery>)
            .answer(schema::<JobsPage>),
    ]
}

async fn list(call: Call) -> Answer {
    let query: JobsQuery = call.query()?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_LIMIT}")));
    }
    let states = states(query.state.as_deref())?;
    let words = query.q.as_deref().unwrap_or_default().to_lowercase();
    let (rows, unreachable) = match query.place.as_deref() {
        None => all_rows(&call).await?,
        Some("local") => (local_rows(&call).await?, vec![]),
        Some(target) => (remote_rows(&call, target).await?, vec![]),
    };
    let (server, actor) = (&call.server, &call.actor);
    let is_shown = |row: &&Arc<Row>| {
        let owned = |job: &str| server.owners.is_of(&actor.user, job);
        (actor.is_operator || owned(&row.id) || row.sweep.as_deref().is_some_and(owned))
            && states.as_ref().is_none_or(|states| states.contains(&row.state))
            && query.sweep.as_ref().is_none_or(|sweep| row.sweep.as_ref() == Some(sweep))
            && row.has(&words)
    };
    let shown: Vec<&Arc<Row>> = rows.iter().filter(is_shown).collect();
    let start = match &query.after {
        None => 0,
        Some(after) => shown.iter().position(|row| row.id == *after).map_or(shown.len(), |at| at + 1),
    };
    let page = &shown[start..shown.len().min(start + limit as usize)];
    let next = page.last().filter(|_| start + page.len() < shown.len()).map(|row| row.id.as_str());
    let mut text = String::with_capacity(page.iter().map(|row| row.json.len() + 1).sum::<usize>() + 100);
    text.push_str("{\"jobs\":[");
    for (number, row) in page.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&row.json);
    }
    let (next, unreachable) = (serde_json::json!(next), serde_json::json!(unreachable));
    text.push_str(&format!("],\"next\":{next},\"total\":{},\"unreachable\":{unreachable}}}", shown.len()));
    Ok(typed("application/json", text))
}

/// The states of a filter.
fn states(text: Option<&str>) -> Result<Option<Vec<JobState>>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let all = [
        JobState::Queued,
        JobState::Suspended,
        JobState::Pending,
        JobState::Preparing,
        JobState::Running,
        JobState::Paused,
        JobState::Stopping,
        JobState::Succeeded,
        JobState::Failed,
        JobState::TimedOut,
        JobState::Stopped,
        JobState::Lost,
    ];
    let mut states = vec![];
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let before = states.len();
        states.extend(all.into_iter().filter(|state| match word {
            "active" => !state.is_final(),
            "ended" => state.is_final(),
            word => state.as_str() == word,
        }));
        if states.len() == before {
            let known: Vec<&str> =
                all.iter().map(|state| state.as_str()).chain(["active", "ended"]).collect();
            return Err(Problem::bad_request(format!("unknown state `{}`", word.escape_debug()))
                .hint(format!("the states are {}", known.join(", "))));
        }
    }
    Ok(Some(states))
}

/// The jobs of this host.
///
/// # Errors
/// Their directories cannot be read.
pub(crate) async fn local_rows(call: &Call) -> Result<Vec<Arc<Row>>, Problem> {
    let server = Arc::clone(&call.server);
    let rows = tokio::task::spawn_blocking(move || server.jobs.rows()).await;
    Ok(rows.map_err(|_| Problem::of_host("the list of jobs cannot be read"))??)
}

/// The jobs of all places, and the places that cannot be reached. Clusters are asked again at times, while what is known
/// of them is shown.
async fn all_rows(call: &Call) -> Result<(Vec<Arc<Row>>, Vec<Unreachable>), Problem> {
    let mut rows = local_rows(call).await?;
    let clusters = Clusters::latest(&call.server.clusters, &call.server.workspace, &call.server.limits).await;
    rows.extend(clusters.rows.iter().cloned());
    if !clusters.rows.is_empty() {
        rows.sort_by_key(|row| std::cmp::Reverse(row.submitted));
    }
    Ok((rows, clusters.unreachable.clone()))
}

/// The jobs of a target.
async fn remote_rows(call: &Call, target: &str) -> Result<Vec<Arc<Row>>, Problem> {
    let own = Own::about(&call.server.workspace, "ps")
        .words(&["--all", "--format=json"])
        .option("--target", target);
    let Value::Array(jobs) = own.json(&call.server.limits, &[]).await? else { return Ok(vec![]) };
    Ok(jobs.iter().filter_map(Row::parse).map(Arc::new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_words_with_commas() {
        assert_eq!(states(None).unwrap(), None);
        assert_eq!(states(Some("running, queued")).unwrap(), Some(vec![JobState::Running, JobState::Queued]));
        assert_eq!(states(Some("active")).unwrap().unwrap().len(), 7);
        assert_eq!(states(Some("over")).unwrap_err().status, 400);
    }
}
