//! The user's jobs on a server.

use jobc_sys::error::{Error, Kind};

use super::api::{Detail, Summary};
use super::client::Client;
use super::names;
use super::state::of_list;
use super::status::ApiError;
use crate::identity::Identity;
use crate::place::JobSummary;
use jobc_schema::percent::encode_segment;

/// Jobs in a page of the list; a server sends 50,000 at most (pai, `src/rest-server/src/controllers/v2/job.js`).
const PAGE: usize = 1000;
/// Jobs whose configurations are read because they have no tag.
const MAX_CONFIGS: usize = 20;

/// The user's jobs, the newest first; with a text, those that have it in their name.
fn list(client: &Client, text: Option<&str>) -> Result<Vec<Summary>, ApiError> {
    let mut query =
        format!("username={}&order=submissionTime,DESC&limit={PAGE}", encode_segment(&client.user()));
    if let Some(text) = text {
        query += &format!("&keyword={}", encode_segment(text));
    }
    let mut found: Vec<Summary> = Vec::new();
    loop {
        let page: Vec<Summary> = client.get(&format!("/api/v2/jobs?{query}&offset={}", found.len()))?;
        let (count, first) = (page.len(), page.first().map(|job| job.name.clone()));
        // A release without pages sends all jobs each time; between two pages, a new job moves the others on.
        let is_repeated = found.first().map(|job| &job.name) == first.as_ref() && !found.is_empty();
        if !is_repeated {
            found.extend(page);
        }
        if count != PAGE || is_repeated {
            break;
        }
    }
    let user = client.user();
    found.retain(|job| job.username == user && text.is_none_or(|text| job.name.contains(text)));
    found.sort_by(|a, b| {
        let key = |job: &Summary| job.submission_time.or(job.created_time).unwrap_or(i64::MAX);
        key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
    found.dedup_by(|a, b| a.name == b.name);
    Ok(found)
}

/// The jobs that jobc submitted and that were not removed, with the digests of their plans.
///
/// A job without its tag is one whose submission was broken off, or of a release without tags: its configuration tells.
pub(crate) fn submitted(
    client: &Client,
    text: Option<&str>,
    digest: Option<&Identity>,
) -> Result<Vec<JobSummary>, ApiError> {
    let mut configs = 0;
    let mut found = Vec::new();
    for job in list(client, text)? {
        let tags = job.tags.as_deref();
        if names::is_removed(tags) {
            continue;
        }
        let mut summary = of_list(&job);
        if summary.plan.is_none() {
            let could_be = digest.is_none_or(|identity| summary.job == identity.job);
            if !names::is_run(&job.name) || !could_be || configs == MAX_CONFIGS {
                continue;
            }
            configs += 1;
            let config = client.text(&format!("{}/config", names::path(&job.username, &job.name)));
            let config = match config {
                Ok(config) => config,
                Err(error) if error.is(404) || error.is(403) => continue,
                Err(error) => return Err(error),
            };
            let Some(plan) = names::digest_in(&config) else { continue };
            summary.plan = Some(plan.chars().take(Identity::LABEL_LENGTH).collect());
        }
        if digest.is_none_or(|identity| summary.plan.as_deref() == Some(identity.label())) {
            found.push(summary);
        }
    }
    Ok(found)
}

/// A job by the name of its run, or the newest run of the job with that name.
pub(crate) fn find(client: &Client, wanted: &str) -> jobc_sys::Result<Detail> {
    let failed = |error: ApiError| error.into_error(&format!("read job `{wanted}`"));
    let user = client.user();
    let of_run = |name: &str| client.find::<Detail>(&names::path(&user, name)).map_err(failed);
    let not_removed = |job: &Detail| !names::is_removed(job.tags.as_deref());
    if let Some(job) = of_run(wanted)?.filter(not_removed) {
        return Ok(job);
    }
    let runs = submitted(client, Some(wanted), None).map_err(failed)?;
    if let Some(run) = runs.iter().find(|run| run.job == wanted)
        && let Some(job) = of_run(&run.name)?
    {
        return Ok(job);
    }
    let message = format!("the user `{user}` has no job `{wanted}` on OpenPAI");
    Err(Error::new(Kind::NotFound, message).help("`jobc ps --target TARGET --all` lists the jobs"))
}
