//! Whether a card matches the request of a role.
//!
//! The names that drivers give are those of their makers' marketing: `NVIDIA A100-SXM4-80GB`, `NVIDIA H100 PCIe`,
//! `NVIDIA GeForce RTX 4090`, `Tesla V100-SXM2-16GB`. A model of the job file is found in one word by word.

use super::demand::Demand;
use super::inventory::{Driver, Gpu, Inventory};

/// Memory that a card's driver shows may be this much less than its class: error correction takes a sixteenth, the
/// driver some more.
const MIN_REPORTED_MEMORY: (u64, u64) = (92, 100);

const GIB: u64 = 1 << 30;

/// Whether the demand allows a card, regardless of whether it is free.
pub(super) fn matches_demand(demand: &Demand, gpu: &Gpu, inventory: &Inventory) -> bool {
    gpu.vendor == demand.vendor
        && (demand.models.is_empty() || demand.models.iter().any(|model| is_model(model, gpu)))
        && demand.memory_bytes.is_none_or(|wanted| nominal_memory(gpu).is_some_and(|bytes| bytes >= wanted))
        && demand
            .compute_capability
            .is_none_or(|wanted| gpu.compute_capability.is_some_and(|has| has >= wanted))
        && demand.driver.as_deref().is_none_or(|wanted| has_driver(wanted, inventory.driver.as_ref()))
}

/// Bytes of a card by its class: from its name, otherwise the memory that its driver shows plus the reserved part.
fn nominal_memory(gpu: &Gpu) -> Option<u64> {
    let named = words(&gpu.name).filter_map(|word| gigabytes(&word)).max();
    let shown = gpu.memory_bytes.map(|bytes| bytes / MIN_REPORTED_MEMORY.0 * MIN_REPORTED_MEMORY.1);
    // On a virtual machine, the name of a slice of a card has less information than the card's.
    named.map(|gigabytes| gigabytes * GIB).or(shown)
}

/// Whether a model as users write it, `A100`, `A100-80GB`, `RTX-4090`, is this card.
fn is_model(model: &str, gpu: &Gpu) -> bool {
    let name: Vec<String> = words(&gpu.name).collect();
    // `RTX4090` and `RTX 4090` are one name, as are `A100-80GB` and `A100 80GB`.
    let joined: Vec<String> = name.windows(2).map(<[String]>::concat).collect();
    words(model).all(|word| match gigabytes(&word) {
        Some(wanted) => nominal_memory(gpu).is_some_and(|bytes| is_nominal_memory(bytes, wanted)),
        None => name.contains(&word) || joined.contains(&word) || has_joined_word(&name, &word),
    })
}

fn has_joined_word(name: &[String], word: &str) -> bool {
    name.windows(3).any(|three| three.concat() == word)
}

/// Whether bytes match a card of this many gigabytes: exactly by name, approximately by reported memory.
fn is_nominal_memory(bytes: u64, gigabytes: u64) -> bool {
    let wanted = gigabytes * GIB;
    bytes >= wanted / MIN_REPORTED_MEMORY.1 * MIN_REPORTED_MEMORY.0
        && bytes <= wanted / MIN_REPORTED_MEMORY.0 * MIN_REPORTED_MEMORY.1
}

/// A name's words, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> {
    let lower = name.to_lowercase();
    let words: Vec<String> =
        lower.split([' ', '-', '_', '/']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.into_iter()
}

/// `80gb` is 80.
fn gigabytes(word: &str) -> Option<u64> {
    word.strip_suffix("gib")
        .or_else(|| word.strip_suffix("gb"))
        .or_else(|| word.strip_suffix('g'))?
        .parse()
        .ok()
}

fn has_driver(wanted: &str, driver: Option<&Driver>) -> bool {
    driver.is_some_and(|driver| version_numbers(&driver.version) >= version_numbers(wanted))
}

fn version_numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::card;

    fn named(name: &str, mib: u64) -> Gpu {
        Gpu { name: name.to_owned(), memory_bytes: Some(mib << 20), ..card(0) }
    }

    #[test]
    fn models_are_found_in_the_names_of_drivers() {
        let a100 = named("NVIDIA A100-SXM4-80GB", 81920);
        let v100 = named("Tesla V100-SXM2-16GB", 16160);
        let rtx = named("NVIDIA GeForce RTX 4090", 24564);
        let h200 = named("NVIDIA H200", 143_771);
        let l40 = named("NVIDIA L40S", 46068);
        let h100 = named("NVIDIA H100 80GB HBM3", 81559);
        for (model, gpu, is) in [
            ("A100", &a100, true),
            ("a100-80GB", &a100, true),
            ("A100-40GB", &a100, false),
            ("A10", &a100, false),
            ("V100", &v100, true),
            ("V100-16GB", &v100, true),
            ("V100-32GB", &v100, false),
            ("RTX-4090", &rtx, true),
            ("RTX4090", &rtx, true),
            ("GeForce-RTX-4090", &rtx, true),
            ("RTX-3090", &rtx, false),
            ("H200", &h200, true),
            ("H200-141GB", &h200, true),
            ("L40", &l40, false),
            ("L40S", &l40, true),
            ("H100", &h100, true),
            ("H100-80GB", &h100, true),
            ("H100-94GB", &h100, false),
        ] {
            assert_eq!(is_model(model, gpu), is, "{model} in {}", gpu.name);
        }
    }

    #[test]
    fn memory_is_that_of_the_class() {
        // A T4 of 16 GB shows 15, an A10 of 24 GB shows 22.2, an A100 of 40 GB 39.6.
        for (name, mib, gib, is) in [
            ("Tesla T4", 15360, 16, true),
            ("Tesla T4", 15360, 17, false),
            ("NVIDIA A10", 22731, 24, true),
            ("NVIDIA A100-SXM4-40GB", 40536, 40, true),
            ("NVIDIA A100-SXM4-40GB", 40536, 41, false),
            ("NVIDIA H200", 143_771, 141, true),
            ("NVIDIA H200", 143_771, 160, false),
        ] {
            assert_eq!(nominal_memory(&named(name, mib)).unwrap() >= gib * GIB, is, "{name} and {gib} GiB");
        }
        assert_eq!(
            nominal_memory(&Gpu { memory_bytes: None, name: "some card".to_owned(), ..card(0) }),
            None
        );
    }

    #[test]
    fn drivers_are_compared_by_numbers() {
        let driver = Driver { version: "550.54.15".to_owned(), cuda: None };
        for (wanted, has) in
            [("550", true), ("550.54.15", true), ("550.90", false), ("60", true), ("1000", false)]
        {
            assert_eq!(has_driver(wanted, Some(&driver)), has, "{wanted}");
        }
        assert!(!has_driver("1", None));
    }
}
