//! GPUs: the request of an instance, and the logical index of its first GPU.

use std::collections::BTreeMap;

use jobc_schema::Pointer;
use jobc_schema::gpu::{DriverCapability, Gpu, GpuRules, Isolation, OneOrMany, Share, Vendor};
use jobc_schema::plan::{GpuPlan, SharePlan};
use jobc_schema::target::{BackendName, Target};

use super::context::Context;
use super::graph::Graph;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::stdlib::providers;

/// Above this number of roles with GPUs, no GPU is used by two of them.
const COMPARED_ROLES: usize = 64;

/// The default driver capabilities, which are also the default of NVIDIA's runtime.
const DEFAULT_CAPABILITIES: [DriverCapability; 2] = [DriverCapability::Compute, DriverCapability::Utility];

/// The GPUs of an instance; `first` is the index of its role's first GPU.
///
/// If the target is a cluster, its provider determines how a slice is enforced.
pub(super) fn resolve_gpu(gpu: &Gpu, first: u32, target: &Target, at: &Pointer, sink: &mut Sink) -> GpuPlan {
    let mut plan = amounts(gpu, first, at, sink);
    if target.backends.contains(&BackendName::Kubernetes)
        && let Some(share) = &mut plan.share
    {
        let named =
            target.kubernetes.as_ref().and_then(|settings| settings.gpu.as_ref()?.provider.as_deref());
        let provider = providers::chosen(named, plan.vendor);
        share.enforced_by = provider.and_then(|provider| provider.way(Some(share))?.enforce);
    }
    plan
}

fn amounts(gpu: &Gpu, first: u32, at: &Pointer, sink: &mut Sink) -> GpuPlan {
    match gpu {
        Gpu::Count(count) => {
            GpuPlan { count: *count, first, capabilities: default_capabilities(*count), ..GpuPlan::default() }
        }
        Gpu::All(_) => {
            GpuPlan { all: true, capabilities: DEFAULT_CAPABILITIES.to_vec(), ..GpuPlan::default() }
        }
        Gpu::Rules(rules) => {
            let count = rules.count.unwrap_or(1);
            if count == 0 {
                report_rules_for_none(rules, at, sink);
            }
            let capabilities = if rules.capabilities.is_empty() {
                default_capabilities(count)
            } else {
                rules.capabilities.clone()
            };
            GpuPlan {
                count,
                all: false,
                first,
                vendor: rules.vendor,
                models: match &rules.model {
                    None => vec![],
                    Some(OneOrMany::One(model)) => vec![model.clone()],
                    Some(OneOrMany::Many(models)) => models.clone(),
                },
                memory_bytes: rules.memory.map(|bytes| bytes.0),
                compute_capability: rules.compute_capability.clone(),
                cuda: rules.cuda.clone(),
                driver: rules.driver.clone(),
                capabilities,
                grow: rules
                    .share
                    .as_ref()
                    .and_then(|share| resolve_grow(share, count, &at.key("share"), sink)),
                share: rules
                    .share
                    .as_ref()
                    .filter(|share| share.grow.is_none())
                    .map(|share| resolve_share(share, &at.key("share"), sink)),
            }
        }
    }
}

/// Reports instances that would each need all GPUs at the same time.
pub(super) fn report_several(at: &Pointer, instances: &Pointer, sink: &mut Sink) {
    sink.push(
        Diagnostic::error(codes::GPU_ALL_SHARED, "each instance would take all GPUs of the host")
            .at(at, "")
            .at(instances, "this many at once")
            .note("write a number of GPUs for each instance, one instance, or `parallel: 1` to run them one by one"),
    );
}

fn default_capabilities(count: u32) -> Vec<DriverCapability> {
    if count == 0 { vec![] } else { DEFAULT_CAPABILITIES.to_vec() }
}

fn report_rules_for_none(rules: &GpuRules, at: &Pointer, sink: &mut Sink) {
    let written = [
        ("model", rules.model.is_some()),
        ("memory", rules.memory.is_some()),
        ("compute_capability", rules.compute_capability.is_some()),
        ("cuda", rules.cuda.is_some()),
        ("driver", rules.driver.is_some()),
        ("capabilities", !rules.capabilities.is_empty()),
        ("share", rules.share.is_some()),
    ];
    if let Some((key, _)) = written.iter().find(|(_, written)| *written) {
        sink.push(
            Diagnostic::error(codes::GPU_RULES, format!("`{key}` is about GPUs, but `count` is 0"))
                .at_key(&at.key(key), "")
                .at(&at.key("count"), "no GPU")
                .note("write `gpu: 0` to hide all GPUs, or a `count` above 0")
                .fix("write `gpu: 0`", Location::value(at), "0", Safety::Unsafe),
        );
    }
}

fn resolve_share(share: &Share, at: &Pointer, sink: &mut Sink) -> SharePlan {
    for (key, written) in [("memory", share.memory.is_some()), ("cores", share.cores.is_some())] {
        if share.profile.is_some() && written {
            sink.push(
                Diagnostic::error(codes::GPU_RULES, format!("`profile` and `{key}` exclude each other"))
                    .at_key(&at.key(key), "")
                    .at_key(&at.key("profile"), "a MIG profile fixes both memory and cores")
                    .note(format!("remove `{key}`, or remove `profile` and write `memory` or `cores`")),
            );
        }
    }
    if share.time {
        check_time(share, at, sink);
    } else if share.profile.is_none() && share.memory.is_none() && share.cores.is_none() {
        sink
            .push(Diagnostic::error(codes::GPU_RULES, "`share` has no size of the slice").at_key(at, "").note(
            "write for example `share: {memory: 8GiB}`, `share: {cores: 30}` or `share: {profile: 1g.10gb}`",
        ));
    }
    SharePlan {
        memory_bytes: share.memory.map(|bytes| bytes.0),
        cores_percent: share.cores,
        profile: share.profile.clone(),
        isolation: if share.time { Isolation::None } else { share.isolation },
        same_card: share.same_card,
        time: share.time,
        enforced_by: None,
    }
}

