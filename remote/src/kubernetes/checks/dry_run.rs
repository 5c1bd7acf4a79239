//! Dry runs: what the API server, and the webhooks of the cluster, say about the objects and the pods of a job.

use serde_json::{Value, json};

use super::dropped;
use crate::built::{Manifest, pod_specs};
use crate::kubernetes::client::{APPLY, Client};
use crate::kubernetes::discovery::{Served, collection};
use crate::kubernetes::problems;
use crate::kubernetes::state::name;
use crate::kubernetes::status::ApiError;
use crate::place::Problem;

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
    let problem = |pointer: String| Problem {
        is_warning: true,
        message: format!(
            "the cluster drops `{}` of {}",
            pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/"),
            problems::object(manifest)
        ),
        place: manifest.origin(&pointer),
        help: Some(
            "its feature gate is off, or the cluster is older than `release` of the target".to_owned(),
        ),
    };
    dropped::dropped_fields(&manifest.object, answered).into_iter().map(problem).collect()
}

/// A dry run of a pod of each template: Pod Security, quotas and webhooks judge pods, not jobs.
pub(crate) fn pods(
    client: &Client,
    manifests: &[Manifest],
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let namespace = &client.config().namespace;
    let specs = manifests.iter().flat_map(|manifest| {
        pod_specs(&manifest.object).into_iter().map(move |(at, spec)| (manifest, at, spec))
    });
    for (manifest, at, spec) in specs {
        let above = at.strip_suffix("/spec").unwrap_or_default();
        let labels =
            manifest.object.pointer(&format!("{above}/metadata/labels")).cloned().unwrap_or(json!({}));
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "jobc-check-", "namespace": namespace, "labels": labels},
            "spec": spec,
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldManager=jobc");
        let status = match client.create(&path, &pod) {
            Ok(_) => continue,
            Err(ApiError::Status(status)) => status,
            Err(error) => return Err(error),
        };
        let found = |text: &str| status.message.find(text).map(|at| status.message[at..].to_owned());
        let place = manifest.origin(&at);
        let (is_warning, message) = if let Some(why) = found("violates PodSecurity") {
            (false, format!("the namespace `{namespace}` rejects the pods: {why}"))
        } else if let Some(why) = found("exceeded quota:") {
            (true, format!("the pods do not fit into the quota now: {why}"))
        } else if let Some(why) = found("admission webhook") {
            (true, format!("the pods may be rejected: {why}"))
        } else {
            // The dry run of the job itself reports invalid fields; without the right to create pods nothing is known.
            continue;
        };
        problems.push(Problem { is_warning, message, place, help: None });
    }
    Ok(())
}
