//! Secrets that cannot be guessed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jobc_sys::error::{Error, Result};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};

/// A token of 256 random bits, as text for addresses.
pub(crate) fn token() -> Result<String> {
    let mut bytes = [0; 32];
    // The kernel returns up to 256 bytes whole.
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| Error::system("get random numbers", errno))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The digest by which a token is kept and compared.
///
/// How long a comparison of digests takes says nothing about the token, since the digest of a guess cannot be chosen.
pub(crate) fn digest(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether two texts are equal, in a time that depends on their lengths alone.
pub(crate) fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
