//! Mistakes in settings.

use std::fmt;

/// Why settings cannot be used: where, what, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsError {
    place: Option<String>,
    message: String,
    help: String,
}

impl SettingsError {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { place: None, message: message.into(), help: help.into() }
    }

    /// What is wrong, with its place.
    pub(crate) fn message(&self) -> String {
        self.place.iter().map(|place| format!("{place}: ")).collect::<String>() + &self.message
    }

    /// What to do.
    pub(crate) fn help(&self) -> &str {
        &self.help
    }

    /// With the place of the mistake.
    #[must_use]
    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}\n = help: {}", self.message(), self.help())
    }
}
