//! Amounts as people write them.

/// A duration as people write it: `2h`, `90m`, `45s`; days where nothing is left.
pub(super) fn duration(seconds: u64) -> String {
    for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60)] {
        if seconds >= length && seconds.is_multiple_of(length) {
            return format!("{}{unit}", seconds / length);
        }
    }
    format!("{seconds}s")
}

/// An amount in KiB as people write it.
pub(super) fn amount(kib: u64) -> String {
    for (unit, length) in [("TiB", 1 << 30), ("GiB", 1 << 20), ("MiB", 1 << 10)] {
        if kib >= length && kib.is_multiple_of(length) {
            return format!("{}{unit}", kib / length);
        }
    }
    format!("{kib}KiB")
}
