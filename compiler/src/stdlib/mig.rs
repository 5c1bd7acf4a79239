//! MIG profiles: `stdlib/gpu/mig.yaml`.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::load;

pub(super) static MIG: LazyLock<Mig> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/mig.json"))));

/// MIG profiles by card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mig {
    /// The content of the file.
    pub schema: String,
    /// The number of slices of each card; `default` for cards that are not listed.
    pub slices: IndexMap<String, Slices>,
    /// The format of a profile's name, as a regular expression.
    pub grammar: String,
    /// The profiles by card.
    pub mig: IndexMap<String, Vec<Profile>>,
    /// The sources of the facts.
    pub sources: Vec<String>,
    /// What was assumed.
    pub notes: String,
}

/// The number of slices of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slices {
    /// Compute slices.
    pub g: u32,
    /// Memory slices.
    pub mem: u32,
}

/// A profile: its name, its share of the card's memory and cores, and the number that fit on one card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile(pub String, pub String, pub String, pub u32);

impl Profile {
    /// The name, such as `1g.10gb`.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The number that fit on one card.
    pub fn max_instances(&self) -> u32 {
        self.3
    }
}

/// The profiles of a card such as `A100-80GB`.
pub fn profiles(card: &str) -> Option<&'static [Profile]> {
    MIG.mig.get(card).map(Vec::as_slice)
}

/// The cards that have a profile with that name.
pub fn cards_with(profile: &str) -> impl Iterator<Item = &'static str> {
    let whole = whole_instance(profile);
    MIG.mig
        .iter()
        .filter(move |(_, profiles)| profiles.iter().any(|p| p.name() == whole))
        .map(|(card, _)| card.as_str())
}

/// Every profile's name, each once.
pub fn names() -> indexmap::IndexSet<&'static str> {
    MIG.mig.values().flatten().map(Profile::name).collect()
}

/// The profile of the GPU instance that contains a compute instance: `3g.20gb` for `1c.3g.20gb`.
pub fn whole_instance(profile: &str) -> &str {
    match profile.split_once('.') {
        Some((first, rest)) if first.ends_with('c') => rest,
        _ => profile,
    }
}

/// Whether a text has the format of a profile: `[<c>c.]<g>g.<m>gb[+attribute,… | -attribute,…]`.
pub fn is_profile(text: &str) -> bool {
    let number = |text: &str, unit: &str| {
        text.strip_suffix(unit).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let (size, attributes) = match text.find(['+', '-']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts: Vec<&str> = size.split('.').collect();
    if parts.len() == 3 && number(parts[0], "c") {
        parts.remove(0);
    }
    let known = |attribute: &str| matches!(attribute, "me" | "me.all" | "gfx");
    parts.len() == 2
        && number(parts[0], "g")
        && number(parts[1], "gb")
        && attributes.is_none_or(|list| list.split(',').all(known))
}
