//! Times of crontab(5).

use std::collections::BTreeSet;

use crate::quantity::QuantityError;

/// The times of a cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// The values of a field; none if it is `*`.
type Field = Option<BTreeSet<u8>>;

/// A field: its name, its least and its greatest value, and names of values from the least on.
struct Form {
    name: &'static str,
    least: u8,
    greatest: u8,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FORMS: [Form; 5] = [
    Form { name: "minute", least: 0, greatest: 59, names: &[] },
    Form { name: "hour", least: 0, greatest: 23, names: &[] },
    Form { name: "day of the month", least: 1, greatest: 31, names: &[] },
    Form { name: "month", least: 1, greatest: 12, names: MONTHS },
    Form { name: "day of the week", least: 0, greatest: 7, names: WEEKDAYS },
];

const MACROS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// The first field that is wrong, or times on which programs disagree.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let known = MACROS.iter().find(|(name, _)| text.trim().eq_ignore_ascii_case(name));
        let text = known.map_or(text, |(_, fields)| fields);
        let words: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = words[..] else {
            return Err(QuantityError(format!(
                "`{text}` has {} fields; write five: minute, hour, day of the month, month, day of the week, as in `0 3 * * *`",
                words.len()
            )));
        };
        let mut week = field(weekdays, &FORMS[4])?;
        if let Some(week) = &mut week {
            // Both are Sunday.
            if week.remove(&7) {
                week.insert(0);
            }
        }
        let begins = |word: &str| word.starts_with('*');
        let cron = Self {
            minutes: field(minutes, &FORMS[0])?,
            hours: field(hours, &FORMS[1])?,
            days: field(days, &FORMS[2])?,
            months: field(months, &FORMS[3])?,
            weekdays: week,
        };
        if cron.days.is_some() && cron.weekdays.is_some() && (begins(days) || begins(weekdays)) {
            return Err(QuantityError(format!(
                "of `{days}` and `{weekdays}`, programs differ on whether one day is enough; write one of the fields as `*`, or both as lists of days"
            )));
        }
        if cron.weekdays.is_none() && cron.never() {
            return Err(QuantityError(format!("no year has a day of `{days} {months}`")));
        }
        Ok(cron)
    }

    /// Whether none of the months has any of the days.
    fn never(&self) -> bool {
        let (Some(days), Some(months)) = (&self.days, &self.months) else { return false };
        let longest = |month: &u8| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let max = months.iter().map(longest).max().unwrap_or(31);
        days.iter().all(|day| *day > max)
    }

    /// The same times as values of `OnCalendar=` (systemd.time(7)); one of them is enough.
    pub fn on_calendar(&self, zone: Option<&str>) -> Vec<String> {
        let list = |field: &Field| {
            field.as_ref().map_or_else(
                || "*".to_owned(),
                |values| values.iter().map(|value| format!("{value:02}")).collect::<Vec<_>>().join(","),
            )
        };
        let week = self.weekdays.as_ref().map(|days| {
            let name = |day: &u8| {
                let name = WEEKDAYS[usize::from(*day)];
                format!("{}{}", &name[..1], name[1..].to_ascii_lowercase())
            };
            days.iter().map(name).collect::<Vec<_>>().join(",") + " "
        });
        let time = format!("{}:{}:00", list(&self.hours), list(&self.minutes));
        let zone = zone.map(|zone| format!(" {zone}")).unwrap_or_default();
        let line = |week: &str, days: &str| format!("{week}*-{}-{days} {time}{zone}", list(&self.months));
        match (&self.days, &week) {
            // In crontab(5) one of both is enough.
            (Some(_), Some(week)) => vec![line("", &list(&self.days)), line(week, "*")],
            (_, week) => vec![line(week.as_deref().unwrap_or_default(), &list(&self.days))],
        }
    }
}

fn field(text: &str, form: &Form) -> Result<Field, QuantityError> {
    let mut values = BTreeSet::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => {
                let number = step.parse::<u8>().ok().filter(|step| *step > 0);
                let number =
                    number.ok_or_else(|| wrong(form, part, "has a step that is not a number from 1"))?;
                (range, Some(number))
            }
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (form.least, if form.names == WEEKDAYS { 6 } else { form.greatest }),
            Some((first, last)) => (value(first, form)?, value(last, form)?),
            // `5/10` is from 5 on in some programs, and 5 alone in others.
            None if step.is_some() => return Err(wrong(form, part, "has a step without a range")),
            None => (value(range, form)?, value(range, form)?),
        };
        if first > last {
            return Err(wrong(form, part, "is a range that ends before it begins"));
        }
        values.extend((first..=last).step_by(usize::from(step.unwrap_or(1))));
    }
    Ok(Some(values).filter(|_| text != "*"))
}

fn value(text: &str, form: &Form) -> Result<u8, QuantityError> {
    let place = form.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    let by_name = place.and_then(|at| u8::try_from(at).ok()).map(|at| at + form.least);
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = by_name.or_else(|| text.parse().ok().filter(|_| digits));
    number.filter(|number| (form.least..=form.greatest).contains(number)).ok_or_else(|| {
        let words = form.names.first().zip(form.names.last());
        let words = words.map(|(first, last)| format!(" or {first} to {last}")).unwrap_or_default();
        wrong(form, text, &format!("is not a number from {} to {}{words}", form.least, form.greatest))
    })
}

fn wrong(form: &Form, text: &str, why: &str) -> QuantityError {
    QuantityError(format!("the {}: `{text}` {why}", form.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_times_of_systemd() {
        let times = |text: &str| Cron::parse(text).unwrap().on_calendar(None).join(" | ");
        assert_eq!(times("0 3 * * *"), "*-*-* 03:00:00");
        assert_eq!(times("@Weekly"), "Sun *-*-* 00:00:00");
        assert_eq!(
            times("*/20 9-17/4 * jan,DEC MON-wed,7"),
            "Sun,Mon,Tue,Wed *-01,12-* 09,13,17:00,20,40:00"
        );
        assert_eq!(times("30 4 1,15 * 5"), "*-*-01,15 04:30:00 | Fri *-*-* 04:30:00");
        let cron = Cron::parse("5 * 29 2 *").unwrap();
        assert_eq!(cron.on_calendar(Some("Europe/Berlin")), ["*-02-29 *:05:00 Europe/Berlin"]);
    }

    #[test]
    fn errors_name_the_field() {
        let message = |text: &str| Cron::parse(text).unwrap_err().0;
        assert!(message("0 3 * *").starts_with("`0 3 * *` has 4 fields; write five"));
        assert_eq!(message("60 3 * * *"), "the minute: `60` is not a number from 0 to 59");
        assert_eq!(
            message("0 3 * * FRY"),
            "the day of the week: `FRY` is not a number from 0 to 7 or SUN to SAT"
        );
        assert_eq!(message("0 3-1 * * *"), "the hour: `3-1` is a range that ends before it begins");
        assert_eq!(message("*/0 * * * *"), "the minute: `*/0` has a step that is not a number from 1");
        assert_eq!(message("5/10 * * * *"), "the minute: `5/10` has a step without a range");
        assert_eq!(message("0 0 30 2 *"), "no year has a day of `30 2`");
        assert!(message("0 0 */2 * 1").starts_with("of `*/2` and `1`, programs differ"));
        assert!(message("@reboot").contains("has 1 fields"));
    }
}
