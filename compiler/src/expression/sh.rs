//! The filter `sh`: one word for a shell.

use super::holes::{TextSegment, mark, stretches};

/// Quotes a text so that a POSIX shell reads it as one word.
///
/// Placeholders stay outside the quotes: some targets fill them with a variable of the shell.
pub(super) fn quote(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if text.is_empty() {
        return "''".to_owned();
    }
    stretches(text)
        .into_iter()
        .map(|stretch| match stretch {
            TextSegment::Mark(inside) => mark(inside),
            TextSegment::Text(text) if text.chars().all(safe) => text.to_owned(),
            TextSegment::Text(text) => format!("'{}'", text.replace('\'', r"'\''")),
        })
        .collect()
}
