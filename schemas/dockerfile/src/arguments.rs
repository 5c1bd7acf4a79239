//! Build arguments before the first stage.

use indexmap::IndexMap;

/// The initial variables of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Arguments given for this build.
    pub given: IndexMap<String, String>,
    /// `ARG`s before the first `FROM`, and those that every builder knows, such as `TARGETARCH`.
    pub globals: IndexMap<String, String>,
}

impl Arguments {
    /// The value of an `ARG NAME` without a default in a stage.
    pub(super) fn known(&self, name: &str) -> Option<&String> {
        self.given.get(name).or_else(|| self.globals.get(name))
    }
}
