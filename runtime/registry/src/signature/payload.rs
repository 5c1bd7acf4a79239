//! The payload of a signature at a tag: "simple signing" (containers-signature(5)), with cosign's type.

use serde::Deserialize;

use super::Claim;
use super::key::PublicKey;

/// The type of cosign's image signatures.
const TYPE: &str = "cosign container image signature";

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    #[serde(default)]
    identity: Identity,
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
struct Identity {
    #[serde(default, rename = "docker-reference")]
    reference: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The statement of a payload, if it is signed with one of the keys.
pub(super) fn claim(keys: &[PublicKey], payload: &[u8], signature: &[u8]) -> Result<Claim, String> {
    // It is not parsed before its signature is verified.
    let key = keys.iter().position(|key| key.verifies(payload, signature));
    let key = key.ok_or_else(|| "a signature was made with another key, or is damaged".to_owned())?;
    let Payload { critical } = serde_json::from_slice(payload)
        .map_err(|error| format!("a signed payload cannot be read: {error}"))?;
    if critical.kind != TYPE {
        return Err(format!("a signed payload has the type `{}`, not `{TYPE}`", critical.kind));
    }
    Ok(Claim { key, digests: vec![critical.image.digest], repository: Some(critical.identity.reference) })
}
