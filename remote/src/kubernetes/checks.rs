//! What is asked of the cluster before anything is created.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{APPLY, Client};
use super::kinds::Workload;
use super::problems;
use super::rights;
use super::secrets;
use super::state::{QUEUE, metadata, name, text};
use super::status::ApiError;
use crate::built::{Manifest, pod_specs};
use crate::place::{Problem, Submission};

/// A kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Resource {
    #[serde(rename = "name")]
    pub(crate) plural: String,
    kind: String,
    pub(crate) namespaced: bool,
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Resource>,
}

/// The kinds of a submission's objects, by `apiVersion` and `kind`.
pub(crate) type Served = BTreeMap<(String, String), Resource>;

/// Asks which of the kinds the cluster serves; those that it does not are problems.
pub(crate) fn discover(
    client: &Client,
    manifests: &[Manifest],
    problems: &mut Vec<Problem>,
) -> Result<Served, ApiError> {
    let mut served = Served::new();
    let versions: BTreeSet<&str> = manifests.iter().map(|manifest| manifest.text("/apiVersion")).collect();
    for version in versions {
        let path = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        let list: Option<ResourceList> = client.find(&path)?;
        for resource in list.into_iter().flat_map(|list| list.resources) {
            // `jobs/status` and the like are parts of a kind.
            if !resource.plural.contains('/') {
                served.insert((version.to_owned(), resource.kind.clone()), resource);
            }
        }
    }
    for manifest in manifests {
        let (version, kind) = (manifest.text("/apiVersion"), manifest.text("/kind"));
        if !served.contains_key(&(version.to_owned(), kind.to_owned())) {
            problems.push(Problem {
                is_warning: false,
                message: format!("the cluster does not serve `{kind}` of `{version}`"),
                place: manifest.origin("/metadata/name"),
                help: Some(match kind {
                    "JobSet" => "install JobSet on the cluster, or write a job with one role".to_owned(),
                    _ => "install what serves it, or change `kubernetes` of the target".to_owned(),
                }),
            });
        }
    }
    Ok(served)
}

