//! GPUs: the GPU request, and the selection of suitable nodes.

use indexmap::IndexMap;
use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan};
use jobc_schema::target::{SlurmGpu, SlurmTarget};

use crate::stdlib::{Version, models};

/// The option that requests the GPUs of an instance; none without GPUs.
pub(super) fn request(_job: &JobPlan, settings: &SlurmTarget, role: &RolePlan) -> Option<String> {
    let gpu = role.gpus()?;
    let kind = kind(settings, gpu).map(|kind| format!("{kind}:")).unwrap_or_default();
    Some(match settings.gpu {
        SlurmGpu::PerNode => format!("--gpus-per-node={kind}{}", gpu.count),
        SlurmGpu::Gres => format!("--gres=gpu:{kind}{}", gpu.count),
        SlurmGpu::PerTask => format!("--gpus-per-task={kind}{}", gpu.count),
    })
}

/// The GRES type of a role's GPUs, if the job requests a model and the target has a type for it.
fn kind(settings: &SlurmTarget, gpu: &GpuPlan) -> Option<String> {
    if let Some(profile) = gpu.share.as_ref().and_then(|share| share.profile.as_ref()) {
        return settings.gpu_types.get(profile).cloned();
    }
    if !is_particular(gpu) {
        return None;
    }
    match &words(&settings.gpu_types, gpu)[..] {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// The features of nodes with a role's GPUs, if the job requests a model and no GRES type identifies it.
pub(super) fn constraint(settings: &SlurmTarget, role: &RolePlan) -> Option<String> {
    let gpu = role.gpus().filter(|gpu| is_particular(gpu))?;
    if kind(settings, gpu).is_some() {
        return None;
    }
    let features = words(&settings.gpu_features, gpu);
    (!features.is_empty()).then(|| features.join("|"))
}

/// Whether the target specifies which nodes have the GPUs that a role requests.
pub(super) fn is_known(settings: &SlurmTarget, gpu: &GpuPlan) -> bool {
    kind(settings, gpu).is_some() || !words(&settings.gpu_features, gpu).is_empty()
}

/// Whether this is true for only some of the GPUs.
fn is_particular(gpu: &GpuPlan) -> bool {
    !gpu.models.is_empty() || gpu.memory_bytes.is_some() || gpu.compute_capability.is_some()
}

/// The values of a map of the target for the matching models, each once.
fn words(map: &IndexMap<String, String>, gpu: &GpuPlan) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    for (model, word) in map {
        if fits(model, gpu) && !found.contains(word) {
            found.push(word.clone());
        }
    }
    found
}

/// Whether every card of a name meets the request.
fn fits(name: &str, gpu: &GpuPlan) -> bool {
    let known = models::find(name);
    let is_wanted = |wanted: &String| {
        wanted.eq_ignore_ascii_case(name)
            || match (known, models::find(wanted)) {
                (Some(known), Some(wanted)) => {
                    known.model == wanted.model
                        && (wanted.memory_gb.is_none() || smallest(name) == wanted.memory_gb)
                }
                _ => false,
            }
    };
    let has_memory =
        |bytes: u64| smallest(name).is_some_and(|gb| gb.checked_mul(1 << 30).is_some_and(|has| has >= bytes));
    let is_new = |wanted: &String| {
        let has = known.and_then(|known| Version::parse(&known.model.cc));
        matches!((has, Version::parse(wanted)), (Some(has), Some(wanted)) if has >= wanted)
    };
    (gpu.models.is_empty() || gpu.models.iter().any(is_wanted))
        && gpu.memory_bytes.is_none_or(has_memory)
        && gpu.compute_capability.as_ref().is_none_or(is_new)
}

/// The memory class of the smallest card of that name, in GB.
fn smallest(name: &str) -> Option<u64> {
    models::find(name)?.variants().map(|variant| variant.memory_gb).min()
}
