//! GPU models by their usual names: `stdlib/gpu/models.yaml`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::load;

pub(super) static MODELS: LazyLock<Models> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/models.json"))));

/// GPU models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// The content of the file.
    pub schema: String,
    /// The models.
    pub models: Vec<Model>,
    /// The sources of the facts.
    pub sources: Vec<String>,
}

/// One model, such as the A100.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name; an `x` is a placeholder for one digit.
    pub name: String,
    /// The architecture's family.
    pub family: String,
    /// The compute capability.
    pub cc: String,
    /// The memory sizes that it is sold with, smallest first; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Whether the `cuda-compat` package works on it: on data center cards and Jetson, not on desktop cards.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub forward_compat: bool,
    /// Whether a source confirms the memory.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub verified: bool,
}

fn yes() -> bool {
    true
}

/// One size of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The nominal memory size, in GB.
    pub memory_gb: u64,
    /// The card's MIG table; `None` if it does not support MIG, or no table is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<String>,
}

/// The meaning of a name: a model, with a memory size if the name contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelMatch {
    /// The model.
    pub model: &'static Model,
    /// The size that the name gives.
    pub memory_gb: Option<u64>,
}

impl ModelMatch {
    /// The sizes that match the name; empty if the name contains an unknown size, or none is known.
    pub fn variants(&self) -> impl Iterator<Item = &'static Variant> + use<> {
        let wanted = self.memory_gb;
        self.model.variants.iter().filter(move |v| wanted.is_none_or(|gb| gb == v.memory_gb))
    }

    /// The largest memory of a card with that name, in GB.
    pub fn max_memory_gb(&self) -> Option<u64> {
        self.variants().map(|v| v.memory_gb).max()
    }

    /// Whether some card with that name supports MIG.
    pub fn has_mig(&self) -> bool {
        self.variants().any(|v| v.mig.is_some())
    }
}

/// The models.
pub fn all() -> &'static [Model] {
    &MODELS.models
}

/// Looks up a name: a family (`A100`), a variant (`A100-80GB`) or a product's full name (`NVIDIA-A100-SXM4-80GB`,
/// `Tesla V100`), in any case.
pub fn find(name: &str) -> Option<ModelMatch> {
    let (short, memory_gb) = shorten(name);
    let model = all().iter().find(|model| fits(&fold(&model.name), &short))?;
    Some(ModelMatch { model, memory_gb })
}

/// The name without vendor, form factor and memory; and the memory.
fn shorten(name: &str) -> (String, Option<u64>) {
    let mut memory = None;
    let mut short = String::new();
    for word in name.split(|c: char| !c.is_alphanumeric() && c != '.').filter(|w| !w.is_empty()) {
        let word = word.to_ascii_lowercase();
        let gigabytes = word.strip_suffix("gb").or_else(|| word.strip_suffix('g'));
        if let Some(gb) = gigabytes.and_then(|n| n.parse().ok()) {
            memory = Some(gb);
        } else if !is_form(&word) {
            short.push_str(&word);
        }
    }
    (short, memory)
}

/// Words of product names for the vendor, the slot or the memory type.
fn is_form(word: &str) -> bool {
    matches!(
        word,
        "nvidia" | "tesla" | "geforce" | "pcie" | "sxm" | "nvl" | "graphics" | "hbm2" | "hbm2e" | "hbm3"
    ) || word.strip_prefix("sxm").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a normalized name is that of a model, in which an `x` stands for one digit after the first letters.
fn fits(model: &str, name: &str) -> bool {
    // Only a trailing `xx` is a pattern: RTX contains an x itself.
    let Some(stem) = model.strip_suffix("xx") else { return model == name };
    let Some(rest) = name.strip_prefix(stem) else { return false };
    let digits = rest.trim_end_matches("super").trim_end_matches("ti");
    digits == "xx" || (digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()))
}
