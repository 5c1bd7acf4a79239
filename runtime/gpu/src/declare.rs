//! This host's GPUs in the form in which a target declares its hosts' GPUs.
//!
//! The compiler checks jobs against what targets declare. For a job that runs here it is given this, so that one check
//! speaks for both.

use indexmap::IndexMap;
use jobc_schema::Bytes;
use jobc_schema::gpu::Vendor;
use jobc_schema::target::{TargetCard, TargetGpus};

use super::inventory::{Gpu, Inventory, Source};

impl Inventory {
    /// The cards by kind, and the driver; cards with MIG instances are a separate kind.
    pub fn to_target_gpus(&self) -> TargetGpus {
        let mut cards: Vec<TargetCard> = vec![];
        let can_be_used =
            |gpu: &&Gpu| gpu.mig.as_ref().is_none_or(|mig| !mig.enabled || !mig.devices.is_empty());
        for gpu in self.gpus.iter().filter(can_be_used) {
            let card = TargetCard { mig: self.instances(gpu), ..card(gpu) };
            let is_kind = |known: &&mut TargetCard| {
                let cut = |card: &TargetCard| card.mig.as_ref().map(|mig| !mig.is_empty());
                let one = |card: &TargetCard| (card.model.clone(), card.vendor, card.memory, cut(card));
                one(known) == one(&card)
            };
            match cards.iter_mut().find(is_kind) {
                Some(known) => {
                    known.count = known.count.map(|count| count + 1);
                    for (profile, count) in card.mig.into_iter().flatten() {
                        *known.mig.get_or_insert_default().entry(profile).or_insert(0) += count;
                    }
                }
                None => cards.push(card),
            }
        }
        TargetGpus {
            driver: self
                .driver
                .as_ref()
                .map(|driver| driver.version.clone())
                .filter(|version| !version.is_empty()),
            cuda: self.driver.as_ref().and_then(|driver| driver.cuda.clone()),
            cards: Some(cards),
            found: true,
        }
    }

    /// The instances of a card by profile, empty for one without MIG; `None` if either is unknown.
    fn instances(&self, gpu: &Gpu) -> Option<IndexMap<String, u32>> {
        let Some(mig) = gpu.mig.as_ref().filter(|mig| mig.enabled) else {
            let is_known = gpu.vendor != Vendor::Nvidia || self.source == Source::Nvml;
            return is_known.then(IndexMap::new);
        };
        let mut profiles = IndexMap::new();
        for device in &mig.devices {
            *profiles.entry(device.profile.clone()?).or_insert(0) += 1;
        }
        Some(profiles)
    }
}

fn card(gpu: &Gpu) -> TargetCard {
    TargetCard {
        model: gpu.name.clone(),
        vendor: gpu.vendor,
        count: Some(1),
        memory: gpu.memory_bytes.map(Bytes),
        compute_capability: gpu.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
        mig: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Driver;
    use jobc_nvml::{Mig, MigDevice};

    fn cut_up(profiles: &[&str]) -> Gpu {
        let device = |profile: &&str| MigDevice {
            index: 0,
            uuid: None,
            profile: Some((*profile).to_owned()),
            memory_bytes: None,
            gi: 0,
            ci: 0,
            caps: vec![],
        };
        let mig = Mig { enabled: true, devices: profiles.iter().map(device).collect() };
        Gpu { mig: Some(mig), ..whole() }
    }

    fn whole() -> Gpu {
        Gpu { name: "NVIDIA A100-SXM4-80GB".into(), memory_bytes: Some(80 << 30), ..Gpu::default() }
    }

    #[test]
    fn cards_of_a_kind_are_counted_together() {
        let driver = Driver { version: "535.104.05".into(), cuda: Some("12.2".into()) };
        let gpus = vec![whole(), whole(), cut_up(&["3g.40gb", "1g.10gb"]), cut_up(&["1g.10gb", "1g.10gb"])];
        let declared = Inventory { driver: Some(driver), gpus, source: Source::Nvml, ..Inventory::default() }
            .to_target_gpus();
        let [two, cut] = &declared.cards.unwrap()[..] else { panic!("two kinds") };
        assert_eq!((two.count, &two.mig), (Some(2), &Some(IndexMap::new())), "whole, and certainly so");
        let profiles: Vec<_> =
            cut.mig.iter().flatten().map(|(profile, count)| (profile.as_str(), *count)).collect();
        assert_eq!((cut.count, profiles), (Some(2), vec![("3g.40gb", 1), ("1g.10gb", 3)]));
        assert_eq!((declared.driver.as_deref(), declared.found), (Some("535.104.05"), true));
    }

    #[test]
    fn no_card_is_certain_and_an_unknown_profile_is_not() {
        assert_eq!(Inventory::default().to_target_gpus().cards, Some(vec![]));
        let mut gpu = cut_up(&["1g.10gb"]);
        gpu.mig.as_mut().unwrap().devices[0].profile = None;
        let declared = Inventory { gpus: vec![gpu], ..Inventory::default() }.to_target_gpus();
        assert_eq!(declared.cards.unwrap()[0].mig, None);
        let by_files = Inventory { gpus: vec![whole()], source: Source::Proc, ..Inventory::default() };
        assert_eq!(by_files.to_target_gpus().cards.unwrap()[0].mig, None);
    }

    #[test]
    fn a_card_without_mig_instances_is_not_usable() {
        let inventory = Inventory { gpus: vec![cut_up(&[])], ..Inventory::default() };
        assert_eq!(inventory.to_target_gpus().cards, Some(vec![]));
    }
}
