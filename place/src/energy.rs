//! The energy that tasks use, as far as counters tell it.

use jobc_schema::quantity::Energy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The energy that an attempt of a task has used since it began. What no counter tells is absent, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyUse {
    /// Millijoules of its GPUs by the counters of NVML; null if it has none, a card does not count, or it is shared.
    pub gpu_millijoules: Option<u64>,
    /// Whether it has parts of GPUs: NVML counts whole cards, which others use, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu_shared: bool,
    /// Millijoules of the processors by RAPL, as its share of all CPU time; null if this user cannot read the counters.
    pub cpu_millijoules: Option<u64>,
}

/// The energy of several attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyTotal {
    /// Millijoules of the GPUs; null if they are not known of any attempt.
    pub gpu_millijoules: Option<u64>,
    /// Millijoules of the processors; null if they are not known of any attempt.
    pub cpu_millijoules: Option<u64>,
    /// Whether the energy of the GPUs of some attempt is not known: then the sum is what was used at least.
    pub incomplete: bool,
    /// Whether an attempt had parts of GPUs, whose energy is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu_shared: bool,
}

impl EnergyUse {
    /// For people: `1.25 kWh`, `1.25 kWh + 80.2 Wh CPU`, `shared`, or `-` if nothing is known.
    pub fn text(self) -> String {
        text(self.gpu_millijoules.map(|gpu| Energy(gpu).rounded()), self.gpu_shared, self.cpu_millijoules)
    }
}

impl EnergyTotal {
    /// Adds an attempt.
    pub fn add(&mut self, has_gpus: bool, used: Option<EnergyUse>) {
        let used = used.unwrap_or_default();
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = more.map(|more| sum.unwrap_or(0).saturating_add(more)).or(*sum);
        };
        add(&mut self.gpu_millijoules, used.gpu_millijoules);
        add(&mut self.cpu_millijoules, used.cpu_millijoules);
        self.incomplete |= has_gpus && used.gpu_millijoules.is_none();
        self.gpu_shared |= used.gpu_shared;
    }

    /// Millijoules of all that is known.
    pub fn millijoules(self) -> Option<u64> {
        match (self.gpu_millijoules, self.cpu_millijoules) {
            (None, None) => None,
            (gpu, cpu) => Some(gpu.unwrap_or(0).saturating_add(cpu.unwrap_or(0))),
        }
    }

    /// For people, as [`EnergyUse::text`]; with `at least` if some is not known.
    pub fn text(self) -> String {
        let least = if self.incomplete { "at least " } else { "" };
        let gpu = self.gpu_millijoules.map(|gpu| format!("{least}{}", Energy(gpu).rounded()));
        text(gpu, self.gpu_shared, self.cpu_millijoules)
    }
}

fn text(gpu: Option<String>, is_shared: bool, cpu: Option<u64>) -> String {
    let gpu = gpu.or_else(|| is_shared.then(|| "shared".to_owned()));
    let cpu = cpu.map(|cpu| format!("{} CPU", Energy(cpu).rounded()));
    let parts: Vec<String> = gpu.into_iter().chain(cpu).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(" + ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_zero() {
        let known = EnergyUse { gpu_millijoules: Some(3_600_000), ..EnergyUse::default() };
        let shared = EnergyUse { gpu_shared: true, ..EnergyUse::default() };
        let by_cpu = EnergyUse { cpu_millijoules: Some(7_000), ..EnergyUse::default() };
        assert_eq!(
            [known, shared, by_cpu, EnergyUse::default()].map(EnergyUse::text),
            ["1.0 Wh", "shared", "7 J CPU", "-"]
        );
        let total = |attempts: &[(bool, Option<EnergyUse>)]| {
            let mut total = EnergyTotal::default();
            for (has_gpus, used) in attempts {
                total.add(*has_gpus, *used);
            }
            total
        };
        assert_eq!(total(&[(true, Some(known)), (false, Some(by_cpu))]).text(), "1.0 Wh + 7 J CPU");
        assert_eq!(total(&[(true, Some(known)), (true, None)]).text(), "at least 1.0 Wh");
        assert_eq!(total(&[(true, None)]).millijoules(), None);
        assert_eq!(total(&[(true, None)]).text(), "-");
        assert_eq!(total(&[(true, Some(shared)), (true, Some(shared))]).text(), "shared");
    }
}
