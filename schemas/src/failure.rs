//! Kinds of failures, and how the memory of attempts grows after one.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantity::Bytes;

/// A kind of failure, as the verdict on an attempt names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Failure {
    /// The program, its arguments, its image or its data are at fault.
    #[serde(rename = "user error")]
    UserError,
    /// The memory of the task, of the host or of a GPU was used up.
    #[serde(rename = "out of memory")]
    OutOfMemory,
    /// A time limit ended it, or it was not ready in time.
    #[serde(rename = "timeout")]
    Timeout,
    /// It made no progress.
    #[serde(rename = "stall")]
    Stall,
    /// It was asked to leave for another job, or for maintenance.
    #[serde(rename = "preempted")]
    Preempted,
    /// The node is at fault.
    #[serde(rename = "node")]
    Node,
    /// The network, the storage, another task or the platform is at fault.
    #[serde(rename = "infrastructure")]
    Infrastructure,
}

/// A factor by which a request grows, in thousandths: 1500 for `1.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(pub u32);

/// The least step: a page of 1 MiB. Requests are rounded up to it.
const STEP_BYTES: u64 = 1 << 20;

/// The most sizes that a plan lists: with the least factor, ten doublings.
const MAX_SIZES: usize = 64;

impl Factor {
    /// The sizes after a first one, each larger by the factor, up to `max` bytes and `retries` of them.
    pub fn sizes(self, first: Bytes, max: Option<Bytes>, retries: u32) -> Vec<u64> {
        let most = max.map_or(u64::MAX, |max| max.0.max(first.0));
        let mut sizes = Vec::new();
        let mut size = first.0;
        while sizes.len() < MAX_SIZES.min(retries as usize) && size < most {
            let grown = u128::from(size) * u128::from(self.0) / 1000;
            let grown = u64::try_from(grown).unwrap_or(u64::MAX).checked_next_multiple_of(STEP_BYTES);
            size = grown.unwrap_or(u64::MAX).min(most);
            sizes.push(size);
        }
        sizes
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (f64::from(self.0) / 1000.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let factor = f64::deserialize(deserializer)?;
        if !(1.1..=10.0).contains(&factor) {
            return Err(serde::de::Error::custom("a factor is from 1.1 to 10"));
        }
        // Between 1100 and 10000.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was compared")]
        let thousandths = (factor * 1000.0).round() as u32;
        Ok(Self(thousandths))
    }
}

impl JsonSchema for Factor {
    fn schema_name() -> Cow<'static, str> {
        "Factor".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 1.1, "maximum": 10})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn sizes_grow_up_to_a_limit() {
        let factor = Factor(1500);
        let sizes = |max: Option<u64>, retries| factor.sizes(Bytes(4 * GIB), max.map(Bytes), retries);
        assert_eq!(sizes(None, 2), [6 * GIB, 9 * GIB]);
        assert_eq!(sizes(Some(8 * GIB), 5), [6 * GIB, 8 * GIB]);
        assert_eq!(sizes(Some(2 * GIB), 5), [0_u64; 0]);
        assert_eq!(sizes(None, 0), [0_u64; 0]);
        // Rounded up to whole MiB.
        assert_eq!(Factor(1100).sizes(Bytes(10 << 20), None, 1), [11 << 20]);
        assert_eq!(Factor(1100).sizes(Bytes(5 << 20), None, 1), [6 << 20]);
        assert_eq!(factor.sizes(Bytes(u64::MAX / 2), None, 3).last(), Some(&u64::MAX));
    }

    #[test]
    fn a_factor_is_written_as_a_number() {
        assert_eq!(serde_json::from_str::<Factor>("1.5").unwrap(), Factor(1500));
        assert_eq!(serde_json::from_str::<Factor>("2").unwrap(), Factor(2000));
        assert_eq!(serde_json::to_string(&Factor(1500)).unwrap(), "1.5");
        for text in ["1", "0.5", "11", "\"1.5\""] {
            assert!(serde_json::from_str::<Factor>(text).is_err(), "{text}");
        }
    }
}
