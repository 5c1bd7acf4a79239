//! Times of records in the time zone of this host.

use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use jobc_place::time::Time;
use jobc_schema::Seconds;
use jobc_schema::queueing::StartTime;

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
        let local = self.zoned(time);
        let is_utc = local.offset() == Offset::UTC;
        local.strftime(if is_utc { "%F %T UTC" } else { "%F %T %:z" }).to_string()
    }

    /// The time of the day to the millisecond: `14:31:53.250`.
    pub(crate) fn time_of_day(&self, time: Time) -> String {
        self.zoned(time).strftime("%T%.3f").to_string()
    }

    /// The moment of an earliest start that is written at `now`; none if no calendar reaches it. A time that the zone
    /// skips when summer time begins is as much later, as `date(1)` has it.
    pub(crate) fn start(&self, start: StartTime, now: Time) -> Option<Time> {
        let of_day = |day: Date, seconds: u32, zone: &TimeZone| {
            let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let part = |number: u32| i8::try_from(number).ok();
            let local = day.at(part(hour)?, part(minute)?, part(second)?, 0);
            let moment = zone.to_timestamp(local).ok()?;
            Some(Time::from_millis(u64::try_from(moment.as_millisecond()).unwrap_or(0)))
        };
        match start {
            StartTime::In(Seconds(seconds)) => {
                Some(Time::from_millis(now.millis().saturating_add(seconds * 1000)))
            }
            StartTime::TimeOfDay(seconds) => {
                let today = self.zoned(now).date();
                let time = of_day(today, seconds, &self.0).filter(|time| *time > now);
                time.or_else(|| of_day(today.tomorrow().ok()?, seconds, &self.0))
            }
            StartTime::At { date: (year, month, day), seconds, offset } => {
                let day = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
                let zone = match offset {
                    Some(offset) => TimeZone::fixed(Offset::from_seconds(offset).ok()?),
                    None => self.0.clone(),
                };
                of_day(day, seconds, &zone)
            }
        }
    }

    fn zoned(&self, time: Time) -> Zoned {
        let millis = i64::try_from(time.millis()).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).to_zoned(self.0.clone())
    }
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

    /// date(1) says the same: `TZ=CET-1CEST,M3.5.0,M10.5.0/3 date -d 2026-12-24T22:00 +%s`.
    #[test]
    fn start_times_are_in_the_zone_of_the_host() {
        let zone = Zone::of(Some("CET-1CEST,M3.5.0,M10.5.0/3"));
        // 2026-11-21 14:31:53 there.
        let now = Time::from_millis(1_795_267_913_250);
        let at = |text: &str| zone.start(StartTime::parse(text).unwrap(), now).unwrap().to_string();
        assert_eq!(at("90s"), "2026-11-21T13:33:23.250Z");
        assert_eq!(at("22:00"), "2026-11-21T21:00:00.000Z");
        assert_eq!(at("14:31"), "2026-11-22T13:31:00.000Z");
        assert_eq!(at("2026-12-24T22:00"), "2026-12-24T21:00:00.000Z");
        assert_eq!(at("2026-07-01 08:00:01"), "2026-07-01T06:00:01.000Z");
        assert_eq!(at("2026-12-24T22:00-03:30"), "2026-12-25T01:30:00.000Z");
        assert_eq!(at("2026-12-24T22:00Z"), "2026-12-24T22:00:00.000Z");
        // Summer time skips this hour.
        assert_eq!(at("2027-03-28T02:30"), "2027-03-28T01:30:00.000Z");
    }
}
