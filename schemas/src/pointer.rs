//! JSON Pointers (RFC 6901): how the passes name a place in a document.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

/// A place in a document, such as `/roles/train/resources/gpu`; the empty pointer is the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pointer(String);

impl Pointer {
    /// The root of a document.
    pub const ROOT: Self = Self(String::new());

    /// Wraps a pointer that is already escaped.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The place of a key below this one.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut text = String::with_capacity(self.0.len() + key.len() + 1);
        text.push_str(&self.0);
        text.push('/');
        text.push_str(&escape(key));
        Self(text)
    }

    /// The place of several keys below this one, one under the other.
    #[must_use]
    pub fn keys(&self, keys: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        keys.into_iter().fold(self.clone(), |at, key| at.key(key.as_ref()))
    }

    /// The place of a list's item.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut text = self.0.clone();
        let _ = write!(text, "/{index}");
        Self(text)
    }

    /// The place above, or nothing at the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.rfind('/').map(|end| Self(self.0[..end].to_owned()))
    }

    /// The last segment, unescaped.
    pub fn last(&self) -> Option<String> {
        self.segments().last()
    }

    /// The unescaped segments from the root down.
    pub fn segments(&self) -> impl Iterator<Item = String> + '_ {
        self.0.split('/').skip(1).map(unescape)
    }

    /// The pointer as text, without a copy.
    pub fn into_string(self) -> String {
        self.0
    }

    /// The pointer as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key as a segment of a pointer (RFC 6901, section 3).
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The key of a segment.
pub fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_escaped_and_come_back() {
        let at = Pointer::ROOT.keys(["roles", "a/b~c"]).index(3);
        assert_eq!(at.as_str(), "/roles/a~1b~0c/3");
        assert_eq!(at.segments().collect::<Vec<_>>(), ["roles", "a/b~c", "3"]);
        assert_eq!(at.parent().unwrap().as_str(), "/roles/a~1b~0c");
        assert_eq!(Pointer::ROOT.parent(), None);
    }
}
