//! Requirements of a host and a job, checked before anything is created.

use jobc_schema::plan::{ImageSource, JobPlan, SecretPlan};
use jobc_sys::error::Result;
use serde::Deserialize;

use super::program::Connection;
use super::runs::{self, Listing};
use crate::place::{AccessCheck, Problem, Submission};

/// The reason why a job cannot run on the host.
pub(super) fn job(name: &str, listing: &Listing, submission: &Submission<'_>) -> Vec<Problem> {
    let mut problems = of_plan(&submission.built.plan);
    for tool in &listing.missing {
        problems.push(problem(
            format!("`{tool}` is not installed on `{name}`"),
            "install it there; files are sent and jobs are started with it",
        ));
    }
    problems
}

/// The requirements of a plan that another host does not meet.
fn of_plan(plan: &JobPlan) -> Vec<Problem> {
    let mut problems = Vec::new();
    for image in plan.images.values() {
        if let ImageSource::Host { cwd: true, .. } | ImageSource::Host { venv: true, .. } = &image.source {
            problems.push(problem(
                "the image is this host's, with its directory or its Python environment".to_owned(),
                "name data by `data`, and packages by an image; or use `image: host`, which is the machine's",
            ));
        }
        if let ImageSource::File { path } = &image.source {
            problems.push(problem(
                format!("the image `{path}` is a directory with a root file system"),
                "import it: `jobc image import DIRECTORY --tag NAME`, then name it by `image`",
            ));
        }
    }
    for (name, secret) in &plan.secrets {
        if let SecretPlan::Store { .. } = secret {
            problems.push(problem(
                format!("the secret `{name}` is in the secret store of a cluster"),
                "give it a source of this host: `env` or `file`",
            ));
        }
    }
    problems
}

fn problem(message: String, help: &str) -> Problem {
    Problem::error(message).help(help)
}

/// The properties of this user on the host.
pub(super) fn access(connection: &Connection) -> Result<Vec<AccessCheck>> {
    let check = |what: String, is_allowed, needed_for| AccessCheck {
        what,
        is_allowed,
        needed_for,
        is_optional: false,
    };
    let missing = runs::list(connection)?.missing;
    let mut checks = vec![check(format!("ssh to {}", connection.name()), true, "everything")];
    for tool in ["tar", "sha256sum", "flock", "base64"] {
        checks.push(check(tool.to_owned(), !missing.iter().any(|one| one == tool), "submit"));
    }
    let version = connection.jobc(&["--version"])?;
    let is_there = version.status == 0;
    let what = if is_there { version.text().trim().to_owned() } else { "jobc".to_owned() };
    checks.push(check(what, is_there, "everything"));
    if is_there {
        checks.extend(of_doctor(&connection.jobc(&["doctor", "--format", "json"])?.stdout));
    }
    Ok(checks)
}

/// What `jobc doctor` there says of jobs: they may run, and their limits may not be enforced.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Doctor {
    checks: Vec<DoctorCheck>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DoctorCheck {
    name: String,
    status: String,
    found: String,
}

fn of_doctor(text: &[u8]) -> Vec<AccessCheck> {
    let doctor: Doctor = serde_json::from_slice(text).unwrap_or_default();
    let checks = doctor.checks.into_iter().filter_map(|check| {
        let (needed_for, is_optional) = match check.name.as_str() {
            "job.run" => ("jobs", false),
            "job.limits" => ("enforced limits: CPU time, memory and processes of a task", true),
            _ => return None,
        };
        let what = format!("a job as a test: {}", check.found);
        Some(AccessCheck { what, is_allowed: check.status == "ok", needed_for, is_optional })
    });
    checks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::submit::tests::plan;
    use serde_json::json;

    #[test]
    fn a_machine_is_asked_whether_it_enforces_limits() {
        let text = br#"{"version": 1, "checks": [{"name": "job.run", "status": "ok", "found": "ran"}, {"name": "kernel.release"},
            {"name": "job.limits", "status": "missing", "found": "no cgroup"}]}"#;
        let found = of_doctor(text);
        let shown: Vec<_> =
            found.iter().map(|check| (check.what.as_str(), check.is_allowed, check.is_optional)).collect();
        assert_eq!(
            shown,
            [("a job as a test: ran", true, false), ("a job as a test: no cgroup", false, true)]
        );
        assert_eq!(of_doctor(b"usage").len(), 0);
    }

    #[test]
    fn what_only_this_host_has_is_refused() {
        let mut plan = plan(&json!({}), &json!([]));
        assert_eq!(of_plan(&plan), []);
        let image =
            json!({"source": {"kind": "host", "cwd": true}, "reference": "host", "declared_at": "/image"});
        plan.images.insert("main".to_owned(), serde_json::from_value(image).unwrap());
        plan.secrets.insert("x".to_owned(), SecretPlan::Store { name: "a".to_owned(), key: "b".to_owned() });
        let found: Vec<_> = of_plan(&plan).into_iter().map(|problem| problem.message).collect();
        assert_eq!(
            found,
            [
                "the image is this host's, with its directory or its Python environment",
                "the secret `x` is in the secret store of a cluster",
            ]
        );
    }
}
