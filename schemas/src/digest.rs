//! Digests of content (image-spec, descriptor.md): the name of a blob, and the proof of its integrity.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

/// The digest of a content, `sha256:…` or `sha512:…` with lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// The two registered algorithms that registries use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// 64 digits.
    Sha256,
    /// 128 digits.
    Sha512,
}

impl Algorithm {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// Its name in digests and in the paths of blobs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl Digest {
    /// The SHA-256 digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// The first twelve digits, as shown to people.
    pub fn short(&self) -> &str {
        &self.hex[..12]
    }
}

/// The error for text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestError {
    /// The text.
    pub text: String,
    /// What is wrong with it, after a colon.
    pub why: String,
}

impl DigestError {
    /// What to write instead.
    pub fn help(&self) -> &'static str {
        "write `sha256:` and 64 hexadecimal digits in lower case"
    }
}

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a digest: {}", self.text, self.why)
    }
}

impl std::error::Error for DigestError {}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let refused = |why: &str| Err(DigestError { text: text.to_owned(), why: why.to_owned() });
        let Some((name, hex)) = text.split_once(':') else { return refused("it names no algorithm") };
        let Some(algorithm) = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name) else {
            return refused("its algorithm is neither sha256 nor sha512");
        };
        if hex.len() != algorithm.digits() {
            return refused(&format!(
                "{name} has {} digits, not {}",
                algorithm.digits(),
                hex.chars().count()
            ));
        }
        if !hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            return refused("its digits are 0 to 9 and a to f");
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A digest that is being calculated.
#[derive(Clone, Debug)]
pub struct Hasher(State);

#[derive(Clone, Debug)]
enum State {
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

impl Hasher {
    /// Begins.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => State::Sha256(Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Box::new(Sha512::new())),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// The digest of all bytes.
    pub fn finish(self) -> Digest {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self.0 {
            State::Sha256(state) => Digest { algorithm: Algorithm::Sha256, hex: hex(&state.finalize()) },
            State::Sha512(state) => Digest { algorithm: Algorithm::Sha512, hex: hex(&state.finalize()) },
        }
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new(Algorithm::Sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_content_has_its_known_digest() {
        let digest = Digest::of(b"");
        assert_eq!(
            digest.to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(digest, digest.to_string().parse().unwrap());
    }

    #[test]
    fn invalid_digests_have_a_reason() {
        let check = |text: &str, why: &str| {
            let error = text.parse::<Digest>().unwrap_err();
            assert!(error.to_string().ends_with(why), "{error}");
        };
        check("busybox", "it names no algorithm");
        check("md5:d41d8cd98f00b204e9800998ecf8427e", "its algorithm is neither sha256 nor sha512");
        check("sha256:abc", "sha256 has 64 digits, not 3");
        check(&format!("sha256:{}", "A".repeat(64)), "its digits are 0 to 9 and a to f");
        check(&format!("sha256:../{}", "a".repeat(61)), "its digits are 0 to 9 and a to f");
    }
}
