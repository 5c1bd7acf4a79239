//! The release of a cluster, compared with what jobc needs and what the target says.

use serde_json::Value;

use crate::place::Problem;

/// A release of Kubernetes: major and minor.
pub(crate) type Release = (u32, u32);

/// The oldest release that jobc works with: pods have the label `batch.kubernetes.io/job-name` from here.
const OLDEST: Release = (1, 27);
/// The release meant by a target that names none, as in the schema of targets.
const DEFAULT: Release = (1, 36);

/// The release in the answer to `/version`. Providers add suffixes: `v1.33.4-gke.100`, `v1.31.2+k3s1`, minor `31+`.
pub(crate) fn of_version(version: &Value) -> Option<Release> {
    let text = |key: &str| version.get(key).and_then(Value::as_str).unwrap_or_default();
    parse(text("gitVersion")).or_else(|| {
        let minor = text("minor").trim_end_matches(|c: char| !c.is_ascii_digit());
        Some((text("major").parse().ok()?, minor.parse().ok()?))
    })
}

/// A release as servers and targets write it: `v1.33.4-gke.100`, `1.36`.
fn parse(text: &str) -> Option<Release> {
    let mut parts = text.trim().trim_start_matches('v').splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let end = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    Some((major, minor[..end].parse().ok()?))
}

/// Compares the release of a cluster with what jobc needs, and with `release` of the target.
pub(crate) fn check(version: &Value, setting: Option<&str>) -> Option<Problem> {
    let release = of_version(version)?;
    let show = |(major, minor): Release| format!("{major}.{minor}");
    let place = setting.map(|_| "the setting `kubernetes.release` of the target".to_owned());
    if release < OLDEST {
        return Some(
            Problem::error(format!(
                "the cluster has Kubernetes {}, and jobc needs {} or newer",
                show(release),
                show(OLDEST)
            ))
            .help("upgrade the cluster, or submit to another"),
        );
    }
    let wanted = setting.and_then(parse).unwrap_or(DEFAULT);
    (release < wanted).then(|| {
        Problem::warning(format!(
            "the cluster has Kubernetes {}, and the job was built for {}",
            show(release),
            show(wanted)
        ))
        .at(place)
        .help(format!("write `release: \"{}\"` in `kubernetes` of the target", show(release)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn suffixes_of_providers_are_ignored() {
        for (version, expected) in [
            ("v1.36.0", Some((1, 36))),
            ("v1.33.4-gke.100", Some((1, 33))),
            ("v1.31.2+k3s1", Some((1, 31))),
            ("v1.30.1-eks-1234", Some((1, 30))),
            ("v1.29+", Some((1, 29))),
            ("v1", None),
            ("", None),
        ] {
            assert_eq!(of_version(&json!({"gitVersion": version})), expected, "{version}");
        }
        assert_eq!(of_version(&json!({"major": "1", "minor": "31+"})), Some((1, 31)));
    }

    #[test]
    fn an_old_cluster_is_an_error_and_an_older_one_than_the_target_a_warning() {
        let server = |version: &str| json!({"gitVersion": version});
        assert_eq!(check(&server("v1.36.0"), None), None);
        assert_eq!(check(&server("v1.37.1"), Some("1.33")), None);
        let problem = check(&server("v1.26.3+k3s1"), Some("1.26")).unwrap();
        assert!(!problem.is_warning);
        assert_eq!(problem.message, "the cluster has Kubernetes 1.26, and jobc needs 1.27 or newer");
        let problem = check(&server("v1.33.4-gke.100"), Some("1.35")).unwrap();
        assert!(problem.is_warning);
        assert_eq!(problem.message, "the cluster has Kubernetes 1.33, and the job was built for 1.35");
        assert_eq!(problem.help.as_deref(), Some("write `release: \"1.33\"` in `kubernetes` of the target"));
        assert!(check(&server("v1.33.4"), None).unwrap().place.is_none());
        assert_eq!(check(&json!({}), None), None, "an answer without a release says nothing");
    }
}
