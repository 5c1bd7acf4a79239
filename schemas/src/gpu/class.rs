//! Memory of a card by its nominal class: what counts as "a GPU of 16 GB".

/// Classes of cards in MiB.
const CLASSES: [u64; 15] =
    [6144, 8192, 10240, 11264, 12288, 16384, 20480, 24576, 32768, 40960, 49152, 65536, 81920, 96256, 98304];

/// The minimum MiB that a card of the requested class reports, for requested bytes.
///
/// Cards report up to 8% less than their nominal class (firmware and ECC take the rest: a T4 of 16 GB has 15109 MiB,
/// an L4 of 24 GB 23034), so the bound lies there, but above everything the next smaller class reports.
pub fn min_mib(bytes: u64) -> u64 {
    let requested = bytes.div_ceil(1 << 20).max(1);
    let smaller = CLASSES.iter().rev().find(|class| **class < requested).copied().unwrap_or(0);
    (requested * 92 / 100).max(smaller + 1).min(requested)
}

/// Whether a card that reports this many bytes is of the requested class.
pub fn is_at_least(reported: u64, requested: u64) -> bool {
    reported >> 20 >= min_mib(requested)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_of_the_class_reports_enough() {
        let check = |gib: u64, enough: &[u64], short: &[u64]| {
            let least = min_mib(gib << 30);
            assert!(enough.iter().all(|mib| is_at_least(mib << 20, gib << 30)), "{gib} GiB: {least}");
            assert!(short.iter().all(|mib| !is_at_least(mib << 20, gib << 30)), "{gib} GiB: {least}");
        };
        check(16, &[15109, 16160, 16384], &[12288]);
        check(24, &[22731, 23034, 24576], &[20475]);
        check(11, &[11264], &[10240]);
        check(40, &[40536, 40960], &[32768]);
        check(80, &[81037, 81559, 81920], &[65536]);
        check(96, &[97871], &[95830]);
        check(141, &[143_771], &[97871]);
    }
}
