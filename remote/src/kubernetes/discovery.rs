//! The kinds that a cluster serves.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::answers::Answers;
use super::client::Client;
use super::state::text;
use super::status::ApiError;
use crate::built::Manifest;
use crate::place::Problem;

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

/// Kinds that every cluster serves, and the names of their resources.
const BUILT_IN: [(&str, &[(&str, &str)]); 2] = [
    (
        "v1",
        &[
            ("ConfigMap", "configmaps"),
            ("Service", "services"),
            ("Secret", "secrets"),
            ("Pod", "pods"),
            ("PersistentVolumeClaim", "persistentvolumeclaims"),
            ("ServiceAccount", "serviceaccounts"),
        ],
    ),
    ("batch/v1", &[("Job", "jobs")]),
];

/// The built-in resource of a kind.
fn built_in(version: &str, kind: &str) -> Option<Resource> {
    let (_, kinds) = BUILT_IN.iter().find(|(known, _)| *known == version)?;
    let (kind, plural) = kinds.iter().find(|(known, _)| *known == kind)?;
    Some(Resource { plural: (*plural).to_owned(), kind: (*kind).to_owned(), namespaced: true })
}

/// Asks which of the kinds the cluster serves; those that it does not are problems. Built-in ones are not asked for.
pub(crate) fn discover(
    client: &Client,
    answers: &Answers,
    manifests: &[Manifest],
    problems: &mut Vec<Problem>,
) -> Result<Served, ApiError> {
    let mut served = Served::new();
    let mut versions = BTreeSet::new();
    for manifest in manifests {
        let (version, kind) = (manifest.text("/apiVersion"), manifest.text("/kind"));
        match built_in(version, kind) {
            Some(resource) => drop(served.insert((version.to_owned(), kind.to_owned()), resource)),
            None => drop(versions.insert(version)),
        }
    }
    for version in versions {
        let path = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        let list = answers.object(client, "apis", &path)?;
        let list = list.found().and_then(|list| ResourceList::deserialize(list).ok());
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
            problems.push(
                Problem::error(format!("the cluster does not serve `{kind}` of `{version}`"))
                    .at(manifest.origin("/metadata/name"))
                    .help(match kind {
                        "JobSet" => "install JobSet on the cluster, or write a job with one role".to_owned(),
                        "TrainJob" | "TrainingRuntime" => {
                            "install Kubeflow Trainer on the cluster, or change `kind` of the target"
                                .to_owned()
                        }
                        _ => "install what serves it, or change `kubernetes` of the target".to_owned(),
                    }),
            );
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
