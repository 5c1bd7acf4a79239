//! What a cluster serves, and what this user may do there.

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
        let path = format!("/apis/{}/{}", workload.group, workload.version);
        Ok::<_, Error>(
            client.find::<Value>(&path).map_err(|error| error.into_error("ask for kinds"))?.is_some(),
        )
    };
    let mut checks = vec![AccessCheck {
        what: format!("Kubernetes {}", text(&version, "/gitVersion")),
        is_allowed: true,
        needed_for: "everything",
        is_optional: false,
    }];
    for workload in &WORKLOADS {
        checks.push(AccessCheck {
            what: format!("kind {} ({}/{})", workload.kind, workload.group, workload.version),
            is_allowed: served(workload)?,
            needed_for: if workload.kind == "JobSet" {
                "jobs with several roles"
            } else {
                "jobs with one role"
            },
            is_optional: workload.kind == "JobSet",
        });
    }
    checks.extend(
        rights::check(client, &client.config().namespace)
            .map_err(|error| error.into_error("ask for rights"))?,
    );
    Ok(checks)
}
