//! The filter `sh`: quotes text as one shell word.

use jobc_schema::shell;

use super::holes::{TextSegment, mark, stretches};

/// Quotes a text so that a POSIX shell reads it as one word.
///
/// Placeholders stay outside the quotes: some targets replace them with a shell variable.
pub(super) fn quote(text: &str) -> String {
    if text.is_empty() {
        return "''".to_owned();
    }
    stretches(text)
        .into_iter()
        .map(|stretch| match stretch {
            TextSegment::Mark(inside) => mark(inside),
            TextSegment::Text(text) => shell::quote(text),
        })
        .collect()
}
