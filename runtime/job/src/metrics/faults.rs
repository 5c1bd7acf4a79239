//! What is wrong with GPUs, and whether they get on: from two samples of NVML.

use jobc_gpu::lease::Slot;
use jobc_gpu::nvml::{CardHealth, UsageSample};
use jobc_place::verdict::{NodeFault, xid};

/// A GPU that is used at least as much is used all the time.
const FULL_PERCENT: u8 = 95;

/// A GPU that is used less does nothing.
const IDLE_PERCENT: u8 = 5;

/// A GPU that is used all the time and draws less of its limit waits in a kernel, as those of collectives do.
const LOW_POWER_PERCENT: u32 = 30;

/// Something that happened to a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFault {
    uuid: String,
    index: u32,
    /// NVIDIA's number of it.
    pub xid: Option<u64>,
    /// What happened.
    pub what: String,
    /// What to do, if the node is at fault.
    next: Option<String>,
}

/// What the GPUs of a task do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuActivity {
    /// One of them works.
    Works,
    /// All of them are used all the time, and draw little power.
    Spins,
    /// They do nothing, or some of them wait and others do nothing.
    Idle,
}

impl GpuFault {
    /// The number of the GPU, for people.
    pub fn gpu(&self) -> String {
        format!("GPU {}", self.index)
    }

    /// The fault of the node that it is, if it is one.
    pub fn of_node(&self) -> Option<NodeFault> {
        let next = self.next.clone()?;
        Some(NodeFault { what: format!("{}: {}", self.gpu(), self.what), next })
    }

    /// Whether it happened to one of these devices. A MIG instance has the faults of its card.
    pub(super) fn is_of(&self, slots: &[Slot]) -> bool {
        slots
            .iter()
            .any(|slot| slot.name == self.uuid || slot.device.mig.is_some() && slot.device.gpu == self.index)
    }
}

/// What has happened between two samples. Of counters the first sample says nothing: their errors are old.
pub(super) fn between(before: &UsageSample, now: &UsageSample) -> Vec<GpuFault> {
    let mut found = vec![];
    for (uuid, health) in &now.health {
        let last = before.health.iter().find(|(known, _)| known == uuid).map(|(_, health)| health);
        let mut add = |xid, what: String, next: Option<&str>| {
            let (uuid, next) = (uuid.clone(), next.map(str::to_owned));
            found.push(GpuFault { uuid, index: health.index, xid, what, next });
        };
        for number in &health.xids {
            let (what, next) = xid(*number);
            add(Some(*number), what, next);
        }
        let more = |counter: fn(&CardHealth) -> Option<u64>| {
            counter(health)?.checked_sub(counter(last?)?).filter(|more| *more > 0)
        };
        if let Some(more) = more(|health| health.ecc_errors) {
            let next = "have the node drained: the memory of a GPU has errors";
            add(None, format!("{more} {} of its memory could not be corrected", errors(more)), Some(next));
        }
        if let Some(more) = more(|health| health.nvlink_errors) {
            add(None, format!("{more} {} of its NVLinks", errors(more)), None);
        }
        let is_new = last.is_none_or(|last| last.slowdown.is_none());
        if let Some(why) = health.slowdown.as_ref().filter(|_| is_new) {
            add(None, format!("its clocks are reduced: {why}"), None);
        }
    }
    found
}

fn errors(count: u64) -> &'static str {
    if count == 1 { "error" } else { "errors" }
}

