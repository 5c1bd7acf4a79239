//! Containers: why one cannot start, and how one ended.

use super::super::pods::{Terminated, Waiting};
use super::reason::{Field, sentence};

/// Why a container waits; none if it is only being created.
pub(super) fn of_waiting(waiting: &Waiting) -> Option<(String, Field)> {
    let message = sentence(&waiting.message);
    let shown = if message.is_empty() { waiting.reason.clone() } else { message };
    Some(match waiting.reason.as_str() {
        "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" | "ImageInspectError" => {
            (format!("cannot get the image: {shown}; the cluster tries again without end"), Field::Image)
        }
        "InvalidImageName" | "ErrImageNeverPull" | "SignatureValidationFailed" => {
            (format!("cannot get the image: {shown}"), Field::Image)
        }
        "CreateContainerConfigError" => (
            format!("cannot create the container: {shown}; the cluster tries again without end"),
            of_config(&shown),
        ),
        "CreateContainerError" | "RunContainerError" | "StartError" | "ContainerCannotRun" => {
            (format!("cannot start the container: {shown}"), Field::Command)
        }
        "CrashLoopBackOff" => {
            ("crashes again and again; the cluster waits before the next try".to_owned(), Field::Command)
        }
        // `ContainerCreating` and `PodInitializing`: events say what is slow.
        _ => return None,
    })
}

/// A key that a Secret does not have, or a user whom the pod may not be.
fn of_config(message: &str) -> Field {
    let of_user = ["runAsNonRoot", "run as root", "non-numeric user"];
    if of_user.iter().any(|text| message.contains(text)) { Field::Security } else { Field::Role }
}

/// How an init container failed, with its last words; none if it succeeded.
pub(super) fn of_init(name: &str, ended: &Terminated) -> Option<(String, Field)> {
    let (text, field) = of_ended(ended)?;
    let words = sentence(&ended.message);
    let words = if words.is_empty() || text.ends_with(&words) { String::new() } else { format!(": {words}") };
    Some((format!("init container `{name}`: {text}{words}"), field))
}

/// How a container ended; none if it succeeded.
pub(super) fn of_ended(ended: &Terminated) -> Option<(String, Field)> {
    Some(match (ended.reason.as_str(), ended.exit_code) {
        ("OOMKilled", _) => {
            ("killed: it exceeded its memory limit".to_owned(), Field::Resource("memory".to_owned()))
        }
        ("ContainerStatusUnknown", _) => ("its node lost track of it".to_owned(), Field::Role),
        ("StartError" | "ContainerCannotRun", _) => {
            let detail = sentence(&ended.message);
            let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
            (format!("the container could not start{detail}"), Field::Command)
        }
        ("DeadlineExceeded", _) => ("exceeded its time limit".to_owned(), Field::Timeout),
        (_, 0) => return None,
        // The memory limit may have killed a child of the program: only the parent's code is known.
        (_, 137) => ("exited with 137, as after a SIGKILL".to_owned(), Field::Command),
        (_, 143) => ("exited with 143, as after a SIGTERM".to_owned(), Field::Command),
        (_, code) => (format!("exited with {code}"), Field::Command),
    })
}
