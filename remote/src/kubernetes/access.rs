//! The APIs of a cluster, and this user's permissions there.

use jobc_sys::error::{Error, Result};
use serde_json::Value;

use super::client::Client;
use super::kinds::{WORKLOADS, Workload};
use super::rights;
use super::state::text;
use crate::place::AccessCheck;

/// The release, the kinds of jobs, and the rights.
pub(crate) fn check(client: &Client) -> Result<Vec<AccessCheck>> {
    let version: Value = client.get("/version").map_err(|error| error.into_error("reach the cluster"))?;
    let served = |workload: &Workload| {
        Ok::<_, Error>(
            client
                .find::<Value>(&workload.root())
                .map_err(|error| error.into_error("ask for kinds"))?
                .is_some(),
        )
    };
    let mut checks = vec![AccessCheck {
        what: format!("Kubernetes {}", text(&version, "/gitVersion")),
        is_allowed: true,
        needed_for: "everything",
        is_optional: false,
    }];
    let uses = &client.config().uses;
    for workload in &WORKLOADS {
        let is_used = uses.workload() == Some(workload);
        let needed_for = match workload.kind {
            _ if is_used => "jobs of this target",
            "Job" if workload.is_built_in() => "jobs with one role",
            "JobSet" => "jobs with several roles",
            _ => continue,
        };
        checks.push(AccessCheck {
            what: format!("kind {} ({})", workload.shown(), workload.api_version()),
            is_allowed: served(workload)?,
            needed_for,
            is_optional: !is_used && workload.kind == "JobSet",
        });
    }
    checks.extend(
        rights::check(client, &client.config().namespace)
            .map_err(|error| error.into_error("ask for rights"))?,
    );
    Ok(checks)
}
