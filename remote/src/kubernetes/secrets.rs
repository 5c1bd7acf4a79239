//! The Secrets that a job owns, as its manifests refer to them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_container::secret::Secret;
use serde_json::json;

use crate::place::Submission;

/// A Secret to create.
pub(crate) struct SecretObject {
    /// Kubernetes' type of the Secret.
    pub(crate) kind: &'static str,
    /// The values by key.
    pub(crate) values: BTreeMap<String, Secret>,
}

/// The Secrets by object name.
pub(crate) fn objects(submission: &Submission<'_>) -> BTreeMap<String, SecretObject> {
    let (plan, secrets) = (&submission.built.plan, &submission.secrets);
    let mut objects = BTreeMap::new();
    for (name, values) in [("secrets", &secrets.values), ("ssh", &secrets.ssh_keys)] {
        if !values.is_empty() {
            let object = SecretObject { kind: "Opaque", values: values.clone() };
            objects.insert(format!("{}-{name}", plan.name), object);
        }
    }
    for (index, (host, registry)) in plan.registries.iter().enumerate() {
        let Some(password) = secrets.passwords.get(host) else { continue };
        let config = docker_config(host, &registry.username, password);
        let values = BTreeMap::from([(".dockerconfigjson".to_owned(), config)]);
        let object = SecretObject { kind: "kubernetes.io/dockerconfigjson", values };
        objects.insert(format!("{}-registry-{index}", plan.name), object);
    }
    objects
}

/// The login of a registry as a Secret of type `kubernetes.io/dockerconfigjson` has it.
fn docker_config(host: &str, username: &str, password: &Secret) -> Secret {
    let login = Secret::new([username.as_bytes(), b":", password.line()].concat());
    Secret::new(json!({"auths": {host: {"auth": STANDARD.encode(login.bytes())}}}).to_string())
}
