//! What a target allows: `policy` of a target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;
use crate::gpu::OneOrMany;

/// Limits for every job of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Whether images must be pinned by digest, in the job file or in jobc.lock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub require_digest: bool,
    /// Registries that images may come from: hosts, or hosts with a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = {"type": "string", "minLength": 1}, "examples" = [["registry.example.com", "docker.io/library"]]))]
    pub allowed_registries: Option<Vec<String>>,
    /// Signature that images must have, made by cosign with a key. The images must also be pinned by digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"key": "cosign.pub"}]))]
    pub require_signature: Option<SignaturePolicy>,
    /// Maximum number of GPUs that a job may use at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [64]))]
    pub max_gpus: Option<u32>,
    /// Maximum `timeout` of a job, or of each of its roles. A job without a timeout is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["7d"]))]
    pub max_time: Option<Seconds>,
}

/// The signature that images must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignaturePolicy {
    /// Public keys, as files relative to the targets file or as PEM text. Each image must be signed with one of them.
    #[schemars(extend("examples" = ["cosign.pub", ["ci.pub", "release.pub"]]))]
    pub key: OneOrMany,
    /// Whether a signature may name a different repository, for images that were copied after they were signed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub any_name: bool,
}
