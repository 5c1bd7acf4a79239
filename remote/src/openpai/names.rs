//! What ties a job on the server to a job file: its name, its tags and its configuration.
//!
//! The name and the configuration are there from the moment the server accepts a job. The tag comes second, makes jobs
//! findable without reading their configurations, and says that the submission is complete.

use jobc_sys::yaml;
use serde_json::Value;

use crate::identity::{Identity, is_suffix};

/// The key in `extras` with the digest of the plan: servers keep what is in there as it is (openpai-protocol,
/// `schemas/v2/schema.yaml`).
pub(crate) const EXTRAS: &str = "jobc";
/// The tag of a job is this and the beginning of its plan's digest; a tag has at most 64 characters (pai,
/// `src/database-controller/sdk/index.js`).
const PLAN_TAG: &str = "jobc-plan-";
/// The tag of a job that was removed: a server keeps its jobs.
pub(crate) const REMOVED: &str = "jobc-removed";

/// The tag of a job.
pub(crate) fn tag(identity: &Identity) -> String {
    format!("{PLAN_TAG}{}", identity.label())
}

/// The beginning of the plan's digest in tags.
pub(crate) fn plan_of(tags: Option<&[String]>) -> Option<String> {
    tags?.iter().find_map(|tag| tag.strip_prefix(PLAN_TAG)).map(str::to_owned)
}

/// Whether a submission got to its end; where the release has no tags, there is nothing to add.
pub(crate) fn is_complete(tags: Option<&[String]>) -> bool {
    tags.is_none() || plan_of(tags).is_some()
}

/// Whether a job was removed.
pub(crate) fn is_removed(tags: Option<&[String]>) -> bool {
    tags.is_some_and(|tags| tags.iter().any(|tag| tag == REMOVED))
}

/// The name in the job file of a run `NAME-xxxxx`; a job that jobc did not submit is its own.
pub(crate) fn job_of(run: &str) -> &str {
    match run.rsplit_once('-') {
        Some((job, suffix)) if !job.is_empty() && is_suffix(suffix) => job,
        _ => run,
    }
}

/// Whether a name has the form of a run's.
pub(crate) fn is_run(name: &str) -> bool {
    job_of(name) != name
}

/// The digest of the plan in a configuration.
pub(crate) fn digest_in(config: &str) -> Option<String> {
    // Some releases send JSON as text/yaml.
    let config = serde_json::from_str(config).ok().or_else(|| yaml::read(config).ok());
    let config: Value = config?;
    config.pointer("/extras")?.get(EXTRAS)?.get("plan").and_then(Value::as_str).map(str::to_owned)
}

/// The path of a job.
pub(crate) fn path(user: &str, name: &str) -> String {
    format!(
        "/api/v2/jobs/{}~{}",
        jobc_schema::percent::encode_segment(user),
        jobc_schema::percent::encode_segment(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_name_of_its_job() {
        for (run, job) in [
            ("gpt-small-7f4k2", "gpt-small"),
            ("gpt", "gpt"),
            ("gpt-small", "gpt-small"),
            ("-7f4k2", "-7f4k2"),
        ] {
            assert_eq!(job_of(run), job, "{run}");
        }
        let identity = Identity { job: "gpt".to_owned(), digest: "ab".repeat(32) };
        assert_eq!(job_of(&identity.run_name(7)), "gpt");
        assert!(tag(&identity).len() <= 64);
    }

    #[test]
    fn the_digest_is_found_in_a_configuration() {
        let config =
            "protocolVersion: 2\nsecrets: \"******\"\nextras:\n  jobc: {plan: abc}\n  submitFrom: jobc\n";
        assert_eq!(digest_in(config).as_deref(), Some("abc"));
        assert_eq!(digest_in(r#"{"extras": {"jobc": {"plan": "abc"}}}"#).as_deref(), Some("abc"));
        assert_eq!(digest_in("extras: {submitFrom: web}"), None);
        assert_eq!(digest_in("{"), None);
    }
}
