//! Amounts, for people.

use jobc_schema::Bytes;

/// Bytes with about three digits: `999 B`, `1.4 KiB`, `2.0 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    Bytes(bytes).measured().to_string()
}

/// Thousandths of a CPU as percent of one: `0.4%`, `97%`, `1600%`.
pub(crate) fn percent(millis: u64) -> String {
    if millis < 100 { format!("{}.{}%", millis / 10, millis % 10) } else { format!("{}%", (millis + 5) / 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_has_two_digits() {
        assert_eq!(
            [0, 4, 99, 100, 974, 16_000].map(percent),
            ["0.0%", "0.4%", "9.9%", "10%", "97%", "1600%"]
        );
    }
}
