//! Amounts, as people read them.

/// Bytes with three digits or so: `999 B`, `1.4 KiB`, `2.0 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    // Tenths of a unit, so that no number is too large for the arithmetic.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 9995 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    if tenths < 1000 {
        format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    } else {
        format!("{} {}", tenths / 10, UNITS[unit])
    }
}

/// Thousandths of a CPU as percent of one: `0.4%`, `97%`, `1600%`.
pub(crate) fn percent(millis: u64) -> String {
    if millis < 100 { format!("{}.{}%", millis / 10, millis % 10) } else { format!("{}%", (millis + 5) / 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits() {
        let shown = [0, 999, 1000, 1024, 1434, 102_400, 1_000_000, 1 << 20, (1 << 30) - 1, 2 << 30, u64::MAX]
            .map(bytes);
        assert_eq!(
            shown,
            [
                "0 B", "999 B", "0.9 KiB", "1.0 KiB", "1.4 KiB", "100 KiB", "976 KiB", "1.0 MiB", "0.9 GiB",
                "2.0 GiB", "15.9 EiB"
            ]
        );
        assert_eq!(
            [0, 4, 99, 100, 974, 16_000].map(percent),
            ["0.0%", "0.4%", "9.9%", "10%", "97%", "1600%"]
        );
    }
}
