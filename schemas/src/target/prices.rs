//! What a target costs: `prices` of a target.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;

/// Prices for an hour, and for energy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Currency, as it is printed.
    #[schemars(length(min = 1, max = 8), extend("examples" = ["EUR"]))]
    pub currency: String,
    /// Price of a GPU for an hour: one for all, or by model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [2.4, {"H100": 2.4, "A100-40GB": 1.1}]))]
    pub gpu: Option<GpuPrices>,
    /// Price of a logical CPU for an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [0.04]))]
    pub cpu: Option<Decimal>,
    /// Price of 1 GiB of memory for an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [0.005]))]
    pub memory: Option<Decimal>,
    /// Price of 1 kWh that counters measure. Plans do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [0.31]))]
    pub energy: Option<Decimal>,
}

/// The price of a GPU for an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum GpuPrices {
    /// Of any.
    All(Decimal),
    /// By model: a family such as `A100`, or a variant such as `A100-40GB`.
    Models(IndexMap<String, Decimal>),
}

impl GpuPrices {
    /// The price of a model: by its own name, else by that of its family. Without a model the highest of all.
    pub fn of(&self, model: Option<&str>) -> Option<Decimal> {
        let models = match self {
            Self::All(price) => return Some(*price),
            Self::Models(models) => models,
        };
        let Some(model) = model else { return models.values().max().copied() };
        let is_it = |name: &str| {
            let rest = model.get(..name.len()).filter(|begin| begin.eq_ignore_ascii_case(name));
            rest.is_some_and(|begin| model[begin.len()..].is_empty() || model[begin.len()..].starts_with('-'))
        };
        let known = models.iter().filter(|(name, _)| is_it(name));
        known.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_has_its_own_price_or_that_of_its_family() {
        let of = |prices: &str, model: Option<&str>| {
            serde_json::from_str::<GpuPrices>(prices).unwrap().of(model).map(|price| price.to_string())
        };
        let models = r#"{"A100": 1.5, "A100-40GB": 1.1, "H100": 2.4}"#;
        assert_eq!(of(models, Some("A100-80GB")).as_deref(), Some("1.5"));
        assert_eq!(of(models, Some("a100-40gb")).as_deref(), Some("1.1"));
        assert_eq!(of(models, Some("H100")).as_deref(), Some("2.4"));
        assert_eq!(of(models, Some("A1000")), None);
        assert_eq!(of(models, Some("B200")), None);
        assert_eq!(of(models, None).as_deref(), Some("2.4"));
        assert_eq!(of("3", Some("B200")).as_deref(), Some("3"));
        assert_eq!(of("{}", None), None);
    }
}
