//! Creates a job: the job itself suspended, then the objects it owns, then starts it.
//!
//! Every step can be repeated. A killed submission leaves a suspended job, and submitting again continues with it. The
//! job owns its other objects, so that the cluster removes them together. If a kind cannot be suspended, or its object
//! is refused before the objects it refers to exist, those come first, and get their owner later.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_sys::error::{Error, Kind};
use serde_json::{Map, Value, json};

use super::answers::Answers;
use super::client::{APPLY, Client, MERGE};
use super::code;
use super::discovery::{Served, collection, discover};
use super::kinds::Workload;
use super::lines::{LINES, Lines};
use super::problems;
use super::secrets;
use super::state::{
    JOB, MANAGED, OUTLINE, PLAN, QUEUE, ROLES, SUBMITTED, USER, metadata, name, owner_reference, text,
};
use super::status::ApiError;
use crate::built::Manifest;
use crate::place::{Problem, Submission, SubmitError};
use jobc_place::outline;

/// The annotation with the whole digest of the plan.
const DIGEST: &str = "jobc.dev/plan-digest";

/// The longest text of the annotation with the roles; a job may have thousands.
const MAX_ROLES_LENGTH: usize = 16 << 10;

/// The manifest that is the job.
pub(crate) fn top<'a>(submission: &'a Submission<'_>) -> Result<(&'a Manifest, &'static Workload), Error> {
    let found = submission.built.manifests.iter().rev();
    let mut found = found.filter_map(|manifest| Some((manifest, Workload::of(&manifest.object)?)));
    found.next().ok_or_else(|| {
        let kinds: Vec<&str> =
            submission.built.manifests.iter().map(|manifest| manifest.text("/kind")).collect();
        Error::new(
            Kind::Unsupported,
            format!("cannot submit this job: it is a {}", kinds.last().unwrap_or(&"job without objects")),
        )
        .help("apply the files of `jobc build` with kubectl")
    })
}

/// Labels every object of a submission.
pub(crate) fn labeled(object: &Value, submission: &Submission<'_>, namespace: Option<&str>) -> Value {
    let mut object = object.clone();
    let identity = submission.identity;
    let metadata = entry(&mut object, "metadata");
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let labels = entry(metadata, "labels");
    for (key, value) in
        [(MANAGED, "jobc"), (JOB, &identity.job), (PLAN, identity.label()), (USER, submission.user)]
    {
        if !value.is_empty() {
            labels[key] = value.into();
        }
    }
    entry(metadata, "annotations")[DIGEST] = format!("sha256:{}", identity.digest).into();
    object
}

/// The object at a key, which is created if it is absent.
fn entry<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    let value = &mut object[key];
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value
}

/// Creates or completes the job.
pub(crate) fn submit(
    client: &Client,
    answers: &Answers,
    submission: &Submission<'_>,
) -> Result<(), SubmitError> {
    let namespace = client.config().namespace.clone();
    let (manifest, workload) = top(submission)?;
    let failed = |error: ApiError, what: &str| SubmitError::Failed(error.into_error(what));
    let mut unserved = Vec::new();
    let served = discover(client, answers, &submission.built.manifests, &mut unserved)
        .map_err(|error| failed(error, "ask the cluster for its kinds"))?;
    if !unserved.is_empty() {
        return Err(SubmitError::Refused(unserved));
    }
    let dependents = || submission.built.manifests.iter().filter(|other| !std::ptr::eq(*other, manifest));
    if needs_dependents(manifest, workload) {
        let path = format!("{}/{}", workload.path(&namespace), manifest.text("/metadata/name"));
        let found: Option<Value> = client
            .find(&path)
            .map_err(|error| failed(error, &format!("read {}", problems::object(manifest))))?;
        if found.is_none() {
            for dependent in dependents() {
                apply_dependent(client, submission, dependent, None, &served)?;
            }
        }
    }
    let owner = create_top(client, submission, (manifest, workload), &namespace)?;
    if metadata(&owner, "annotations", SUBMITTED).is_some() {
        return Ok(());
    }
    for dependent in dependents() {
        apply_dependent(client, submission, dependent, Some(&owner), &served)?;
    }
    create_secrets(client, submission, &owner, &namespace)?;
    start(client, submission, workload, &owner, &namespace)
}

/// Whether the objects that the job refers to must exist before it: it starts immediately, or Kubeflow Trainer looks
/// for its runtime.
fn needs_dependents(manifest: &Manifest, workload: &Workload) -> bool {
    workload.suspend.is_none() || manifest.text("/spec/runtimeRef/kind") == "TrainingRuntime"
}

