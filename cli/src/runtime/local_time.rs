//! Times of records in the time zone of this host.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jobc_place::time::Time;

/// The time zone of this host, if `TZ` does not name another.
const LOCAL: &str = "/etc/localtime";

/// The time zones by name.
const ZONES: &str = "/usr/share/zoneinfo";

/// A time zone.
#[derive(Clone, Debug)]
pub(crate) struct Zone(TimeZone);

impl Zone {
    /// The zone of this process, as `tzset(3)` finds it; UTC if there is none.
    pub(crate) fn local() -> Self {
        Self::of(std::env::var("TZ").ok().as_deref())
    }

    fn of(variable: Option<&str>) -> Self {
        let file = |path: &Path| {
            let name = path.strip_prefix(ZONES).unwrap_or(path).to_string_lossy().into_owned();
            TimeZone::tzif(&name, &std::fs::read(path).ok()?).ok()
        };
        let zone = match variable {
            None => file(Path::new(LOCAL)),
            Some(text) => {
                let name = text.strip_prefix(':').unwrap_or(text);
                let path: PathBuf = Path::new(ZONES).join(name);
                file(&path).or_else(|| TimeZone::posix(name).ok())
            }
        };
        Self(zone.unwrap_or(TimeZone::UTC))
    }

    /// A zone that is this many hours before UTC.
    #[cfg(test)]
    pub(crate) fn fixed(hours: i8) -> Self {
        Self(TimeZone::fixed(jiff::tz::offset(hours)))
    }

    /// The day and the time with its zone: `2026-11-21 14:31:53 +01:00`.
    pub(crate) fn date_and_time(&self, time: Time) -> String {
        let (local, offset) = self.civil(time);
        let date = format!("{:04}-{:02}-{:02}", local.year(), local.month(), local.day());
        let clock = format!("{:02}:{:02}:{:02}", local.hour(), local.minute(), local.second());
        format!("{date} {clock} {}", offset_text(offset))
    }

    /// The time of the day to the millisecond: `14:31:53.250`.
    pub(crate) fn time_of_day(&self, time: Time) -> String {
        let (local, _) = self.civil(time);
        format!("{:02}:{:02}:{:02}.{:03}", local.hour(), local.minute(), local.second(), local.millisecond())
    }

    fn civil(&self, time: Time) -> (DateTime, Offset) {
        let millis = i64::try_from(time.millis()).unwrap_or(i64::MAX);
        let moment = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
        (self.0.to_datetime(moment), self.0.to_offset(moment))
    }
}

fn offset_text(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    if minutes == 0 {
        return "UTC".to_owned();
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_zone() {
        let time = Time::from_millis(1_795_267_913_250);
        let shown = |variable: &str| Zone::of(Some(variable)).date_and_time(time);
        assert_eq!(shown("UTC0"), "2026-11-21 13:31:53 UTC");
        assert_eq!(shown(""), "2026-11-21 13:31:53 UTC");
        assert_eq!(shown("no zone"), "2026-11-21 13:31:53 UTC");
        assert_eq!(shown("CET-1CEST,M3.5.0,M10.5.0/3"), "2026-11-21 14:31:53 +01:00");
        assert_eq!(shown("NST3:30"), "2026-11-21 10:01:53 -03:30");
        assert_eq!(Zone::fixed(14).date_and_time(time), "2026-11-22 03:31:53 +14:00");
        assert_eq!(Zone::fixed(-8).time_of_day(time), "05:31:53.250");
        let summer = Time::from_millis(1_782_000_000_000);
        let central_europe = Zone::of(Some("CET-1CEST,M3.5.0,M10.5.0/3"));
        assert_eq!(central_europe.date_and_time(summer), "2026-06-21 02:00:00 +02:00");
    }
}
