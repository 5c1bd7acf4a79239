//! The labels that a node must have so that its GPUs match a role's request: those of GPU feature discovery.

use jobc_schema::gpu::min_mib;
use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan};

use super::products::{labels_of, mig_labels};
use super::provider::provider;
use crate::stdlib::models;

/// The product's name.
const PRODUCT: &str = "nvidia.com/gpu.product";
/// MiB of memory of one GPU.
const MEMORY: &str = "nvidia.com/gpu.memory";

/// The requirement for one label of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    /// The label.
    pub key: &'static str,
    /// `In`, or `Gt`, which compares whole numbers.
    pub operator: &'static str,
    /// The values.
    pub values: Vec<String>,
    /// The key below `resources.gpu` that requests it.
    pub asked_by: &'static str,
}

/// Whether the nodes of a provider have the labels of feature discovery, judging by how it selects models.
pub(crate) fn has_labels(by: &str) -> bool {
    by.starts_with("labels") || by.contains('/')
}

/// The requirements of a role for a node: one of the alternatives, each a list of labels that must all match. Empty
/// means any node.
///
/// Labels in the target's `node_selector` are left to it.
pub(crate) fn requirements(job: &JobPlan, role: &RolePlan, selected: &[&str]) -> Vec<Vec<Requirement>> {
    let Some(gpu) = role.gpus() else { return vec![] };
    let Ok(provider) = provider(job, gpu.vendor) else { return vec![] };
    let Some(by) = provider.models.as_deref().filter(|by| has_labels(by)) else { return vec![] };
    let mut both: Vec<Vec<Requirement>> = vec![vec![]];
    let by_annotation = by.contains('/');
    if !selected.contains(&PRODUCT) && !by_annotation {
        both[0].extend(product(gpu, by == "labels-of-slices"));
    }
    // The annotation only names a family; the memory size must come from a node label.
    let sized = match &gpu.models[..] {
        [one] if by_annotation => models::find(one).and_then(|found| found.memory_gb).map(|gb| gb << 30),
        _ => None,
    };
    let least = [(gpu.memory_bytes, "memory"), (sized, "model")];
    let least = least.into_iter().filter_map(|(bytes, asked_by)| Some((bytes?, asked_by))).max();
    if !selected.contains(&MEMORY)
        && let Some((bytes, asked_by)) = least
    {
        let values = vec![(min_mib(bytes) - 1).to_string()];
        both[0].push(Requirement { key: MEMORY, operator: "Gt", values, asked_by });
    }
    let versions = [
        (
            &gpu.compute_capability,
            ["nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor", ""],
            "compute_capability",
        ),
        (
            &gpu.driver,
            ["nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"],
            "driver",
        ),
        (&gpu.cuda, ["nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor", ""], "cuda"),
    ];
    for (version, keys, asked_by) in versions {
        if let Some(version) = version
            && !selected.contains(&keys[0])
        {
            both = product_of(&both, &at_least(version, keys, asked_by));
        }
    }
    both.retain(|all| !all.is_empty());
    both
}

/// The names of acceptable cards, if the role names models or a profile that the label contains.
///
/// With MIG strategy `single` the label has the profile after the product.
fn product(gpu: &GpuPlan, with_slices: bool) -> Option<Requirement> {
    let profile = gpu.share.as_ref().and_then(|share| share.profile.as_deref());
    let mut values: Vec<String> = vec![];
    for model in &gpu.models {
        values.extend(labels_of(model, profile.is_some()).into_iter().map(str::to_owned));
    }
    let mut asked_by = "model";
    if let (true, Some(profile)) = (with_slices, profile) {
        if gpu.models.is_empty() {
            values.extend(mig_labels().map(str::to_owned));
            asked_by = "share";
        }
        for value in &mut values {
            // A label cannot contain `+`; feature discovery writes `.` instead, as the device plugin does.
            *value = format!("{value}-MIG-{}", profile.replace('+', "."));
        }
    }
    values.sort();
    values.dedup();
    (!values.is_empty()).then_some(Requirement { key: PRODUCT, operator: "In", values, asked_by })
}

/// `version` or later, as alternatives: a greater major, or the same with a greater minor, and so on.
fn at_least(version: &str, keys: [&'static str; 3], asked_by: &'static str) -> Vec<Vec<Requirement>> {
    let numbers: Vec<u64> = version.split('.').map_while(|part| part.parse().ok()).collect();
    let keys: Vec<&'static str> = keys.into_iter().filter(|key| !key.is_empty()).collect();
    let used = numbers.len().min(keys.len());
    // Trailing zeros add no requirement: 8.0 or later is any 8.
    let used = numbers[..used].iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
    let above =
        |key, number: u64| Requirement { key, operator: "Gt", values: vec![number.to_string()], asked_by };
    let mut alternatives = vec![];
    for depth in 0..used {
        let mut all: Vec<Requirement> = vec![];
        for i in 0..depth {
            all.push(Requirement { key: keys[i], operator: "In", values: same(numbers[i]), asked_by });
        }
        let last = depth + 1 == used;
        all.push(above(keys[depth], if last { numbers[depth] - 1 } else { numbers[depth] }));
        alternatives.push(all);
    }
    alternatives
}

/// A number as a label may have it: drivers write `05`, and feature discovery copies that.
fn same(number: u64) -> Vec<String> {
    let plain = number.to_string();
    if number < 10 { vec![format!("0{plain}"), plain] } else { vec![plain] }
}

/// All pairs of alternatives, each pair joined.
fn product_of(left: &[Vec<Requirement>], right: &[Vec<Requirement>]) -> Vec<Vec<Requirement>> {
    if right.is_empty() {
        return left.to_vec();
    }
    left.iter().flat_map(|l| right.iter().map(move |r| l.iter().chain(r).cloned().collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_or_later_is_a_list_of_alternatives() {
        let check = |version: &str, expected: &[&str]| {
            let found: Vec<String> = at_least(version, ["major", "minor", "rev"], "driver")
                .iter()
                .map(|all| {
                    let all: Vec<String> = all
                        .iter()
                        .map(|r| format!("{} {} {}", r.key, r.operator, r.values.join("|")))
                        .collect();
                    all.join(", ")
                })
                .collect();
            assert_eq!(found, expected, "{version}");
        };
        check("8.0", &["major Gt 7"]);
        check("8.6", &["major Gt 8", "major In 08|8, minor Gt 5"]);
        check(
            "550.54.15",
            &["major Gt 550", "major In 550, minor Gt 54", "major In 550, minor In 54, rev Gt 14"],
        );
        check("0.0", &[]);
    }
}
