//! The ConfigMaps with the code of a job: all jobs of a namespace with the same code share them, and own them together, so
//! that the cluster removes them with the last of these jobs.

use serde_json::{Value, json};

use super::client::{Client, STRATEGIC};
use super::problems;
use super::state::{metadata, name};
use super::status::ApiError;
use super::submit::owner_reference;
use crate::built::Manifest;
use crate::place::SubmitError;

/// The label with the digest of the code.
const LABEL: &str = "jobc.dev/code";

/// Whether an object is a part of the code of a job.
pub(super) fn is_code(object: &Value) -> bool {
    metadata(object, "labels", LABEL).is_some()
}

/// Makes a job an owner of a ConfigMap, which is created if the namespace does not have it. `collection` is the path of all.
pub(super) fn share(
    client: &Client,
    manifest: &Manifest,
    collection: &str,
    owner: Option<&Value>,
) -> Result<(), SubmitError> {
    let described = problems::object(manifest);
    let owners = owner.map_or_else(|| json!([]), owner_reference);
    let address = format!("{collection}/{}?fieldManager=jobc", name(&manifest.object));
    // By the key of this list, the uid, so that other jobs stay owners.
    let patch = json!({"metadata": {"ownerReferences": owners}});
    match client.patch(&address, STRATEGIC, &patch) {
        Ok(_) => return Ok(()),
        Err(error) if error.is(404) => {}
        Err(error) => return Err(error.into_error(&format!("change {described}")).into()),
    }
    let mut object = manifest.object.clone();
    object["metadata"]["ownerReferences"] = owners;
    match client.create(&format!("{collection}?fieldManager=jobc&fieldValidation=Strict"), &object) {
        Ok(_) => Ok(()),
        // Another submission was faster, or the answer to this one was lost.
        Err(error) if error.is(409) => client
            .patch(&address, STRATEGIC, &patch)
            .map(drop)
            .map_err(|error| error.into_error(&format!("change {described}")).into()),
        Err(ApiError::Status(status))
            if matches!(status.code, 400 | 413 | 422) || problems::is_quota(&status) =>
        {
            Err(SubmitError::Refused(problems::of_status(manifest, &status)))
        }
        Err(error) => Err(error.into_error(&format!("create {described}")).into()),
    }
}
