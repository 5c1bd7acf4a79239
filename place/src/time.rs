//! A moment, as records and events write it.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in UTC to the millisecond, written as RFC 3339: `2026-11-21T13:31:53.250Z`.
///
/// Only for display and sorting: no interval is measured with it, since the clock may jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The moment now.
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// A moment of the system's clock; one before 1970 is 1970.
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The time this many milliseconds after 1970.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The moment of a text (RFC 3339, in UTC); fractions of a second and the `Z` may be absent.
    pub fn parse(text: &str) -> Option<Self> {
        humantime::parse_rfc3339_weak(text.trim_end_matches('Z')).ok().map(Self::of)
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment; `None` if the clock went back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    fn system(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0)
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        time.system()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_millis(self.system()).fmt(f)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        humantime::parse_rfc3339(&text).map(Self::of).map_err(serde::de::Error::custom)
    }
}

/// A duration for people, in its largest unit and the next one if useful: `45 s`, `3 min`, `2 h 5 min`.
pub fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match () {
        () if seconds < 10 => format!("{}.{} s", seconds, time.subsec_millis() / 100),
        () if minutes < 2 => format!("{seconds} s"),
        () if hours < 1 => format!("{minutes} min"),
        () if days < 1 => format!("{hours} h {} min", minutes % 60),
        () if days < 10 => format!("{days} d {} h", hours % 24),
        () => format!("{days} d"),
    }
}

/// The time since a moment, for people.
pub fn format_ago(time: Time, now: Time) -> String {
    format!("{} ago", format_duration(now.since(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let shown = |seconds: f64| format_duration(Duration::from_secs_f64(seconds));
        assert_eq!(
            [0.25, 9.99, 10.0, 119.0, 120.0, 3599.0, 3600.0, 86_399.0, 90_000.0, 8_640_000.0].map(shown),
            [
                "0.2 s",
                "9.9 s",
                "10 s",
                "119 s",
                "2 min",
                "59 min",
                "1 h 0 min",
                "23 h 59 min",
                "1 d 1 h",
                "100 d"
            ]
        );
    }

    #[test]
    fn a_moment_is_written_as_people_and_programs_read_it() {
        let time = Time::from_millis(1_795_267_913_250);
        assert_eq!(serde_json::to_string(&time).unwrap(), r#""2026-11-21T13:31:53.250Z""#);
        assert_eq!(serde_json::from_str::<Time>(r#""2026-11-21T13:31:53.250Z""#).unwrap(), time);
        assert_eq!(time.since(Time::from_millis(1_795_267_913_000)), Duration::from_millis(250));
        assert_eq!(Time::default().since(time), Duration::ZERO);
    }
}
