//! The placeholders of the table of providers: a request's amounts in a provider's units, rounded up.

use jobc_schema::plan::{GpuPlan, RolePlan};
use jobc_schema::target::{KubernetesTarget, MemoryUnit};

use crate::stdlib::providers::{Part, Provider, ResourceRequest, Unit};

/// The values of the placeholders.
pub(super) struct Filler<'a> {
    provider: &'a Provider,
    gpu: &'a GpuPlan,
    settings: &'a KubernetesTarget,
    memory_unit: Option<MemoryUnit>,
    /// MiB per unit, if the setup of the cluster makes the unit coarser.
    memory_factor: u32,
}

/// An amount that was rounded up to the unit of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rounding {
    /// The part of the share.
    pub part: Part,
    /// The unit: `GiB`, `steps of 5 %`.
    pub unit: String,
    /// The rounded amount: `9 GiB`.
    pub to: String,
}

/// A key and an amount as written in a pod.
pub(super) struct ResourceAmount {
    pub(super) key: String,
    pub(super) amount: String,
    pub(super) rounded: Option<Rounding>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(
        provider: &'a Provider,
        role: &'a RolePlan,
        settings: &'a KubernetesTarget,
    ) -> Option<Self> {
        let gpu = role.resources.gpu.as_ref()?;
        let memory_unit = settings.gpu.as_ref().and_then(|gpu| gpu.memory_unit);
        let memory_factor = settings.gpu.as_ref().and_then(|gpu| gpu.memory_factor).unwrap_or(1);
        Some(Self { provider, gpu, settings, memory_unit, memory_factor })
    }

    /// The result of a request; `None` if a placeholder has no value: a share may lack one of its parts.
    ///
    /// `j` is the number of the GPU, for entries that are written once per GPU.
    pub(super) fn fill(&self, ask: &ResourceRequest, j: u32) -> Option<ResourceAmount> {
        let mut rounded = None;
        let key = self.text(&ask.key, ask, j, &mut rounded)?;
        let amount = self.text(&ask.amount, ask, j, &mut rounded)?;
        Some(ResourceAmount { key, amount, rounded })
    }

    /// A text of the table whose placeholders have nothing to do with amounts, such as a label.
    pub(super) fn plain(&self, text: &str) -> Option<String> {
        let none = ResourceRequest {
            key: String::new(),
            amount: String::new(),
            place: crate::stdlib::providers::PodField::Labels,
            unit: None,
            step: None,
            each: false,
            above_one: false,
        };
        self.text(text, &none, 0, &mut None)
    }

    fn text(
        &self,
        template: &str,
        ask: &ResourceRequest,
        j: u32,
        rounded: &mut Option<Rounding>,
    ) -> Option<String> {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (hole, after) = after.split_once('}')?;
            out.push_str(before);
            out.push_str(&self.hole(hole, ask, j, rounded)?);
            rest = after;
        }
        out.push_str(rest);
        Some(out)
    }

    fn hole(
        &self,
        name: &str,
        ask: &ResourceRequest,
        j: u32,
        rounded: &mut Option<Rounding>,
    ) -> Option<String> {
        let gpu = self.gpu;
        let share = gpu.share.as_ref();
        let settings = self.settings.gpu.as_ref();
        Some(match name {
            "count" => gpu.count.to_string(),
            "percent" => (u64::from(gpu.count) * 100).to_string(),
            "j" => j.to_string(),
            "memory" => {
                let (amount, inexact) = self.memory(share?.memory_bytes?, ask.unit?)?;
                if let Some(unit) = inexact {
                    *rounded = Some(Rounding { part: Part::Memory, to: format!("{amount} {unit}"), unit });
                }
                amount.to_string()
            }
            "cores" => {
                let cores = share?.cores_percent?;
                let step = ask.step.unwrap_or(1);
                let up = cores.next_multiple_of(step);
                if up != cores {
                    let unit = format!("steps of {step} %");
                    *rounded = Some(Rounding { part: Part::Cores, unit, to: format!("{up} %") });
                }
                up.to_string()
            }
            "fraction" => fraction(share?.cores_percent?),
            // The device plugin's own spelling: `1g.10gb+me` is `nvidia.com/mig-1g.10gb.me`.
            "profile" => share?.profile.as_deref()?.replace('+', "."),
            "model" => self.model()?,
            "resource" => settings?.resource.clone()?,
            "library" => settings?.library.as_ref()?.trim_end_matches('/').to_owned(),
            "server" => settings?.servers.get(usize::try_from(gpu.first + j).ok()?)?.clone(),
            "queue" => self.settings.queue.as_ref()?.kai.clone()?,
            "shared" => if settings.is_some_and(|gpu| gpu.renamed) { ".shared" } else { "" }.to_owned(),
            _ => return None,
        })
    }

    /// The first model that the provider has a name for, as the provider spells it.
    fn model(&self) -> Option<String> {
        let names = &self.provider.model_names;
        self.gpu.models.iter().find_map(|wanted| {
            let plain = |name: &str| name.replace([' ', '-', '_'], "").to_ascii_lowercase();
            names.iter().find(|name| plain(name) == plain(wanted)).cloned()
        })
    }

    /// Bytes in a unit, rounded up, and the unit if rounding changed the amount.
    fn memory(&self, bytes: u64, unit: Unit) -> Option<(u64, Option<String>)> {
        let unit = match (unit, self.memory_unit, self.memory_factor) {
            (Unit::Setting, None, _) => return None,
            (Unit::Setting | Unit::GiBUnlessSet, Some(MemoryUnit::MiB), _) | (Unit::Factor, _, 1) => {
                Unit::MiB
            }
            (unit, ..) => unit,
        };
        let (size, name) = match unit {
            Unit::B => (1, "bytes"),
            Unit::MiB => (1 << 20, "MiB"),
            Unit::Factor => (u64::from(self.memory_factor) << 20, "units of"),
            Unit::Blocks => (1 << 28, "blocks of 256 MiB"),
            Unit::GB => (1_000_000_000, "GB"),
            Unit::GiB | Unit::GiBUnlessSet | Unit::Setting => (1 << 30, "GiB"),
        };
        let name =
            if unit == Unit::Factor { format!("{name} {} MiB", self.memory_factor) } else { name.to_owned() };
        let inexact = (!bytes.is_multiple_of(size)).then_some(name);
        Some((bytes.div_ceil(size).max(1), inexact))
    }
}

/// Percent as a fraction without zeros at the end: `0.3`, `1.0`.
fn fraction(percent: u32) -> String {
    let text = format!("{}.{:02}", percent / 100, percent % 100);
    text.strip_suffix('0').map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::fraction;

    #[test]
    fn percent_becomes_a_fraction() {
        for (percent, text) in [(100, "1.0"), (30, "0.3"), (5, "0.05"), (99, "0.99"), (1, "0.01")] {
            assert_eq!(fraction(percent), text);
        }
    }
}
