//! Ways to show diagnostics, one a file.

mod github;
mod json;
mod region;
mod sarif;
mod short;
mod text;

use super::{Diagnostic, Severity};
use crate::source::Sources;
use jobc_schema::plural;

pub use json::{Edit, Finding, Fix, Label, Location, Position, Report};
pub use text::TextStyle;

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Excerpts of the source with marks, for people.
    #[default]
    Text,
    /// One line a finding: `job.yaml:3:5: error[J0001]: message`.
    Short,
    /// Our own JSON; [`Report`] describes it.
    Json,
    /// SARIF 2.1.0, which code hosts and editors read.
    Sarif,
    /// Commands that GitHub Actions turns into annotations.
    Github,
}

/// Writes diagnostics in a format; `style` matters to [`Format::Text`] only.
pub fn render(format: Format, sources: &Sources, diagnostics: &[Diagnostic], style: &TextStyle) -> String {
    match format {
        Format::Text => text::render(sources, diagnostics, *style),
        Format::Short => short::render(sources, diagnostics),
        Format::Json => json::render(sources, diagnostics),
        Format::Sarif => sarif::render(sources, diagnostics),
        Format::Github => github::render(sources, diagnostics),
    }
}

/// The last line of a run, such as `2 errors and 1 warning`; `None` where there is nothing of either.
pub fn summary(diagnostics: &[Diagnostic]) -> Option<String> {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let words = |n: usize, word: &str| (n > 0).then(|| plural(n, word));
    let parts: Vec<String> =
        [words(count(Severity::Error), "error"), words(count(Severity::Warning), "warning")]
            .into_iter()
            .flatten()
            .collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

#[cfg(test)]
mod tests;
