//! A registry's answers: a challenge on the first line, a content type on the second, then a body.
#![no_main]
use jobc_registry::fuzzing::{read_challenge, read_document, read_refusal};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
    let mut next = || parts.next().unwrap_or_default();
    let (challenge, content_type, body) = (next(), next(), next());
    read_challenge(&String::from_utf8_lossy(challenge));
    read_refusal(body);
    read_document(&String::from_utf8_lossy(content_type), body);
});
