//! Why a backend does not do what a job asks.

use std::fmt;

/// Why a backend cannot express a request, and the closest alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl From<String> for Unsupported {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for Unsupported {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl From<Unsupported> for String {
    fn from(error: Unsupported) -> Self {
        error.0
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a plug-in violates the contract, or cannot be used: words that follow a colon, such as `it writes no files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginError(String);

impl<T: Into<String>> From<T> for PluginError {
    fn from(what: T) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PluginError {}
