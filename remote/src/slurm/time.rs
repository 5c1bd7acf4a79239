//! Times, which Slurm and the scripts write in seconds since 1970.

use std::time::{Duration, SystemTime};

use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result};

/// A time as the other places write it (RFC 3339).
pub(crate) fn rfc3339(seconds: u64) -> String {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    humantime::format_rfc3339_seconds(at.unwrap_or(SystemTime::UNIX_EPOCH)).to_string()
}

/// The moment of a number of seconds.
pub(crate) fn moment(seconds: u64) -> Time {
    Time::from_millis(seconds.saturating_mul(1000))
}

/// A number of seconds as Slurm prints it; `N/A`, `Unknown` and 0 are none.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    text.parse().ok().filter(|seconds| *seconds > 0)
}

/// A time as users write it (RFC 3339), in seconds.
pub(crate) fn parse(text: &str) -> Result<u64> {
    let wrong = || Error::new(Kind::Config, format!("invalid time `{}`", text.escape_debug()));
    let at = humantime::parse_rfc3339(text).map_err(|_| wrong())?;
    Ok(at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// The time on this host.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_times() {
        assert_eq!(rfc3339(1_600_000_000), "2020-09-13T12:26:40Z");
        assert_eq!((seconds("12"), seconds("0"), seconds("N/A")), (Some(12), None, None));
        assert_eq!(parse("2020-09-13T12:26:40.5Z").unwrap(), 1_600_000_000);
        assert!(parse("yesterday").is_err());
        assert!(now() > 1_700_000_000);
    }
}
