//! Sigstore bundles (sigstore/protobuf-specs, `sigstore_bundle.proto`): a signed in-toto statement about an image.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;

use super::Claim;
use super::key::PublicKey;

/// The type of what is signed (in-toto attestation, `envelope.md`).
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPES: [&str; 2] = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/// Statements that sign an image. Others, such as provenance, say something about it.
const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    #[serde(default)]
    verification_material: Material,
    dsse_envelope: Option<Envelope>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    certificate: Option<serde::de::IgnoredAny>,
    #[serde(rename = "x509CertificateChain")]
    chain: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    digest: BTreeMap<String, String>,
}

/// The statement of a bundle, if it is signed with one of the keys.
pub(super) fn claim(keys: &[PublicKey], text: &[u8]) -> Result<Claim, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("a Sigstore bundle cannot be read: {error}");
    let bundle: Bundle = serde_json::from_slice(text).map_err(|error| unreadable(&error))?;
    let Some(envelope) = bundle.dsse_envelope else {
        return Err("a Sigstore bundle has no signed statement".to_owned());
    };
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(format!("a Sigstore bundle signs `{}`, not `{PAYLOAD_TYPE}`", envelope.payload_type));
    }
    let payload = STANDARD.decode(&envelope.payload).map_err(|error| unreadable(&error))?;
    let message = pre_authentication_encoding(&envelope.payload_type, &payload);
    let signatures = envelope.signatures.iter().filter_map(|signature| STANDARD.decode(&signature.sig).ok());
    let key = signatures
        .filter_map(|signature| keys.iter().position(|key| key.verifies(&message, &signature)))
        .min();
    let Some(key) = key else {
        let material = &bundle.verification_material;
        let is_keyless = material.certificate.is_some() || material.chain.is_some();
        return Err(if is_keyless {
            super::candidate::KEYLESS.to_owned()
        } else {
            "a signature was made with another key, or is damaged".to_owned()
        });
    };
    let statement: Statement = serde_json::from_slice(&payload).map_err(|error| unreadable(&error))?;
    if !STATEMENT_TYPES.contains(&statement.kind.as_str()) {
        return Err(format!("a Sigstore bundle has a statement of unknown type `{}`", statement.kind));
    }
    if statement.predicate_type != SIGNATURE {
        return Err(format!(
            "a Sigstore bundle is a statement `{}`, not a signature",
            statement.predicate_type
        ));
    }
    let digests = statement.subject.iter().flat_map(|subject| &subject.digest);
    let digests = digests.map(|(algorithm, hex)| format!("{algorithm}:{hex}")).collect();
    Ok(Claim { key, digests, repository: None })
}

/// The bytes that an envelope's signature covers (DSSE, protocol.md).
fn pre_authentication_encoding(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    message.extend_from_slice(payload);
    message
}