/// What whole GPUs do, by a sample.
pub(super) fn activity(sample: &UsageSample, slots: &[Slot]) -> Option<GpuActivity> {
    let of = |slot: &Slot| {
        // Who uses the rest of a card is not known.
        let is_whole = slot.slice.is_none() && slot.device.mig.is_none();
        let used = sample.busy.iter().find(|(uuid, _)| *uuid == slot.name).filter(|_| is_whole)?.1?;
        let health = sample.health.iter().find(|(uuid, _)| *uuid == slot.name).map(|(_, health)| health);
        let power = health.and_then(|health| Some((health.power?, health.power_limit?)));
        Some(match (used, power) {
            (..IDLE_PERCENT, _) => GpuActivity::Idle,
            (FULL_PERCENT.., Some((draw, limit)))
                if u64::from(draw) * 100 < u64::from(limit) * u64::from(LOW_POWER_PERCENT) =>
            {
                GpuActivity::Spins
            }
            _ => GpuActivity::Works,
        })
    };
    let all: Vec<GpuActivity> = slots.iter().map(of).collect::<Option<_>>()?;
    if all.contains(&GpuActivity::Works) {
        Some(GpuActivity::Works)
    } else if all.iter().all(|one| *one == GpuActivity::Spins) {
        (!all.is_empty()).then_some(GpuActivity::Spins)
    } else {
        Some(GpuActivity::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_gpu::DeviceId;
    use jobc_schema::gpu::Vendor;

    fn sample(used: u8, power: u32, change: impl FnOnce(&mut CardHealth)) -> UsageSample {
        let mut health = CardHealth {
            index: 3,
            ecc_errors: Some(2),
            nvlink_errors: Some(0),
            power: Some(power),
            power_limit: Some(700_000),
            ..CardHealth::default()
        };
        change(&mut health);
        let (busy, health) = (vec![("GPU-a".to_owned(), Some(used))], vec![("GPU-a".to_owned(), health)]);
        UsageSample { busy, health, ..UsageSample::default() }
    }

    fn slot(mig: Option<u32>) -> Slot {
        let name = mig.map_or("GPU-a", |_| "MIG-a").to_owned();
        Slot { device: DeviceId { vendor: Vendor::Nvidia, gpu: 3, mig }, name, slice: None }
    }

    #[test]
    fn what_has_changed_is_a_fault() {
        let healthy = sample(97, 600_000, |_| {});
        assert_eq!(between(&UsageSample::default(), &healthy), []);
        assert_eq!(between(&healthy, &healthy), []);
        let bad = sample(97, 600_000, |health| {
            health.xids = vec![31, 79];
            (health.ecc_errors, health.nvlink_errors) = (Some(3), Some(40));
            health.slowdown = Some("it is too hot".to_owned());
        });
        let faults = between(&healthy, &bad);
        let shown: Vec<(String, bool)> =
            faults.iter().map(|fault| (fault.what.clone(), fault.of_node().is_some())).collect();
        let expected = [
            ("XID 31: a program on it accessed memory that it does not have", false),
            ("XID 79: it has fallen off the bus", true),
            ("1 error of its memory could not be corrected", true),
            ("40 errors of its NVLinks", false),
            ("its clocks are reduced: it is too hot", false),
        ];
        assert_eq!(shown, expected.map(|(what, is_node)| (what.to_owned(), is_node)));
        assert!(faults.iter().all(|fault| fault.is_of(&[slot(None)]) && fault.is_of(&[slot(Some(1))])));
        // Reduced clocks are reported once.
        assert!(between(&bad, &bad).iter().all(|fault| fault.xid.is_some()));
    }

    #[test]
    fn a_gpu_that_draws_little_at_full_use_spins() {
        let all = |used, power| activity(&sample(used, power, |_| {}), &[slot(None)]);
        assert_eq!(all(100, 120_000), Some(GpuActivity::Spins));
        assert_eq!(all(100, 450_000), Some(GpuActivity::Works));
        assert_eq!(all(40, 120_000), Some(GpuActivity::Works));
        assert_eq!(all(1, 80_000), Some(GpuActivity::Idle));
        assert_eq!(activity(&sample(100, 120_000, |_| {}), &[slot(Some(1))]), None);
        assert_eq!(activity(&sample(100, 120_000, |_| {}), &[]), None);
        let unknown = sample(100, 120_000, |health| health.power_limit = None);
        assert_eq!(activity(&unknown, &[slot(None)]), Some(GpuActivity::Works));
    }
}
