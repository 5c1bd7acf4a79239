//! Devices by the names that users write: a number, `GPU-…`, `MIG-…` or `0:1`, as `NV_GPU` and `docker run --gpus
//! device=` take them.

use std::collections::BTreeMap;

use jobc_schema::gpu::Vendor;

use super::inventory::{DeviceId, Inventory};
use jobc_sys::error::{Error, Kind, Result};

/// The devices that names select, in their order.
///
/// # Errors
///
/// A word that matches no device, more than one, or one that another word names.
pub fn parse_devices(words: &[String], vendor: Vendor, inventory: &Inventory) -> Result<Vec<DeviceId>> {
    let devices: Vec<DeviceId> =
        words.iter().map(|word| parse_device(word, vendor, inventory)).collect::<Result<_>>()?;
    if let Some((&twice, _)) = counts(&devices).iter().find(|(_, count)| **count > 1) {
        let names: Vec<String> = words
            .iter()
            .zip(&devices)
            .filter(|(_, device)| **device == twice)
            .map(|(word, _)| format!("`{word}`"))
            .collect();
        return Err(
            invalid_name(format!("{} name one device", names.join(" and "))).help("name each device once")
        );
    }
    Ok(devices)
}

fn parse_device(word: &str, vendor: Vendor, inventory: &Inventory) -> Result<DeviceId> {
    let all: Vec<DeviceId> =
        inventory.devices().into_iter().filter(|device| device.vendor == vendor).collect();
    let found: Vec<DeviceId> =
        all.iter().copied().filter(|device| matches_name(word, *device, inventory)).collect();
    match found[..] {
        [device] => Ok(device),
        [] => Err(no_such_device(word, vendor, inventory, &all)),
        _ => {
            let names: Vec<String> = found.iter().map(|device| inventory.name(*device)).collect();
            Err(invalid_name(format!("`{word}` is a prefix of {}", names.join(" and ")))
                .help("write a longer prefix"))
        }
    }
}

fn matches_name(word: &str, device: DeviceId, inventory: &Inventory) -> bool {
    let is_number = |number: u32, text: &str| text.parse() == Ok(number);
    match (word.split_once(':'), device.mig) {
        (Some((gpu, mig)), Some(number)) => is_number(device.gpu, gpu) && is_number(number, mig),
        (None, None) if word.bytes().all(|byte| byte.is_ascii_digit()) => is_number(device.gpu, word),
        // A very short prefix could match by chance.
        (None, _) => word.len() > 4 && has_prefix(&inventory.name(device), word),
        _ => false,
    }
}

fn has_prefix(name: &str, word: &str) -> bool {
    name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn no_such_device(word: &str, vendor: Vendor, inventory: &Inventory, all: &[DeviceId]) -> Error {
    let cut = inventory.gpus.iter().find(|gpu| {
        let is_named = matches_name(word, DeviceId { vendor, gpu: gpu.index, mig: None }, inventory);
        gpu.vendor == vendor && is_named && gpu.mig.as_ref().is_some_and(|mig| mig.enabled)
    });
    if let Some(gpu) = cut {
        return invalid_name(format!("GPU {} is partitioned into MIG instances", gpu.index))
            .help(format!("name an instance of it, such as `{}:0`; `jobc gpu ls` lists them", gpu.index));
    }
    let known: Vec<String> = all.iter().map(|device| short_name(*device)).collect();
    let known = if known.is_empty() { "this host has none".to_owned() } else { known.join(", ") };
    invalid_name(format!("this host has no GPU `{word}`")).help(format!(
        "name one by its number or by a prefix of its name, as listed by `jobc gpu ls`: {known}"
    ))
}

/// A device's number: `3`, or `0:1` for an instance of a card that is cut up.
pub fn short_name(device: DeviceId) -> String {
    match device.mig {
        None => device.gpu.to_string(),
        Some(mig) => format!("{}:{mig}", device.gpu),
    }
}

/// How often each device is named: for errors.
fn counts<T: Ord + Copy>(all: &[T]) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(*one).or_default() += 1;
    }
    counts
}

fn invalid_name(why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Config, why.to_string())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::testing::{host, partition};

    fn check(words: &[&str]) -> String {
        let mut inventory = host(&[&[0, 1], &[2]]);
        partition(&mut inventory, 2, &["1g.10gb", "2g.20gb"]);
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match parse_devices(&words, Vendor::Nvidia, &inventory) {
            Ok(devices) => devices.into_iter().map(short_name).collect::<Vec<_>>().join(" "),
            Err(error) => format!("{error}; {}", error.advice().as_deref().unwrap_or_default()),
        }
    }

    #[test]
    fn devices_are_found_by_index_name_and_prefix() {
        assert_eq!(check(&["1", "0"]), "1 0");
        assert_eq!(check(&["GPU-00000001", "2:1", "mig-2-0"]), "1 2:1 2:0");
    }

    #[test]
    fn unknown_and_ambiguous_names_are_rejected() {
        assert_snapshot!([check(&["7"]), check(&["GPU-0000"]), check(&["0", "GPU-00000000"]), check(&["2"]), check(&["2:7"]), check(&["GPU-"])].join("\n"), @r"
        this host has no GPU `7`; name one by its number or by a prefix of its name, as listed by `jobc gpu ls`: 0, 1, 2:0, 2:1
        `GPU-0000` is a prefix of GPU-00000000 and GPU-00000001; write a longer prefix
        `0` and `GPU-00000000` name one device; name each device once
        GPU 2 is partitioned into MIG instances; name an instance of it, such as `2:0`; `jobc gpu ls` lists them
        this host has no GPU `2:7`; name one by its number or by a prefix of its name, as listed by `jobc gpu ls`: 0, 1, 2:0, 2:1
        this host has no GPU `GPU-`; name one by its number or by a prefix of its name, as listed by `jobc gpu ls`: 0, 1, 2:0, 2:1
        ");
    }
}
