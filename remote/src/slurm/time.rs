//! Times, which Slurm and the scripts write in seconds since 1970.

use std::time::{Duration, SystemTime};

/// A time as the other places write it (RFC 3339).
pub(crate) fn rfc3339(seconds: u64) -> String {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    humantime::format_rfc3339_seconds(at.unwrap_or(SystemTime::UNIX_EPOCH)).to_string()
}

/// A number of seconds as Slurm prints it; `N/A`, `Unknown` and 0 are none.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    text.parse().ok().filter(|seconds| *seconds > 0)
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
        assert!(now() > 1_700_000_000);
    }
}
