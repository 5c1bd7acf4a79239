//! Energy: written with a unit, kept in millijoules, as the counters of GPUs have it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::{QuantityError, scale};

/// Suffix and millijoules, the largest first.
const UNITS: [(&str, u64); 6] = [
    ("MWh", 3_600_000_000_000),
    ("kWh", 3_600_000_000),
    ("Wh", 3_600_000),
    ("MJ", 1_000_000_000),
    ("kJ", 1_000_000),
    ("J", 1_000),
];

/// An amount of energy in millijoules, written with a unit: `10kWh`, `500Wh`, `2MJ`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Energy(pub u64);

impl Energy {
    /// Reads an amount.
    ///
    /// # Errors
    /// A bare number, an unknown unit, nothing at all, or a fraction of a millijoule.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let error = |why: String| Err(QuantityError(why));
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim();
        if number.is_empty() {
            return error(format!("`{text}` does not begin with a number; write for example `10kWh`"));
        }
        if unit.is_empty() {
            return error(format!("`{text}` has no unit; write `{text}kWh` or `{text}Wh`"));
        }
        let Some((_, factor)) = UNITS.iter().find(|(suffix, _)| *suffix == unit) else {
            let near = UNITS.iter().find(|(suffix, _)| suffix.eq_ignore_ascii_case(unit));
            let unit_near = near.map_or("kWh", |(suffix, _)| suffix);
            return error(format!(
                "`{unit}` is not a unit of energy; write `{number}{unit_near}` (Wh kWh MWh, or J kJ MJ)"
            ));
        };
        match scale(number, *factor) {
            Some(amount) if amount > 0 => Ok(Self(amount)),
            _ => error(format!("`{text}` is not an amount of energy above 0; write for example `10kWh`")),
        }
    }

    /// The amount with about three digits: `286 J`, `12.3 Wh`, `1.25 kWh`.
    pub fn rounded(self) -> String {
        let watt_hours = self.0 / 3_600_000;
        let hundredths = |unit: u64| {
            let all = self.0 / (unit / 100);
            format!("{}.{:02}", all / 100, all % 100)
        };
        match watt_hours {
            0 => format!("{} J", (self.0 + 500) / 1000),
            1..1000 => format!("{watt_hours}.{} Wh", self.0 / 360_000 % 10),
            1000..1_000_000 => format!("{} kWh", hundredths(3_600_000_000)),
            _ => format!("{} MWh", hundredths(3_600_000_000_000)),
        }
    }
}

impl fmt::Display for Energy {
    /// The shortest exact form: `10kWh`, `1500Wh`, `7J`; a fraction of a joule in decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}.{:03}J", self.0 / 1000, self.0 % 1000),
        }
    }
}

impl<'de> Deserialize<'de> for Energy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl Serialize for Energy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Energy {
    fn schema_name() -> Cow<'static, str> {
        "Energy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An amount of energy with a unit: Wh kWh MWh, or J kJ MJ.",
            "type": "string",
            "pattern": r"^([0-9]+(\.[0-9]+)? ?(Wh|kWh|MWh|J|kJ|MJ)|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$",
            "examples": ["10kWh", "500Wh", "2MJ"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_is_exact() {
        let check = |text: &str, millijoules: u64, shortest: &str| {
            assert_eq!(Energy::parse(text), Ok(Energy(millijoules)), "{text}");
            assert_eq!(Energy(millijoules).to_string(), shortest);
            assert_eq!(Energy::parse(shortest), Ok(Energy(millijoules)));
        };
        check("10kWh", 36_000_000_000, "10kWh");
        check("1.5 kWh", 5_400_000_000, "1500Wh");
        check("0.25J", 250, "0.250J");
        check("2MJ", 2_000_000_000, "2MJ");
        check("3600kJ", 3_600_000_000, "1kWh");
    }

    #[test]
    fn a_wrong_amount_has_a_suggestion() {
        let check = |text: &str, part: &str| {
            let error = Energy::parse(text).unwrap_err().0;
            assert!(error.contains(part), "{text}: {error}");
        };
        check("10", "write `10kWh` or `10Wh`");
        check("10KWH", "write `10kWh`");
        check("10kW", "write `10kWh`");
        check("0kWh", "above 0");
        check("kWh", "does not begin with a number");
    }

    #[test]
    fn people_see_about_three_digits() {
        let rounded = |text: &str| Energy::parse(text).unwrap().rounded();
        assert_eq!(rounded("285.6J"), "286 J");
        assert_eq!(rounded("3600J"), "1.0 Wh");
        assert_eq!(rounded("12.39Wh"), "12.3 Wh");
        assert_eq!(rounded("1250Wh"), "1.25 kWh");
        assert_eq!(rounded("2500kWh"), "2.50 MWh");
    }
}
