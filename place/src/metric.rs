//! A metric's value, as records write it.

use jobc_schema::metric::Better;
use jobc_sys::id::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The last value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricValue {
    /// The metric.
    pub name: String,
    /// The value.
    pub value: MetricNumber,
    /// Whether higher or lower values are better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The task that reported it.
    pub task: TaskId,
    /// The attempt of the task, from 1.
    pub attempt: u32,
    /// When it was found.
    pub time: Time,
    /// Its first value in this attempt, of what a rate is computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstValue>,
}

/// The first value of a metric in an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstValue {
    /// The value.
    pub value: MetricNumber,
    /// When it was found.
    pub time: Time,
}

/// A number of a metric: any `f64`. JSON has no word for those that are not finite, so they are `"nan"`, `"inf"` and
/// `"-inf"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Written", try_from = "Written")]
#[schemars(with = "Written")]
pub struct MetricNumber(pub f64);

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Word(String),
}

impl From<MetricNumber> for Written {
    fn from(MetricNumber(number): MetricNumber) -> Self {
        match number {
            number if number.is_finite() => Self::Number(number),
            number if number.is_nan() => Self::Word("nan".to_owned()),
            number => Self::Word(if number > 0.0 { "inf" } else { "-inf" }.to_owned()),
        }
    }
}

impl TryFrom<Written> for MetricNumber {
    type Error = std::num::ParseFloatError;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Number(number) => Ok(Self(number)),
            Written::Word(word) => word.parse().map(Self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives_json() {
        for (number, text) in
            [(0.25, "0.25"), (1e300, "1e+300"), (f64::INFINITY, "\"inf\""), (f64::NEG_INFINITY, "\"-inf\"")]
        {
            assert_eq!(serde_json::to_string(&MetricNumber(number)).unwrap(), text);
            assert_eq!(serde_json::from_str::<MetricNumber>(text).unwrap().0.to_bits(), number.to_bits());
        }
        assert_eq!(serde_json::to_string(&MetricNumber(f64::NAN)).unwrap(), "\"nan\"");
        assert!(serde_json::from_str::<MetricNumber>("\"nan\"").unwrap().0.is_nan());
        assert!(serde_json::from_str::<MetricNumber>("\"many\"").is_err());
    }
}
