//! Signatures of images in cosign's formats, made with a key.
//!
//! Two formats are understood: a payload with its signature at the tag `sha256-….sig` (sigstore/cosign,
//! specs/SIGNATURE_SPEC.md), and a Sigstore bundle that refers to the image (specs/BUNDLE_SPEC.md). A registry can hide
//! signatures but not change them: everything that they state is signed. Transparency logs are not used.

mod bundle;
mod candidate;
mod key;
mod payload;

use std::collections::BTreeSet;

use jobc_image::{Digest, Reference};
use jobc_sys::error::Result;

use crate::client::Client;

pub use key::PublicKey;

/// The required signer of an image.
#[derive(Debug)]
pub struct Requirement<'a> {
    /// A signature by any of these keys is enough.
    pub keys: &'a [PublicKey],
    /// Whether a signature may name another repository: an image may be signed first and copied then.
    pub any_name: bool,
}

/// The result of the verification of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// It has a signature that fits.
    Verified(Signature),
    /// It has no valid signature: the reason.
    Refused(String),
}

/// A signature that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name of the key.
    pub key: String,
    /// Where it is in the registry.
    pub place: String,
    /// The repository that it is for; bundles state none.
    pub repository: Option<String>,
}

/// The claims of a verified signature about an image.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    /// The key's number.
    key: usize,
    /// The digests that it names.
    digests: Vec<String>,
    /// The repository that it names.
    repository: Option<String>,
}

impl Client {
    /// Looks for a signature of an image that has a digest.
    ///
    /// # Errors
    ///
    /// The registry cannot be reached, denies access, or sends other content than it announces.
    pub fn verify_signature(
        &self,
        reference: &Reference,
        digest: &Digest,
        required: &Requirement<'_>,
    ) -> Result<Verification> {
        let sessions = self.sessions(&reference.registry)?;
        let mut reasons = BTreeSet::new();
        let mut error = None;
        let is_usable = |session: &&crate::session::Session| !session.is_unreachable();
        let (registry, mirrors) = sessions.split_last().expect("a registry has at least itself");
        // A mirror may have the image without its signatures.
        for session in mirrors.iter().filter(is_usable).chain([registry]) {
            error = None;
            match session.candidates(reference, digest, &mut reasons) {
                Ok(candidates) => {
                    for candidate in candidates {
                        match check(&candidate.claim(required.keys), reference, digest, required) {
                            Ok((key, repository)) => {
                                let key = required.keys[key].name().to_owned();
                                let place = candidate.place;
                                return Ok(Verification::Verified(Signature { key, place, repository }));
                            }
                            Err(why) => drop(reasons.insert(why)),
                        }
                    }
                }
                Err(failed) => error = Some(failed),
            }
        }
        match error {
            Some(error) => Err(error),
            None => Ok(Verification::Refused(refusal(reference, digest, &reasons))),
        }
    }
}

fn refusal(reference: &Reference, digest: &Digest, reasons: &BTreeSet<String>) -> String {
    let name = Reference { tag: None, digest: Some(digest.clone()), ..reference.clone() }.familiar();
    if reasons.is_empty() {
        return format!("the image `{name}` is not signed");
    }
    let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
    format!("the image `{name}` has no valid signature: {}", reasons.join("; "))
}

/// Whether a claim is about the image; the number of the key and the repository of the claim, or the error.
fn check(
    claim: &std::result::Result<Claim, String>,
    reference: &Reference,
    digest: &Digest,
    required: &Requirement<'_>,
) -> std::result::Result<(usize, Option<String>), String> {
    let claim = claim.as_ref().map_err(Clone::clone)?;
    if !claim.digests.contains(&digest.to_string()) {
        let named = claim.digests.first().map_or("no digest", String::as_str);
        return Err(format!("a signature is for another image, {named}"));
    }
    // An empty name states nothing.
    let Some(signed) = claim.repository.as_deref().filter(|name| !name.is_empty()) else {
        return Ok((claim.key, None));
    };
    let is_own = signed.parse::<Reference>().is_ok_and(|signed| {
        (&signed.registry, &signed.repository) == (&reference.registry, &reference.repository)
    });
    if !is_own && !required.any_name {
        return Err(format!("a signature is for the name `{signed}`"));
    }
    Ok((claim.key, Some(signed.to_owned())))
}

#[cfg(test)]
mod tests;
