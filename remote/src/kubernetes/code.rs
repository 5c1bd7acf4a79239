//! The ConfigMaps with the code of a job: all jobs of a namespace with the same code share them, and own them together, so
//! that the cluster removes them with the last of these jobs.
//!
//! Larger code is in a claim. Then one ConfigMap without content says that it is there.

mod upload;

use std::sync::Mutex;

use jobc_sys::parallel::lock;
use serde_json::{Value, json};

use super::client::{Client, STRATEGIC};
use super::problems;
use super::state::{metadata, name, owner_reference};
use super::status::ApiError;
use crate::built::{BuiltDirectory, Manifest};
use crate::place::SubmitError;

/// The label with the digest of the code.
const LABEL: &str = "jobc.dev/code";

/// The annotation of the ConfigMap of a claim with the whole digest.
const DIGEST: &str = "jobc.dev/code-digest";
/// The annotation of such a ConfigMap once the code is in the claim: `kubectl apply` does not put it there.
const UPLOADED: &str = "jobc.dev/uploaded";
/// The init container that unpacks the code.
const NAME: &str = "jobc-code";

/// Held while code is uploaded: the jobs of a sweep have the same.
static UPLOADING: Mutex<()> = Mutex::new(());

/// Whether an object is a part of the code of a job.
pub(super) fn is_code(object: &Value) -> bool {
    metadata(object, "labels", LABEL).is_some()
}

/// Makes a job an owner of a ConfigMap, which is created if the namespace does not have it; before that, code that is for a
/// claim is uploaded. `collection` is the path of all.
pub(super) fn share(
    client: &Client,
    built: &BuiltDirectory,
    manifest: &Manifest,
    collection: &str,
    owner: Option<&Value>,
) -> Result<(), SubmitError> {
    let is_of_claim = !manifest.text("/data/claim").is_empty();
    let _one = is_of_claim.then(|| lock(&UPLOADING));
    let described = problems::object(manifest);
    let owners = owner.map_or_else(|| json!([]), owner_reference);
    let address = format!("{collection}/{}?fieldManager=jobc", name(&manifest.object));
    // By the key of this list, the uid, so that other jobs stay owners.
    let mut patch = json!({"metadata": {"ownerReferences": owners}});
    match client.patch(&address, STRATEGIC, &patch) {
        Ok(found) if is_of_claim && metadata(&found, "annotations", UPLOADED).is_none() => {
            upload::upload(client, built, manifest, owner)?;
            patch["metadata"]["annotations"] = json!({UPLOADED: "true"});
            let marked = client.patch(&address, STRATEGIC, &patch);
            return marked.map(drop).map_err(|error| error.into_error(&format!("change {described}")).into());
        }
        Ok(_) => return Ok(()),
        Err(error) if error.is(404) => {}
        Err(error) => return Err(error.into_error(&format!("change {described}")).into()),
    }
    let mut object = manifest.object.clone();
    object["metadata"]["ownerReferences"] = owners;
    if is_of_claim {
        upload::upload(client, built, manifest, owner)?;
        object["metadata"]["annotations"][UPLOADED] = "true".into();
    }
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
