//! Events that say what nothing else does: pods that could not be created, nodes that come or do not, volumes.

use std::collections::BTreeMap;

use super::reason::{Field, Reason, sentence};
use super::{admission, autoscaler};

/// The part of an event that explains why a job waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    /// The cluster's word for it.
    pub(crate) reason: &'a str,
    /// The component that reports it.
    pub(crate) source: &'a str,
    /// The event.
    pub(crate) message: &'a str,
    /// What its object could not create: `no pods` if there are none.
    pub(crate) missing: &'a str,
}

/// The messages of reports, the oldest first; of several with the same reason, the newest counts.
pub(crate) fn of_events<'a>(reports: impl Iterator<Item = Report<'a>>) -> Vec<Reason> {
    let mut found: BTreeMap<&str, Reason> = BTreeMap::new();
    for report in reports {
        let message = sentence(report.message);
        if let Some(reason) = autoscaler::of_event(report.reason, report.source, report.message) {
            // The newest message of an autoscaler replaces its earlier ones.
            found.insert("autoscaler", reason);
            continue;
        }
        let reason = match report.reason {
            "FailedCreate" | "JobCreationFailed" => {
                admission::of_failed_create(report.missing, report.message)
            }
            "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => {
                Reason::of_job(format!("a volume cannot be mounted: {message}"), Field::Volumes)
            }
            "ProvisioningFailed" | "FailedBinding" => {
                Reason::of_job(format!("a claim has no volume: {message}"), Field::Volumes)
            }
            "FailedCreatePodSandBox" => {
                Reason::of_job(format!("the node cannot set up the pod: {message}"), Field::Role)
            }
            _ => continue,
        };
        found.insert(report.reason, reason);
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(reports: &[(&str, &str)]) -> Vec<String> {
        let reports = reports.iter().map(|(reason, message)| Report {
            reason,
            source: "",
            message,
            missing: "no pods",
        });
        of_events(reports).into_iter().map(|reason| reason.text).collect()
    }

    #[test]
    fn the_newest_of_each_word_counts() {
        assert_eq!(
            texts(&[
                ("FailedCreate", "timeout"),
                ("FailedCreate", "admission webhook \"w\" denied the request: no")
            ]),
            ["no pods: admission webhook \"w\" denied the request: no"]
        );
        assert_eq!(
            texts(&[("NotTriggerScaleUp", "pod didn't trigger scale-up: x"), ("TriggeredScaleUp", "")]),
            ["a node comes: the autoscaler is adding one"]
        );
        assert_eq!(
            texts(&[("TriggeredScaleUp", ""), ("NotTriggerScaleUp", "pod didn't trigger scale-up: x")]),
            ["none fits: the autoscaler has no node for it: x"]
        );
    }

    #[test]
    fn volumes_and_sandboxes() {
        assert_eq!(
            texts(&[
                ("FailedMount", "MountVolume.SetUp failed for volume \"d\" :\n secret \"s\" not found"),
                ("FailedCreatePodSandBox", "no addresses left."),
                ("ProvisioningFailed", "storageclass \"fast\" not found"),
                ("Scheduled", ""),
            ]),
            [
                "the node cannot set up the pod: no addresses left",
                "a volume cannot be mounted: MountVolume.SetUp failed for volume \"d\" : secret \"s\" not found",
                "a claim has no volume: storageclass \"fast\" not found",
            ]
        );
    }
}
