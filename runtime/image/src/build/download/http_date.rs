//! Dates in HTTP headers (RFC 9110, section 5.6.7), in the one form that servers may send: `Sun, 06 Nov 1994 08:49:37
//! GMT`.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since 1970.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let date = format!("{year}-{month:02}-{day}T{time}Z");
    let time = humantime::parse_rfc3339(&date).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds() {
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for wrong in [
            "",
            "0",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 31 Feb 2026 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