/// The path of an object's collection.
pub(crate) fn collection(served: &Served, object: &Value, namespace: &str) -> Option<String> {
    let version = text(object, "/apiVersion");
    let resource = served.get(&(version.to_owned(), text(object, "/kind").to_owned()))?;
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    Some(if resource.namespaced {
        format!("{root}/namespaces/{namespace}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    })
}

/// The strict dry run of every object.
pub(crate) fn dry_run(
    client: &Client,
    served: &Served,
    manifests: &[Manifest],
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let namespace = &client.config().namespace;
    for manifest in manifests {
        let Some(path) = collection(served, &manifest.object, namespace) else { continue };
        let path =
            format!("{path}/{}?fieldManager=jobc&dryRun=All&fieldValidation=Strict", name(&manifest.object));
        match client.patch(&path, APPLY, &manifest.object) {
            Ok(_) => {}
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

/// The rights that this submission needs.
pub(crate) fn rights(
    client: &Client,
    workload: &Workload,
    submission: &Submission<'_>,
    served: &Served,
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let namespace = &client.config().namespace;
    let mut needed: BTreeMap<(String, String), &[&str]> = BTreeMap::new();
    for manifest in &submission.built.manifests {
        let version = manifest.text("/apiVersion");
        let group = version.split_once('/').map_or("", |(group, _)| group);
        if let Some(resource) = served.get(&(version.to_owned(), manifest.text("/kind").to_owned())) {
            needed.insert((group.to_owned(), resource.plural.clone()), &["create", "patch"]);
        }
    }
    needed
        .insert((workload.group.to_owned(), workload.plural.to_owned()), &["get", "list", "create", "patch"]);
    if !secrets::objects(submission).is_empty() {
        needed.insert((String::new(), "secrets".to_owned()), &["create"]);
    }
    for ((group, resource), verbs) in &needed {
        let missing = rights::missing_verbs(client, namespace, (group, resource), verbs)?;
        if !missing.is_empty() {
            let shown = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
            problems.push(Problem {
                is_warning: false,
                message: format!(
                    "you may not {} `{shown}` in the namespace `{namespace}`",
                    missing.join(" or ")
                ),
                place: None,
                help: Some("ask an administrator for the rights of `jobc targets role`".to_owned()),
            });
        }
    }
    Ok(())
}

/// Something that a pod needs and that must exist.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reference {
    plural: &'static str,
    what: &'static str,
    name: String,
    pointer: String,
}

/// Checks that claims, secrets, accounts and queues exist.
pub(crate) fn references(
    client: &Client,
    submission: &Submission<'_>,
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let namespace = &client.config().namespace;
    let created = secrets::objects(submission);
    let mut known = BTreeSet::new();
    for manifest in &submission.built.manifests {
        let mut found = Vec::new();
        for (at, spec) in pod_specs(&manifest.object) {
            collect(&at, spec, &mut found);
        }
        for reference in found {
            let is_created = reference.plural == "secrets" && created.contains_key(&reference.name);
            if is_created || !known.insert((reference.plural, reference.name.clone())) {
                continue;
            }
            let path = format!("/api/v1/namespaces/{namespace}/{}/{}", reference.plural, reference.name);
            if is_absent(client, &path)? {
                problems.push(Problem {
                    is_warning: false,
                    message: format!(
                        "there is no {} `{}` in the namespace `{namespace}`",
                        reference.what, reference.name
                    ),
                    place: manifest.origin(&reference.pointer),
                    help: Some(match reference.plural {
                        "persistentvolumeclaims" => {
                            "create it, or name another with `storage` of the target".to_owned()
                        }
                        _ => "create it, or name another in the target".to_owned(),
                    }),
                });
            }
        }
        if let Some(queue) = metadata(&manifest.object, "labels", QUEUE) {
            let path = |version: &str| {
                format!("/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/localqueues/{queue}")
            };
            if is_absent(client, &path("v1beta2"))? && is_absent(client, &path("v1beta1"))? {
                problems.push(Problem {
                    is_warning: false,
                    message: format!("there is no Kueue queue `{queue}` in the namespace `{namespace}`"),
                    place: manifest.origin("/metadata/labels/kueue.x-k8s.io~1queue-name"),
                    help: Some("`kubectl get localqueues` lists the queues".to_owned()),
                });
            }
        }
    }
    Ok(())
}

/// Whether an object does not exist; what may not be read is taken to exist.
fn is_absent(client: &Client, path: &str) -> Result<bool, ApiError> {
    match client.find::<Value>(path) {
        Ok(found) => Ok(found.is_none()),
        Err(error) if error.is(403) => Ok(false),
        Err(error) => Err(error),
    }
}

fn collect(at: &str, spec: &Value, found: &mut Vec<Reference>) {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut add = |plural: &'static str, what: &'static str, name: &str, pointer: String| {
        if !name.is_empty() {
            found.push(Reference { plural, what, name: name.to_owned(), pointer: format!("{at}{pointer}") });
        }
    };
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let claim = text(volume, "/persistentVolumeClaim/claimName");
        add("persistentvolumeclaims", "PersistentVolumeClaim", claim, format!("/volumes/{index}"));
        if volume.pointer("/secret/optional") != Some(&Value::Bool(true)) {
            add("secrets", "Secret", text(volume, "/secret/secretName"), format!("/volumes/{index}"));
        }
    }
    for (index, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        add("secrets", "Secret", text(secret, "/name"), format!("/imagePullSecrets/{index}"));
    }
    add(
        "serviceaccounts",
        "ServiceAccount",
        text(spec, "/serviceAccountName"),
        "/serviceAccountName".to_owned(),
    );
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (number, variable) in list(container, "env").iter().enumerate() {
            let reference = variable.pointer("/valueFrom/secretKeyRef");
            let Some(reference) = reference.filter(|r| r.get("optional") != Some(&Value::Bool(true))) else {
                continue;
            };
            add("secrets", "Secret", text(reference, "/name"), format!("/containers/{index}/env/{number}"));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pods_need_is_found_in_every_template() {
        let object = json!({"spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {
            "serviceAccountName": "trainer",
            "imagePullSecrets": [{"name": "login"}],
            "volumes": [
                {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "s", "secret": {"secretName": "keys"}},
                {"name": "o", "secret": {"secretName": "maybe", "optional": true}},
            ],
            "containers": [{"env": [
                {"name": "A", "value": "x"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "b"}}},
            ]}],
        }}}}}]}});
        let specs = pod_specs(&object);
        assert_eq!(specs.len(), 1);
        let mut found = Vec::new();
        collect("", specs[0].1, &mut found);
        let shown: Vec<_> = found.iter().map(|r| format!("{} {} {}", r.plural, r.name, r.pointer)).collect();
        assert_eq!(
            shown,
            [
                "persistentvolumeclaims data /volumes/0",
                "secrets keys /volumes/1",
                "secrets login /imagePullSecrets/0",
                "serviceaccounts trainer /serviceAccountName",
                "secrets tokens /containers/0/env/1",
            ]
        );
    }
}
