//! Percent-encoding (RFC 3986, section 2.1).

pub use percent_encoding::AsciiSet;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but the unreserved characters.
pub const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// All but the unreserved characters and `/`.
pub const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// Encodes the bytes of a text that are in a set, and all outside of ASCII.
pub fn encode(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}

/// Encodes a value of a query or a segment of a path.
pub fn encode_segment(text: &str) -> String {
    encode(text, SEGMENT)
}

/// Encodes a path.
pub fn encode_path(text: &str) -> String {
    encode(text, PATH)
}

/// Decodes a text; none if the result is not UTF-8. A `%` without two digits stays as it is.
pub fn decode(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded_and_come_back() {
        let text = "/a b/100%+~名.yaml";
        assert_eq!(encode_path(text), "/a%20b/100%25%2B~%E5%90%8D.yaml");
        assert_eq!(encode_segment(text), "%2Fa%20b%2F100%25%2B~%E5%90%8D.yaml");
        assert_eq!(decode(&encode_segment(text)).as_deref(), Some(text));
        assert_eq!(decode("100%-%zz").as_deref(), Some("100%-%zz"));
        assert_eq!(decode("%ff"), None);
    }
}
