//! Options that are a time.

use std::time::Duration;

/// `10s`, `1h 30m`, `7d`; a plain number is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|_| "write a time such as `10s`, `5m`, `2h` or `7d`".to_owned())
}