/// The most whole GPUs of an instance, where it grows.
fn resolve_grow(share: &Share, count: u32, at: &Pointer, sink: &mut Sink) -> Option<u32> {
    let (most, at_grow) = (share.grow?, at.key("grow"));
    if *share != (Share { grow: share.grow, ..Share::default() }) {
        sink.push(
            Diagnostic::error(codes::GPU_RULES, "`grow` is about whole GPUs, and excludes slices and turns")
                .at_key(&at_grow, "")
                .note("keep `grow` alone in `share`, or remove it"),
        );
    }
    if most <= count {
        sink.push(
            Diagnostic::error(codes::GPU_RULES, format!("`grow` is the most GPUs, and `count` is {count}"))
                .at(&at_grow, "")
                .note(format!("write a number above {count}, or remove `share`")),
        );
    }
    Some(most)
}

/// Reports what does not go together with turns on whole GPUs.
fn check_time(share: &Share, at: &Pointer, sink: &mut Sink) {
    let whole = "jobs take turns on whole GPUs";
    let others = [
        ("profile", share.profile.is_some(), whole),
        ("cores", share.cores.is_some(), whole),
        ("same_card", share.same_card, whole),
        ("isolation", share.isolation == Isolation::Hard, "nothing enforces how much memory a job keeps"),
    ];
    for (key, _, why) in others.iter().filter(|(_, written, _)| *written) {
        sink.push(
            Diagnostic::error(codes::GPU_RULES, format!("`time` and `{key}` exclude each other"))
                .at_key(&at.key(key), "")
                .at_key(&at.key("time"), *why)
                .note(format!("remove `{key}`, or remove `time`")),
        );
    }
    if share.memory.is_none() {
        sink.push(
            Diagnostic::error(codes::GPU_RULES, "`share` does not say how much GPU memory the job keeps")
                .at_key(&at.key("time"), "a frozen job keeps its memory")
                .note("write what the job uses at most on each GPU, for example `share: {time: true, memory: 20GiB}`"),
        );
    }
}

/// A pool of GPUs that are numbered separately: by vendor, and slices apart from whole GPUs.
type Pool = (Vendor, bool);

struct Placement {
    role: usize,
    first: u64,
    end: u64,
}

/// The logical index of the first GPU of every role, by the role's index.
///
/// Tasks that may run at the same time have different GPUs. A role may reuse those of roles that have ended before it
/// starts: it needs all of them to succeed, directly or indirectly.
pub(super) fn number_gpus(context: &Context<'_>, graph: &Graph) -> Vec<u32> {
    let job = context.job;
    let mut first = vec![0_u32; job.roles.len()];
    let gpu =
        |number: usize| job.roles[number].resources.as_ref().and_then(|resources| resources.gpu.as_ref());
    let users =
        (0..first.len()).filter(|&number| gpu(number).is_some() && context.table[number].gpus > 0).count();
    let compare = users <= COMPARED_ROLES;
    let ended = if compare { ended_before(context, graph) } else { BTreeMap::new() };
    let mut pools: BTreeMap<Pool, Vec<Placement>> = BTreeMap::new();
    for &role in &graph.order {
        let Some(gpu) = gpu(role) else { continue };
        let facts = context.table[role];
        let size = u64::from(facts.instances) * u64::from(facts.gpus);
        if size == 0 {
            continue;
        }
        let pool = match gpu {
            Gpu::Count(_) | Gpu::All(_) => (Vendor::Nvidia, false),
            Gpu::Rules(rules) => (rules.vendor, rules.share.is_some()),
        };
        let placed = pools.entry(pool).or_default();
        let start = if compare {
            lowest_free(placed, size, |other| ended.get(&role).is_some_and(|before| before.contains(&other)))
        } else {
            placed.last().map_or(0, |last| last.end)
        };
        first[role] = u32::try_from(start).unwrap_or(u32::MAX);
        placed.push(Placement { role, first: start, end: start + size });
    }
    first
}

/// The lowest start of `size` consecutive indices that no running role uses.
fn lowest_free(placed: &[Placement], size: u64, has_ended: impl Fn(usize) -> bool) -> u64 {
    let mut taken: Vec<(u64, u64)> =
        placed.iter().filter(|other| !has_ended(other.role)).map(|other| (other.first, other.end)).collect();
    taken.sort_unstable();
    let mut start = 0;
    for (first, end) in taken {
        if start + size <= first {
            break;
        }
        start = start.max(end);
    }
    start
}

/// For each role with GPUs, the roles with GPUs that have ended when it starts.
///
/// Each set has at most [`COMPARED_ROLES`] entries, so this is linear in the number of roles.
fn ended_before(context: &Context<'_>, graph: &Graph) -> BTreeMap<usize, Vec<usize>> {
    let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &role in &graph.order {
        let mut before: Vec<usize> = Vec::new();
        for (other, min) in graph.finished_before(role) {
            // If only some instances must have succeeded, the others may still run.
            if min < context.table[other].instances {
                continue;
            }
            before.extend(sets.get(&other).into_iter().flatten());
            if context.table[other].gpus > 0 {
                before.push(other);
            }
        }
        before.sort_unstable();
        before.dedup();
        if !before.is_empty() {
            sets.insert(role, before);
        }
    }
    sets
}
