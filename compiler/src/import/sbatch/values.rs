//! Values of options: times, memory, GPUs and lists of numbers, as Slurm reads them.

/// The number of array tasks from which a job is refused.
const MAX_TASKS: usize = 10_000;

/// Seconds of a time: minutes, `M:S`, `H:M:S`, `D-H`, `D-H:M` or `D-H:M:S`; 0 for no limit.
pub(super) fn time(text: &str) -> Option<u64> {
    if ["infinite", "unlimited", "-1"].contains(&text.to_ascii_lowercase().as_str()) {
        return Some(0);
    }
    let number = |text: &str| text.parse::<u32>().ok().map(u64::from);
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, text),
    };
    let parts: Vec<u64> = rest.split(':').map(number).collect::<Option<_>>()?;
    let seconds = match (days, &parts[..]) {
        (None, [minutes]) => minutes * 60,
        (None, [minutes, seconds]) => minutes * 60 + seconds,
        (Some(days), [hours]) => (days * 24 + hours) * 3600,
        (Some(days), [hours, minutes]) => (days * 24 + hours) * 3600 + minutes * 60,
        (days, [hours, minutes, seconds]) => (days.unwrap_or(0) * 24 + hours) * 3600 + minutes * 60 + seconds,
        _ => return None,
    };
    Some(seconds)
}

/// KiB of an amount of memory: K, M, G and T are powers of 1024, and a bare number is MiB.
pub(super) fn memory(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['n', 'c']);
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let unit = unit.to_ascii_uppercase();
    let factor = match unit.trim_end_matches('B').trim_end_matches('I') {
        "K" => 1.0,
        "" | "M" => 1024.0,
        "G" => 1024.0 * 1024.0,
        "T" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let kib = number * factor;
    // Larger than any host, or less than nothing.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is checked to be in range"
    )]
    (kib.is_finite() && (0.0..1e15).contains(&kib)).then(|| kib.ceil() as u64)
}

/// Number and model of `[MODEL:]N`, `MODEL`, or a list of them; several models are refused.
pub(super) fn gpus(text: &str) -> Option<(u64, Option<String>)> {
    let text = text.split("(S:").next()?.trim_end_matches(',');
    if text.contains(',') {
        return None;
    }
    match text.rsplit_once(':') {
        Some((model, number)) if !model.is_empty() => Some((number.parse().ok()?, Some(model.to_owned()))),
        _ => match text.parse() {
            Ok(number) => Some((number, None)),
            Err(_) if !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) => {
                Some((1, Some(text.to_owned())))
            }
            Err(_) => None,
        },
    }
}

/// The numbers of `0-9:2,12%4`, and how many run at once.
pub(super) fn array(text: &str) -> Result<(Vec<u64>, Option<u64>), &'static str> {
    const FORM: &str = "is not a list of numbers such as `0-9` or `1,3,5%2`";
    let (list, parallel) = match text.split_once('%') {
        Some((list, parallel)) => (list, Some(parallel.parse().map_err(|_| FORM)?)),
        None => (text, None),
    };
    let mut numbers: Vec<u64> = Vec::new();
    for part in list.trim_matches(['[', ']']).split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let step: usize = step.parse().ok().filter(|step| *step > 0).ok_or(FORM)?;
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u64, u64) = (from.parse().map_err(|_| FORM)?, to.parse().map_err(|_| FORM)?);
        if to.saturating_sub(from) / step as u64 > MAX_TASKS as u64 {
            return Err("has more than 10000 tasks");
        }
        numbers.extend((from..=to).step_by(step));
        if numbers.len() > MAX_TASKS {
            return Err("has more than 10000 tasks");
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() { Err(FORM) } else { Ok((numbers, parallel)) }
}

#[cfg(test)]
mod tests {
    use super::super::super::amounts::{amount, duration};
    use super::*;

    #[test]
    fn times_of_every_form() {
        for (text, expected) in [
            ("30", "30m"),
            ("1:30", "90s"),
            ("02:00:00", "2h"),
            ("0:10:00", "10m"),
            ("1-0", "1d"),
            ("7-00:30", "10110m"),
            ("1-12:00:00", "36h"),
            ("01:59:59", "7199s"),
        ] {
            assert_eq!(time(text).map(duration).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(time("UNLIMITED"), Some(0));
        assert_eq!(time("2h"), None);
        assert_eq!(time("1-"), None);
    }

    #[test]
    fn memory_gpus_and_arrays() {
        let all = ["16G", "4000", "1024M", "1.5T", "0", "32GB", "500K"].map(|text| memory(text).map(amount));
        assert_eq!(
            all.map(Option::unwrap),
            ["16GiB", "4000MiB", "1GiB", "1536GiB", "0KiB", "32GiB", "500KiB"]
        );
        assert_eq!(memory("lots"), None);
        assert_eq!(gpus("a100:4"), Some((4, Some("a100".into()))));
        assert_eq!(gpus("2"), Some((2, None)));
        assert_eq!(gpus("v100"), Some((1, Some("v100".into()))));
        assert_eq!(gpus("a:1,b:1"), None);
        assert_eq!(array("0-6:2,9%4"), Ok((vec![0, 2, 4, 6, 9], Some(4))));
        assert!(array("0-4000000000").is_err());
        assert!(array("a").is_err());
    }
}
