//! Shared by the options of several commands: value parsers, and the order in `--help`.

/// The display order of global options: after the options of a command, and before `--help` (999).
pub(crate) const GLOBAL_OPTION_ORDER: usize = 990;

pub(crate) fn parse_set(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
