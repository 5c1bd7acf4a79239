//! Numbers with decimals that are kept exactly: hours, prices.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest number: a thousand millions.
const MAX: f64 = 1e9;

/// A number from 0 in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(pub u64);

impl fmt::Display for Decimal {
    /// With as many decimals as it has: `2`, `0.35`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Decimal {
    /// With at most two decimals: `96`, `0.5`, `0.02`.
    pub fn short(self) -> String {
        let text = self.rounded();
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// With two decimals, as money: `2.00`, `0.35`.
    pub fn rounded(self) -> String {
        let hundredths = self.0.saturating_add(5_000) / 10_000;
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "at most 10^15")]
        let number = self.0 as f64 / 1e6;
        number.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if !(0.0..=MAX).contains(&number) {
            return Err(serde::de::Error::custom("a number is from 0 to 1000000000"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was compared")]
        let millionths = (number * 1e6).round() as u64;
        Ok(Self(millionths))
    }
}

impl JsonSchema for Decimal {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Decimal".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0, "maximum": 1_000_000_000})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_as_it_was() {
        for text in ["2.4", "0.35", "1000000000.0", "0.0", "0.000001"] {
            let number: Decimal = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&number).unwrap().parse::<f64>(), text.parse::<f64>());
        }
        assert_eq!(Decimal(2_400_000).to_string(), "2.4");
        assert_eq!(Decimal(50_000_000).to_string(), "50");
        assert_eq!(Decimal(2_345_678).rounded(), "2.35");
        assert_eq!([96_000_000, 500_000, 22_000].map(|n| Decimal(n).short()), ["96", "0.5", "0.02"]);
        for text in ["-1", "1e10", "\"2\""] {
            assert!(serde_json::from_str::<Decimal>(text).is_err(), "{text}");
        }
    }
}
