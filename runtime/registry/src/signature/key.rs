//! Public keys, as `cosign generate-key-pair` and `openssl pkey -pubout` write them.

use jobc_sys::error::{Error, Kind, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer};
use webpki::RawPublicKeyEntity;
use webpki::ring::{
    ECDSA_P256_SHA256, ECDSA_P384_SHA256, ECDSA_P384_SHA384, ED25519, RSA_PKCS1_2048_8192_SHA256,
};

/// The signature algorithms. A key has one or two of them.
static ALGORITHMS: [&dyn SignatureVerificationAlgorithm; 5] =
    [ECDSA_P256_SHA256, ECDSA_P384_SHA256, ECDSA_P384_SHA384, ED25519, RSA_PKCS1_2048_8192_SHA256];

/// A public key.
#[derive(Clone, Debug)]
pub struct PublicKey {
    name: String,
    key: SubjectPublicKeyInfoDer<'static>,
}

impl PublicKey {
    /// Reads a key in PEM form. The name is for messages.
    ///
    /// # Errors
    ///
    /// It is not a public key, or its type is not supported.
    pub fn from_pem(name: &str, text: &[u8]) -> Result<Self> {
        let wrong = |what: &str| Err(Error::new(Kind::Config, format!("`{name}` {what}")).help(HELP));
        let Ok(key) = SubjectPublicKeyInfoDer::from_pem_slice(text) else {
            let text = String::from_utf8_lossy(text);
            let label = text.split_once("-----BEGIN ").and_then(|(_, rest)| rest.split_once("-----"));
            return match label {
                Some(("PUBLIC KEY", _)) | None => wrong("is not a public key in PEM form"),
                Some((label, _)) => wrong(&format!("has the label `{label}`, not `PUBLIC KEY`")),
            };
        };
        let key = Self { name: name.to_owned(), key };
        let Ok(entity) = RawPublicKeyEntity::try_from(&key.key) else {
            return wrong("is not a public key in PEM form");
        };
        let is_supported = ALGORITHMS.iter().any(|algorithm| {
            let tried = entity.verify_signature(*algorithm, b"", b"");
            // Of the right kind, the signature is wrong; of another kind, the algorithm is.
            matches!(tried, Ok(()) | Err(webpki::Error::InvalidSignatureForPublicKey))
        });
        if is_supported { Ok(key) } else { wrong("is a public key of an unsupported kind") }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a signature of a message was made with it.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(entity) = RawPublicKeyEntity::try_from(&self.key) else { return false };
        ALGORITHMS.iter().any(|algorithm| entity.verify_signature(*algorithm, message, signature).is_ok())
    }
}

const HELP: &str = "a key can be ECDSA (P-256, P-384), Ed25519 or RSA of 2048 to 8192 bits; `cosign generate-key-pair` writes cosign.pub, \
     and `cosign public-key` prints the public part of a key";
