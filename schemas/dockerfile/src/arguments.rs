//! Build arguments, as they are before any stage.

use indexmap::IndexMap;

/// The values a build begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Those given for this build.
    pub given: IndexMap<String, String>,
    /// `ARG`s before the first `FROM`, and those that every builder knows, such as `TARGETARCH`.
    pub globals: IndexMap<String, String>,
}

impl Arguments {
    /// The value of an `ARG NAME` of a stage that has no default.
    pub(super) fn known(&self, name: &str) -> Option<&String> {
        self.given.get(name).or_else(|| self.globals.get(name))
    }
}
