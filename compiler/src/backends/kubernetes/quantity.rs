//! Amounts as Kubernetes writes them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// A number of bytes in the largest binary unit that is exact: `32Gi`, `1536Mi`, `1000`.
pub(super) fn bytes(bytes: u64) -> Quantity {
    for (shift, unit) in [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return Quantity(format!("{}{unit}", bytes >> shift));
        }
    }
    Quantity(bytes.to_string())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn amounts_are_exact() {
        let check = |n: u64, text: &str| assert_eq!(bytes(n).0, text);
        check(32 << 30, "32Gi");
        check(3 << 29, "1536Mi");
        check(500_000_000, "500000000");
        check(2 << 40, "2Ti");
        check(0, "0");
    }
}
