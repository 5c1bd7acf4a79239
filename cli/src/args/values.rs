//! Shared by the options of several commands: value parsers, and the order in `--help`.

#[cfg(target_os = "linux")]
use std::time::Duration;

/// The display order of global options: after the options of a command, and before `--help` (999).
pub(super) const GLOBAL_OPTION_ORDER: usize = 990;

pub(super) fn parse_set(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// `10s`, `1h 30m`, `7d`; a plain number is seconds.
#[cfg(target_os = "linux")]
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|_| "write a time such as `10s`, `5m`, `2h` or `7d`".to_owned())
}
