//! When a job starts, and which jobs it comes before: `priority` and `after` of a job, `priorities` of a target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;
use crate::quantity::QuantityError;

/// A priority: a number, or a name of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Priority {
    /// A number; higher is sooner.
    Number(#[schemars(range(min = -100, max = 100))] i8),
    /// An entry of `priorities` of the target.
    Name(String),
}

/// What a priority is called at a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityEntry {
    /// Number of the priority in the queue of a host. A job that writes this number gets the entry too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100), extend("examples" = [50]))]
    pub value: Option<i8>,
    /// PriorityClass of the pods on Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["high"]))]
    pub class: Option<String>,
    /// WorkloadPriorityClass of Kueue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["production"]))]
    pub kueue: Option<String>,
    /// Quality of service of Slurm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["urgent"]))]
    pub qos: Option<String>,
}

/// The priority of a job at its target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityPlan {
    /// Its name in the job file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the target calls it.
    pub entry: PriorityEntry,
}

/// The earliest start of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTime {
    /// So long after the job is submitted.
    In(Seconds),
    /// The next time of the day: seconds since midnight.
    TimeOfDay(u32),
    /// A day and a time.
    At {
        /// Year, month and day.
        date: (i16, u8, u8),
        /// Seconds since midnight.
        seconds: u32,
        /// Seconds east of UTC; none for the zone of the place that starts the job.
        offset: Option<i32>,
    },
}

impl StartTime {
    /// Reads `2h`, `22:00` or `2026-12-24T22:00`, with a zone such as `Z` or `+01:00` if it is not that of the place.
    ///
    /// # Errors
    /// Another form, or a day or time that the calendar does not have.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let wrong = || {
            QuantityError(format!(
                "`{text}` is not a time or duration; write for example `22:00`, `2026-12-24T22:00` or `2h`"
            ))
        };
        let impossible = |what: &str| QuantityError(format!("`{text}` is not a {what} of the calendar"));
        if text.ends_with(|c: char| c.is_ascii_lowercase()) {
            return Seconds::parse(text).map(Self::In);
        }
        let time = |part: &str| {
            let (seconds, exists) = time_of_day(part).ok_or_else(wrong)?;
            if exists { Ok(seconds) } else { Err(impossible("time")) }
        };
        let Some((date, clock)) = text.split_once(['T', ' ']) else {
            return time(text).map(Self::TimeOfDay);
        };
        let (clock, offset) = match clock.find(['Z', '+', '-']) {
            None => (clock, None),
            Some(at) if &clock[at..] == "Z" => (&clock[..at], Some(0)),
            Some(at) => {
                let seconds = i32::try_from(time(&clock[at + 1..])?).map_err(|_| wrong())?;
                (&clock[..at], Some(if clock[at..].starts_with('-') { -seconds } else { seconds }))
            }
        };
        let seconds = time(clock)?;
        let date = date_of(date).ok_or_else(wrong)?;
        if !is_day(date) {
            return Err(impossible("day"));
        }
        Ok(Self::At { date, seconds, offset })
    }
}

/// `22:00` or `22:00:30` in seconds since midnight, and whether a day has it; none if it has another form.
fn time_of_day(text: &str) -> Option<(u32, bool)> {
    let parts = numbers(text, ':', &[2, 2]).or_else(|| numbers(text, ':', &[2, 2, 2]))?;
    let (hour, minute, second) = (parts[0], parts[1], parts.get(2).copied().unwrap_or(0));
    Some((hour * 3600 + minute * 60 + second, hour < 24 && minute < 60 && second < 60))
}

fn date_of(text: &str) -> Option<(i16, u8, u8)> {
    let parts = numbers(text, '-', &[4, 2, 2])?;
    Some((parts[0].try_into().ok()?, parts[1].try_into().ok()?, parts[2].try_into().ok()?))
}

/// Numbers of so many digits, with a character between them.
fn numbers(text: &str, between: char, digits: &[usize]) -> Option<Vec<u32>> {
    let parts: Vec<&str> = text.split(between).collect();
    let fits = |(part, digits): (&&str, &usize)| {
        part.len() == *digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() != digits.len() || !parts.iter().zip(digits).all(fits) {
        return None;
    }
    parts.iter().map(|part| part.parse().ok()).collect()
}

fn is_day((year, month, day): (i16, u8, u8)) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u8::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_are_parsed() {
        let at = |date, seconds, offset| Ok(StartTime::At { date, seconds, offset });
        assert_eq!(StartTime::parse("2h"), Ok(StartTime::In(Seconds(7200))));
        assert_eq!(StartTime::parse("22:00"), Ok(StartTime::TimeOfDay(79_200)));
        assert_eq!(StartTime::parse("2028-02-29T00:00:05"), at((2028, 2, 29), 5, None));
        assert_eq!(StartTime::parse("2026-12-24 06:30Z"), at((2026, 12, 24), 23_400, Some(0)));
        assert_eq!(StartTime::parse("2026-12-24T06:30-03:30"), at((2026, 12, 24), 23_400, Some(-12_600)));
        let message = |text: &str| StartTime::parse(text).unwrap_err().0;
        for text in
            ["", "tomorrow!", "7", "2026-12-24", "22:00Z", "1:5", "2026-1-2T10:00", "2026-12-24T10:00+1"]
        {
            assert_eq!(
                message(text),
                format!(
                    "`{text}` is not a time or duration; write for example `22:00`, `2026-12-24T22:00` or `2h`"
                )
            );
        }
        assert_eq!(message("2027-02-29T10:00"), "`2027-02-29T10:00` is not a day of the calendar");
        assert_eq!(message("24:00"), "`24:00` is not a time of the calendar");
        assert_eq!(message("2w"), "`2w` is not a duration; write for example `90s`, `30m`, `12h` or `2d`");
    }
}
