//! Fields of a job that its roles inherit.

use jobc_schema::Pointer;

/// A role's own value replaces the job's value as a whole.
const REPLACED: [&str; 6] = ["image", "retry", "grace_period", "progress", "preflight", "stall"];
/// A role's own entries are added to the job's.
const MERGED: [&str; 2] = ["env", "metrics"];

/// The path in the job of a field that a role inherits: `/retry/max` for `/roles/train/retry/max`.
/// `None` if the role has the field itself, or the job has none either.
pub fn inherited(pointer: &Pointer, exists: impl Fn(&Pointer) -> bool) -> Option<Pointer> {
    let segments: Vec<String> = pointer.segments().collect();
    let [roles, _, field, rest @ ..] = &segments[..] else { return None };
    let contract = match field.as_str() {
        "grace_period" => Some("grace"),
        "stop_signal" => Some("signal"),
        _ => None,
    };
    let contract = contract
        .filter(|_| roles == "roles" && rest.is_empty())
        .map(|key| Pointer::ROOT.keys(["preemption", key]));
    if let Some(contract) = contract.filter(|at| !exists(pointer) && exists(at)) {
        return Some(contract);
    }
    let is = |fields: &[&str]| fields.contains(&field.as_str());
    if roles != "roles" || !(is(&REPLACED) || is(&MERGED)) {
        return None;
    }
    let depth = 3 + usize::from(is(&MERGED) && !rest.is_empty());
    let place = |segments: &[String]| Pointer::ROOT.keys(segments.iter().map(String::as_str));
    let is_of_job = exists(&place(&segments[..2]))
        && !exists(&place(&segments[..depth]))
        && exists(&place(&segments[2..depth]));
    is_of_job.then(|| place(&segments[2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_the_role_lacks_is_found_in_the_job() {
        let there = [
            "/retry",
            "/grace_period",
            "/preemption/grace",
            "/preemption/signal",
            "/roles/b/stop_signal",
            "/env",
            "/env/A",
            "/env/B",
            "/image",
            "/roles/a",
            "/roles/a/env",
            "/roles/a/env/B",
            "/roles/a/image",
            "/timeout",
        ];
        let check = |pointer: &str| {
            inherited(&Pointer::new(pointer), |at| there.contains(&at.as_str())).map(Pointer::into_string)
        };
        for (pointer, expected) in [
            ("/roles/a/retry", Some("/retry")),
            ("/roles/a/retry/backoff", Some("/retry/backoff")),
            ("/roles/a/env/A", Some("/env/A")),
            ("/roles/a/env/B", None),
            ("/roles/a/env/C", None),
            ("/roles/a/env", None),
            ("/roles/a/image/from", None),
            // `preemption` is nearer than the job's own.
            ("/roles/a/grace_period", Some("/preemption/grace")),
            ("/roles/a/stop_signal", Some("/preemption/signal")),
            ("/roles/b/stop_signal", None),
            ("/roles/a/timeout", None),
            ("/roles/b/retry", None),
            ("/retry", None),
        ] {
            assert_eq!(check(pointer).as_deref(), expected, "{pointer}");
        }
    }
}