fn create_top(
    client: &Client,
    submission: &Submission<'_>,
    (manifest, workload): (&Manifest, &Workload),
    namespace: &str,
) -> Result<Value, SubmitError> {
    let mut object = labeled(&manifest.object, submission, Some(namespace));
    if let Some(suspension) = workload.suspension(true) {
        merge(&mut object, &suspension);
    }
    let roles = &submission.built.plan.roles;
    let roles: Vec<String> = roles.iter().map(|role| format!("{}={}", role.name, role.instances)).collect();
    let roles = roles.join(",");
    if roles.len() <= MAX_ROLES_LENGTH {
        entry(entry(&mut object, "metadata"), "annotations")[ROLES] = roles.into();
    }
    if let Some(outline) = outline::of(&submission.built.plan) {
        object["metadata"]["annotations"][OUTLINE] = outline.into();
    }
    if let Some(lines) = Lines::of_manifest(manifest).annotation() {
        object["metadata"]["annotations"][LINES] = lines.into();
    }
    let path = workload.path(namespace);
    let shown = problems::object(manifest);
    match client.create(&format!("{path}?fieldManager=jobc&fieldValidation=Strict"), &object) {
        Ok(created) => Ok(created),
        // From an earlier attempt, or an attempt whose answer was lost.
        Err(error) if error.is(409) => {
            let found: Option<Value> = client
                .find(&format!("{path}/{}", name(&object)))
                .map_err(|error| error.into_error(&format!("read {shown}")))?;
            match found {
                Some(found) if metadata(&found, "labels", PLAN) == Some(submission.identity.label()) => {
                    Ok(found)
                }
                _ => Err(SubmitError::Refused(vec![
                    Problem::error(format!("{shown} exists already, and is not this job"))
                        .at(manifest.origin("/metadata/name"))
                        .help("submit again with `--new`"),
                ])),
            }
        }
        Err(ApiError::Status(status)) if matches!(status.code, 400 | 422) || problems::is_quota(&status) => {
            Err(SubmitError::Refused(problems::of_status(manifest, &status)))
        }
        Err(error) => Err(error.into_error(&format!("create {shown}")).into()),
    }
}

/// Puts the values of a nested object into another one.
fn merge(into: &mut Value, from: &Value) {
    match from {
        Value::Object(map) => map.iter().for_each(|(key, value)| merge(&mut into[key], value)),
        value => *into = value.clone(),
    }
}

fn apply_dependent(
    client: &Client,
    submission: &Submission<'_>,
    manifest: &Manifest,
    owner: Option<&Value>,
    served: &Served,
) -> Result<(), SubmitError> {
    let namespace = &client.config().namespace;
    let Some(path) = collection(served, &manifest.object, namespace) else { return Ok(()) };
    let is_namespaced = path.contains("/namespaces/");
    if code::is_code(&manifest.object) {
        return code::share(client, submission.built, manifest, &path, owner);
    }
    let mut object = labeled(&manifest.object, submission, is_namespaced.then_some(namespace.as_str()));
    if let Some(owner) = owner.filter(|_| is_namespaced) {
        object["metadata"]["ownerReferences"] = owner_reference(owner);
    }
    let path = format!("{path}/{}?fieldManager=jobc&fieldValidation=Strict", name(&object));
    match client.patch(&path, APPLY, &object) {
        Ok(_) => Ok(()),
        Err(ApiError::Status(status))
            if matches!(status.code, 400 | 409 | 422) || problems::is_quota(&status) =>
        {
            Err(SubmitError::Refused(problems::of_status(manifest, &status)))
        }
        Err(error) => Err(error.into_error(&format!("create {}", problems::object(manifest))).into()),
    }
}

fn create_secrets(
    client: &Client,
    submission: &Submission<'_>,
    owner: &Value,
    namespace: &str,
) -> Result<(), SubmitError> {
    for (name, secret) in &secrets::objects(submission) {
        let values: Map<String, Value> = secret
            .values
            .iter()
            .map(|(key, value)| (key.clone(), STANDARD.encode(value.bytes()).into()))
            .collect();
        let object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "ownerReferences": owner_reference(owner)},
            "type": secret.kind,
            "immutable": true,
            "data": values,
        });
        let object = labeled(&object, submission, Some(namespace));
        match client.create(&format!("/api/v1/namespaces/{namespace}/secrets?fieldManager=jobc"), &object) {
            Ok(_) => {}
            // It is from an earlier attempt: the run's name belongs only to this submission.
            Err(error) if error.is(409) => {}
            Err(error) => return Err(error.into_error(&format!("create Secret `{name}`")).into()),
        }
    }
    Ok(())
}

/// Lets the job run, unless a queue or the target holds it back, and records that the submission is complete.
fn start(
    client: &Client,
    submission: &Submission<'_>,
    workload: &Workload,
    owner: &Value,
    namespace: &str,
) -> Result<(), SubmitError> {
    // The server's own time is of seconds: two runs of one job may have the same.
    let now = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
    let annotations = json!({SUBMITTED: now});
    let mut patch = json!({"metadata": {"uid": text(owner, "/metadata/uid"), "annotations": annotations}});
    let queued = metadata(owner, "labels", QUEUE).is_some();
    let settings = submission.built.plan.target.settings.kubernetes.as_ref();
    let held = settings.is_some_and(|settings| settings.suspend);
    if let Some(suspension) = workload.suspension(false).filter(|_| !queued && !held) {
        merge(&mut patch, &suspension);
    }
    let address = format!("{}/{}?fieldManager=jobc", workload.path(namespace), name(owner));
    match client.patch(&address, MERGE, &patch) {
        Ok(_) => Ok(()),
        Err(error) if error.is(404) || error.is(409) => {
            let message = format!("job `{}` was deleted while it was submitted", name(owner));
            Err(Error::new(Kind::State, message).help("submit it again").into())
        }
        Err(error) => Err(error.into_error(&format!("start job `{}`", name(owner))).into()),
    }
}
