//! Versions of dotted numbers: `12.4`, `550.54.15`, `8.9`.

use std::cmp::Ordering;
use std::fmt;

/// A version of dotted numbers, kept as written; a missing part counts as 0 when two are compared.
#[derive(Clone, Debug)]
pub struct Version {
    text: String,
    parts: Vec<u32>,
}

impl Version {
    /// Parses a version; `None` for text that is not a list of numbers between dots.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>()?;
        Some(Self { text: text.to_owned(), parts })
    }

    /// The first number.
    pub fn major(&self) -> u32 {
        self.parts[0]
    }

    /// How many numbers were written.
    pub fn precision(&self) -> usize {
        self.parts.len()
    }

    /// Whether another version starts with the numbers of this one: `12.4.1` starts with `12.4`.
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        other.parts.starts_with(&self.parts)
    }

    /// The first numbers alone: `12.4` of `12.4.1`.
    #[must_use]
    pub fn truncate(&self, precision: usize) -> Self {
        let parts: Vec<u32> = self.parts.iter().copied().take(precision.max(1)).collect();
        let text = parts.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        Self { text, parts }
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.parts.len().max(other.parts.len());
        let part = |version: &Self, i: usize| version.parts.get(i).copied().unwrap_or(0);
        (0..length).map(|i| part(self, i).cmp(&part(other, i))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("12.10") > version("12.9"));
        assert!(version("550.54.15") > version("550.54"));
        assert_eq!(version("525"), version("525.0.0"));
        assert!(version("12.4").is_prefix_of(&version("12.4.1")));
        assert!(!version("12.4").is_prefix_of(&version("12.41")));
        assert_eq!(version("11.0.167").truncate(2).to_string(), "11.0");
        for text in ["", "12.", "v1", "12.4-rc1", "-1", "99999999999"] {
            assert!(Version::parse(text).is_none(), "{text:?}");
        }
    }
}
