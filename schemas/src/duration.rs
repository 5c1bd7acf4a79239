//! Durations: `90s`, `30m`, `12h`, `2d`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::quantity::QuantityError;

/// A span of time in whole seconds, written `90s`, `30m`, `12h`, `2d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub u64);

impl Seconds {
    /// Reads a duration.
    ///
    /// # Errors
    /// A bare number, an unknown unit, or more than 2^31 - 1 seconds (the targets' limit).
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86400,
            "" => {
                return Err(QuantityError(format!(
                    "`{text}` has no unit; write `{text}s`, `{text}m`, `{text}h` or `{text}d`"
                )));
            }
            _ => {
                return Err(QuantityError(format!(
                    "`{text}` is not a duration; write for example `90s`, `30m`, `12h` or `2d`"
                )));
            }
        };
        let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
        match seconds {
            Some(seconds) if i32::try_from(seconds).is_ok() => Ok(Self(seconds)),
            _ => Err(QuantityError(format!(
                "`{text}` is not a duration of at most 24855 days; write for example `12h`"
            ))),
        }
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (factor, unit) in [(86400, "d"), (3600, "h"), (60, "m")] {
            if self.0 != 0 && self.0.is_multiple_of(factor) {
                return write!(f, "{}{unit}", self.0 / factor);
            }
        }
        write!(f, "{}s", self.0)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration with a unit: s, m, h or d.",
            "type": "string",
            "pattern": r"^([0-9]+(s|m|h|d)|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$",
            "examples": ["90s", "30m", "12h", "2d"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(Seconds::parse(text).ok().map(|s| s.0), seconds, "{text}");
        };
        check("90s", Some(90));
        check("2d", Some(172_800));
        check("90", None);
        check("1.5h", None);
        check("99999999d", None);
        assert_eq!(Seconds(5400).to_string(), "90m");
    }
}
