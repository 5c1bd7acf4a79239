//! The time limit of a group: `--time` from the timeouts of the job and of its roles.

use std::collections::BTreeMap;

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::role::NeedState;

use super::group::Group;
use super::header::Limit;

/// What jobc takes beside the tasks, in seconds.
const MARGIN: u64 = 60;

/// The time limit of a group, if one follows from the job: the job's timeout, or the longest path over its roles.
pub(super) fn of(job: &JobPlan, group: &Group<'_>, is_direct: bool) -> Option<Limit> {
    let of_job = job.timeout_seconds.map(|seconds| Limit { seconds, from: Pointer::ROOT.key("timeout") });
    let of_roles = if is_direct {
        let timeout = |role: &&RolePlan| Some((role.timeout_seconds?, role.at()));
        group.roles.first().and_then(timeout)
    } else {
        longest_path(group).map(|(seconds, at)| (seconds + MARGIN, at))
    };
    let of_roles = of_roles.map(|(seconds, at)| Limit { seconds, from: at.key("timeout") });
    of_job.into_iter().chain(of_roles).min_by_key(|limit| limit.seconds)
}

/// The latest end of a role, counted from the start of the first, and where that role is. Nothing if a role has no timeout.
fn longest_path(group: &Group<'_>) -> Option<(u64, Pointer)> {
    let mut ends: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    // In the order of the file a role may come before the one that it needs.
    while ends.len() < group.roles.len() {
        let before = ends.len();
        for role in &group.roles {
            if ends.contains_key(role.name.as_str()) {
                continue;
            }
            let of_group =
                || role.needs.iter().filter(|need| group.roles.iter().any(|other| other.name == need.role));
            if !of_group().all(|need| ends.contains_key(need.role.as_str())) {
                continue;
            }
            let since = of_group().map(|need| {
                let (start, end) = ends[need.role.as_str()];
                let other = group.roles.iter().find(|other| other.name == need.role);
                match need.state {
                    NeedState::Started => start,
                    NeedState::Ready => {
                        let ready = other.and_then(|other| other.ready.as_ref());
                        ready.map_or(end, |ready| start.saturating_add(ready.timeout_seconds))
                    }
                    NeedState::Succeeded => end,
                }
            });
            let start = since.max().unwrap_or(0);
            ends.insert(&role.name, (start, start.saturating_add(longest(role)?)));
        }
        if ends.len() == before {
            return None;
        }
    }
    let last = group.roles.iter().max_by_key(|role| ends[role.name.as_str()].1)?;
    Some((ends[last.name.as_str()].1, last.at()))
}

/// How long a role may take: each attempt in the allocation has its whole timeout, then the grace period.
fn longest(role: &RolePlan) -> Option<u64> {
    let attempts = u64::from(role.retry.max);
    let each = role.timeout_seconds?.saturating_add(role.grace_period_seconds);
    let between = role.retry.backoff_seconds.unwrap_or(0);
    Some(each.saturating_mul(attempts + 1).saturating_add(between.saturating_mul(attempts)))
}

#[cfg(test)]
mod tests {
    use super::super::group::groups;
    use super::super::parts::settings;
    use super::*;
    use crate::backends::fixture;
    use serde_json::{Value, json};

    fn limit(changes: &Value, is_direct: bool) -> Option<(u64, String)> {
        let job = fixture::job(changes);
        let limit = of(&job, &groups(&job, &settings(&job))[0], is_direct)?;
        Some((limit.seconds, limit.from.as_str().to_owned()))
    }

    #[test]
    fn the_timeout_of_one_role_is_that_of_the_job() {
        let of_role =
            |job: Option<u64>| json!({"timeout_seconds": job, "roles": {"main": {"timeout_seconds": 600}}});
        assert_eq!(limit(&of_role(None), true), Some((600, "/roles/main/timeout".to_owned())));
        assert_eq!(limit(&of_role(Some(60)), true), Some((60, "/timeout".to_owned())));
        assert_eq!(limit(&json!({}), true), None);
    }

    #[test]
    fn several_roles_have_their_longest_path() {
        let need = |role: &str, state: &str| json!([{"role": role, "state": state, "min": 1}]);
        let role = |timeout: u64, needs: Value| json!({"timeout_seconds": timeout, "grace_period_seconds": 0, "needs": needs});
        let both = |state: &str| {
            json!({"gang": "required", "stages": [["a", "b"]], "roles": {
                "b": role(50, need("a", state)), "a": role(100, json!([]))
            }})
        };
        assert_eq!(limit(&both("started"), false), Some((160, "/roles/a/timeout".to_owned())));
        let mut retried = both("started");
        retried["roles"]["b"]["retry"] = json!({"max": 2, "scope": "role", "backoff_seconds": 10});
        assert_eq!(limit(&retried, false), Some((230, "/roles/b/timeout".to_owned())));
        let mut unlimited = both("started");
        unlimited["roles"]["a"] = json!({});
        assert_eq!(limit(&unlimited, false), None);
    }
}
