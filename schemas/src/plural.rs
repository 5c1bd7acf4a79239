//! Numbers with their nouns.

use std::fmt::Display;

/// A number of things, such as `1 GPU` and `3 GPUs`; for nouns whose plural ends with an `s` alone.
pub fn plural<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let end = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{end}")
}

#[cfg(test)]
mod tests {
    use super::plural;

    #[test]
    fn one_has_no_plural_ending() {
        assert_eq!(
            [plural(0_u64, "GPU"), plural(1_usize, "GPU"), plural(2_u32, "GPU")],
            ["0 GPUs", "1 GPU", "2 GPUs"]
        );
    }
}
