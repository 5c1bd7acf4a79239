//! Dry runs: what the API server, and the webhooks of the cluster, say about the objects and the pods of a job.

use serde_json::{Value, json};

use super::dropped;
use crate::built::{Manifest, pod_specs};
use crate::kubernetes::answers::Answers;
use crate::kubernetes::client::{APPLY, Client};
use crate::kubernetes::code;
use crate::kubernetes::discovery::{Served, collection};
use crate::kubernetes::problems;
use crate::kubernetes::state::name;
use crate::kubernetes::status::{ApiError, Status};
use crate::place::Problem;

/// The uid of an owner that does not exist: a dry run creates nothing that could belong to it.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// The strict dry run of every object.
pub(crate) fn objects(
    client: &Client,
    served: &Served,
    manifests: &[Manifest],
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let namespace = &client.config().namespace;
    let has_runtime = manifests.iter().any(|manifest| manifest.text("/kind") == "TrainingRuntime");
    for manifest in manifests {
        // Kubeflow Trainer refuses a TrainJob whose runtime does not exist yet.
        if manifest.text("/kind") == "TrainJob" && has_runtime {
            continue;
        }
        // It is ours alone, it may be there already, and it is sent only once.
        if code::is_code(&manifest.object) {
            continue;
        }
        let Some(path) = collection(served, &manifest.object, namespace) else { continue };
        let path =
            format!("{path}/{}?fieldManager=jobc&dryRun=All&fieldValidation=Strict", name(&manifest.object));
        match client.patch(&path, APPLY, &manifest.object) {
            Ok(answered) => problems.extend(dropped(manifest, &answered)),
            Err(ApiError::Status(status))
                if matches!(status.code, 400 | 403 | 404 | 409 | 413 | 422 | 500) =>
            {
                problems.extend(problems::of_status(manifest, &status));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Warnings about fields that the cluster does not keep.
fn dropped(manifest: &Manifest, answered: &Value) -> Vec<Problem> {
    let problem = |pointer: String| {
        Problem::warning(format!(
            "the cluster drops `{}` of {}",
            pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/"),
            problems::object(manifest)
        ))
        .at(manifest.origin(&pointer))
        .help("its feature gate is off, or the cluster is older than `release` of the target")
    };
    dropped::dropped_fields(&manifest.object, answered).into_iter().map(problem).collect()
}

/// A dry run of a pod of each template: Pod Security, quotas, policies and webhooks judge pods, not jobs.
pub(crate) fn pods(
    client: &Client,
    answers: &Answers,
    manifests: &[Manifest],
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let namespace = &client.config().namespace;
    let specs = manifests.iter().flat_map(|manifest| {
        pod_specs(&manifest.object).into_iter().map(move |(at, spec)| (manifest, at, spec))
    });
    for (manifest, at, spec) in specs {
        let above = at.strip_suffix("/spec").unwrap_or_default();
        let pod = pod(manifest, above, spec, namespace);
        let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldManager=jobc");
        let status = match client.create(&path, &pod) {
            Ok(_) => continue,
            Err(ApiError::Status(status)) => status,
            Err(error) => return Err(error),
        };
        if status.code == 403 && status.message.contains("cannot create resource \"pods\"") {
            answers.note_denied("dry run of pods");
            return Ok(());
        }
        if let Some((is_warning, message)) = judge(&status, namespace) {
            problems.push(Problem::new(is_warning, message).at(manifest.origin(&at)));
        }
    }
    Ok(())
}

/// A pod as the controller of a job makes it: policies look at its labels, annotations and owner, too.
fn pod(manifest: &Manifest, above: &str, spec: &Value, namespace: &str) -> Value {
    let of =
        |key: &str| manifest.object.pointer(&format!("{above}/metadata/{key}")).cloned().unwrap_or(json!({}));
    let mut metadata = json!({
        "generateName": "jobc-check-", "namespace": namespace, "labels": of("labels"), "annotations": of("annotations"),
    });
    if manifest.text("/kind") != "Pod" {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": name(&manifest.object), "uid": NO_UID, "controller": true,
        }]);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// What an answer says of the pods of a job, and whether they may run all the same. The dry run of the job itself
/// reports invalid fields.
fn judge(status: &Status, namespace: &str) -> Option<(bool, String)> {
    let found = |text: &str| status.message.find(text).map(|at| &status.message[at..]);
    if let Some(why) = found("violates PodSecurity") {
        return Some((false, format!("the namespace `{namespace}` rejects the pods: {why}")));
    }
    if let Some(why) = found("exceeded quota:") {
        return Some((true, format!("the pods do not fit into the quota now: {why}")));
    }
    // They may see that the cluster's controller creates the pods of a job, and not its user.
    let why = found("admission webhook").or_else(|| found("ValidatingAdmissionPolicy"));
    let why = why.or_else(|| (status.code == 403).then_some(status.message.as_str()))?;
    Some((true, format!("the pods may be rejected: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_admission_says_of_pods_is_told() {
        let told = |code: u16, message: &str| {
            judge(&Status { code, message: message.to_owned(), ..Status::default() }, "ml")
        };
        for (code, message, expected) in [
            (
                422,
                "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'all' denied request: no owner",
                Some((
                    true,
                    "the pods may be rejected: ValidatingAdmissionPolicy 'owners' with binding 'all' denied request: no owner",
                )),
            ),
            (
                403,
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
                Some((
                    false,
                    "the namespace `ml` rejects the pods: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
                )),
            ),
            (
                403,
                "pods \"x\" is forbidden: no",
                Some((true, "the pods may be rejected: pods \"x\" is forbidden: no")),
            ),
            (422, "Pod \"x\" is invalid: spec", None),
        ] {
            assert_eq!(
                told(code, message).as_ref().map(|(is, text)| (*is, text.as_str())),
                expected,
                "{message}"
            );
        }
    }
}
