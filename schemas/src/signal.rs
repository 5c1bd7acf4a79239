//! Signals by name and by number (signal(7)).

/// Names and numbers on x86_64 and aarch64, which agree; where two names share a number the first is shown.
#[rustfmt::skip]
const NAMES: &[(&str, i32)] = &[
    ("HUP", 1), ("INT", 2), ("QUIT", 3), ("ILL", 4), ("TRAP", 5), ("ABRT", 6), ("BUS", 7), ("FPE", 8),
    ("KILL", 9), ("USR1", 10), ("SEGV", 11), ("USR2", 12), ("PIPE", 13), ("ALRM", 14), ("TERM", 15),
    ("STKFLT", 16), ("CHLD", 17), ("CONT", 18), ("STOP", 19), ("TSTP", 20), ("TTIN", 21), ("TTOU", 22),
    ("URG", 23), ("XCPU", 24), ("XFSZ", 25), ("VTALRM", 26), ("PROF", 27), ("WINCH", 28), ("IO", 29),
    ("PWR", 30), ("SYS", 31), ("IOT", 6), ("POLL", 29), ("CLD", 17),
];

/// The number of a signal, from 1 to 64, by its name, with or without `SIG`, in any case, or by its number.
pub fn number(text: &str) -> Option<i32> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let named = NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let number = named.or_else(|| name.parse().ok()).or_else(|| real_time(name));
    number.filter(|number| (1..=64).contains(number))
}

/// The name of a signal, without `SIG`; `None` for signals that have only a number.
pub fn name(number: i32) -> Option<&'static str> {
    NAMES.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// The usual name of a signal, with `SIG`: `SIGUSR1` for `usr1` and for `10`; `None` for unknown signals.
pub fn full_name(text: &str) -> Option<String> {
    let number = number(text)?;
    Some(match (name(number), number) {
        (Some(name), _) => format!("SIG{name}"),
        (None, 34) => "SIGRTMIN".to_owned(),
        (None, 35..=49) => format!("SIGRTMIN+{}", number - 34),
        (None, 50..=63) => format!("SIGRTMAX-{}", 64 - number),
        (None, 64) => "SIGRTMAX".to_owned(),
        (None, _) => number.to_string(),
    })
}

/// The names of all signals that have one, without `SIG`, by number.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// `RTMIN`, `RTMIN+3`, `RTMAX-1`: 34 to 64, as the C library counts.
fn real_time(name: &str) -> Option<i32> {
    let offset = |text: &str| if text.is_empty() { Some(0) } else { text.parse().ok() };
    let number = if let Some(rest) = name.strip_prefix("RTMIN") {
        34_i32.checked_add(offset(rest)?)?
    } else {
        64_i32.checked_add(offset(name.strip_prefix("RTMAX")?)?)?
    };
    (34..=64).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for (text, expected) in [
            ("TERM", Some(15)),
            ("sigterm", Some(15)),
            ("9", Some(9)),
            ("SIGIOT", Some(6)),
            ("RTMIN+1", Some(35)),
            ("SIGRTMAX-1", Some(63)),
            ("RTMAX+2147483647", None),
            ("0", None),
            ("65", None),
            ("FOO", None),
            ("", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
        assert_eq!((name(6), name(34)), (Some("ABRT"), None));
        let full = ["usr1", "9", "SIGIOT", "34", "RTMAX-1", "64", "FOO"]
            .map(|text| full_name(text).unwrap_or_default());
        assert_eq!(full, ["SIGUSR1", "SIGKILL", "SIGABRT", "SIGRTMIN", "SIGRTMAX-1", "SIGRTMAX", ""]);
    }
}
