//! Memory and CPU quantities: written with a unit, kept exactly.

mod display;
mod energy;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

pub use display::{Amount, Measurement};
pub use energy::Energy;

/// Suffix and factor, longest suffix first; spec "Principles" 2.
const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// An amount of memory or disk in bytes, written with a unit: `32GiB`, `1.5GiB`, `500MB`, `64Gi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Why a quantity was rejected, for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError(pub String);

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Bytes {
    /// Reads a quantity.
    ///
    /// # Errors
    /// A bare number, an unknown unit, a fraction of a byte, or more than 2^63 - 1 bytes.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let error = |why: String| Err(QuantityError(why));
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim();
        if number.is_empty() {
            return error(format!("`{text}` does not begin with a number; write for example `8GiB`"));
        }
        if unit.is_empty() {
            // Of hundreds, the smaller unit is meant: `shm: 512`, `memory: 32000`.
            let is_large = number.parse::<f64>().is_ok_and(|number| number >= 256.0);
            let (first, second) = if is_large { ("MiB", "GiB") } else { ("GiB", "MiB") };
            return error(format!("`{text}` has no unit; write `{text}{first}` or `{text}{second}`"));
        }
        let Some(&(_, factor)) = UNITS.iter().find(|(suffix, _)| *suffix == unit) else {
            let near = UNITS.iter().find(|(suffix, _)| {
                suffix.eq_ignore_ascii_case(unit) || suffix[..1].eq_ignore_ascii_case(unit)
            });
            let try_this = near.map_or("8GiB".to_owned(), |(suffix, _)| format!("{number}{suffix}"));
            return error(format!(
                "`{unit}` is not a unit of memory; write `{try_this}` (KiB MiB GiB TiB count in 1024, KB MB GB TB in 1000)"
            ));
        };
        let Some(bytes) = scale(number, factor) else {
            return error(format!(
                "`{text}` is not a whole number of bytes below 8 EiB; write for example `8GiB`"
            ));
        };
        Ok(Self(bytes))
    }
}

/// `number * factor`, if that is a whole number that fits in 63 bits.
fn scale(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 18 || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let denominator = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let scaled = part * u128::from(factor);
    if !scaled.is_multiple_of(denominator) {
        return None;
    }
    let total = whole.checked_mul(u128::from(factor))?.checked_add(scaled / denominator)?;
    u64::try_from(total).ok().filter(|&n| i64::try_from(n).is_ok())
}

impl fmt::Display for Bytes {
    /// The shortest exact form with a power of 1024, else plain bytes: `32GiB`, `1536MiB`, `1000 bytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An amount of memory with a unit: KiB MiB GiB TiB (powers of 1024), KB MB GB TB (powers of 1000), or Ki Mi Gi Ti as in Kubernetes. A number without a unit is an error.",
            "type": "string",
            "pattern": r"^([0-9]+(\.[0-9]+)? ?(KiB|MiB|GiB|TiB|KB|MB|GB|TB|Ki|Mi|Gi|Ti)|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$",
            "examples": ["32GiB", "1.5GiB", "500MB", "64Gi"]
        })
    }
}

/// An amount of CPU time in thousandths of a logical CPU: `4`, `0.5`, `"500m"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpus {
    /// Thousandths of a logical CPU; at least 1.
    pub millis: u64,
}

impl Cpus {
    /// Reads `4`, `0.5` or `500m`.
    ///
    /// # Errors
    /// Zero, a negative number, more than three decimals, or something that is not a number.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let millis = match text.strip_suffix('m') {
            Some(millis) => scale(millis, 1),
            None => scale(text, 1000),
        };
        match millis {
            Some(millis) if millis > 0 => Ok(Self { millis }),
            _ => Err(QuantityError(format!(
                "`{text}` is not an amount of CPUs; write a number of logical CPUs above 0 in steps of 0.001, such as `4`, `0.5` or `500m`"
            ))),
        }
    }
}

impl Cpus {
    /// The amount for people: `1 CPU`, `2.5 CPUs`.
    pub fn amount(self) -> String {
        match (self.millis / 1000, self.millis % 1000) {
            (1, 0) => "1 CPU".to_owned(),
            (whole, 0) => format!("{whole} CPUs"),
            (whole, rest) => format!("{} CPUs", format!("{whole}.{rest:03}").trim_end_matches('0')),
        }
    }
}

impl fmt::Display for Cpus {
    /// Whole CPUs as `4`, others as `1500m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.millis.is_multiple_of(1000) {
            write!(f, "{}", self.millis / 1000)
        } else {
            write!(f, "{}m", self.millis)
        }
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Cpus {
    fn schema_name() -> Cow<'static, str> {
        "Cpus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Logical CPUs: a number such as 4 or 0.5, or thousandths as in \"500m\".",
            "type": ["number", "string"],
            "exclusiveMinimum": 0,
            "pattern": r"^([0-9]+(\.[0-9]+)?|[0-9]+m|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$",
            "examples": [4, 0.5, "500m"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_exact() {
        let check = |text: &str, bytes: u64| assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text}");
        check("32GiB", 32 << 30);
        check("1.5GiB", 3 << 29);
        check("500MB", 500_000_000);
        check("64Gi", 64 << 30);
        check("0.5KB", 500);
        check("8 GiB", 8 << 30);
    }

    #[test]
    fn invalid_memory_has_a_suggestion() {
        let check = |text: &str, part: &str| {
            let error = Bytes::parse(text).unwrap_err().0;
            assert!(error.contains(part), "{text}: {error}");
        };
        check("8", "write `8GiB`");
        check("512", "write `512MiB` or `512GiB`");
        check("8G", "write `8GiB`");
        check("8gib", "write `8GiB`");
        check("0.3KiB", "whole number of bytes");
        check("9999999999TiB", "below 8 EiB");
        check("GiB", "does not begin with a number");
        check("-1GiB", "does not begin with a number");
        check("1.GiB", "whole number of bytes");
    }

    #[test]
    fn cpus_are_thousandths() {
        let check = |text: &str, millis: Option<u64>| {
            assert_eq!(Cpus::parse(text).ok().map(|c| c.millis), millis, "{text}");
        };
        check("4", Some(4000));
        check("0.5", Some(500));
        check("500m", Some(500));
        check("0", None);
        check("0.0001", None);
        check("-1", None);
        check("0.5m", None);
    }

    #[test]
    fn quantities_print_the_shortest_exact_form() {
        assert_eq!(Bytes(32 << 30).to_string(), "32GiB");
        assert_eq!(Bytes(1000).to_string(), "1000 bytes");
        assert_eq!(Cpus { millis: 1500 }.to_string(), "1500m");
    }
}
