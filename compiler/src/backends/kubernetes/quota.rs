//! The quota of the target's queue or namespace, against what the job requests.
//!
//! Kueue admits a JobSet with all of its roles, those included that wait for others, so their sum must fit. So must the
//! pod that submits the driver of a RayJob, which the job file does not name.

use jobc_schema::plan::RolePlan;
use jobc_schema::plan::order::RoleOrder;
use jobc_schema::quantity::{Bytes, Cpus};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::rayjob;
use super::settings::setting_at;
use super::shape::Shape;

/// An amount of a resource, as people write it.
type Shown = fn(u64) -> String;

/// What the instances of a role request together.
type Measure<'a> = &'a dyn Fn(&RolePlan) -> u64;

/// Warns of a job that the quota never admits.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let Some(quota) = &cluster.settings.quota else { return };
    let by_kueue = cluster.settings.queue.as_ref().is_some_and(|queue| queue.kueue.is_some());
    let order = RoleOrder::of(cluster.job);
    let all =
        |role: &RolePlan, each: Option<u64>| each.unwrap_or(0).saturating_mul(u64::from(role.at_once()));
    let cpus: Shown = |millis| format!("{} CPUs", Cpus { millis });
    let memory: Shown = |bytes| format!("{} of memory", Bytes(bytes));
    let (added_cpu, added_memory) = match cluster.shape {
        Shape::RayJob => (rayjob::SUBMITTER_CPU_MILLIS, rayjob::SUBMITTER_MEMORY_BYTES),
        _ => (0, 0),
    };
    let resources: [(&str, Option<u64>, Measure<'_>, u64, Shown); 3] = [
        ("gpu", quota.gpu.map(u64::from), &RolePlan::gpus_at_once, 0, |n| format!("{n} GPUs")),
        (
            "cpu",
            quota.cpu.map(|cpus| cpus.millis),
            &|role| all(role, role.resources.cpu_millis),
            added_cpu,
            cpus,
        ),
        (
            "memory",
            quota.memory.map(|bytes| bytes.0),
            &|role| all(role, role.resources.memory_bytes),
            added_memory,
            memory,
        ),
    ];
    for (key, limit, measure, added, shown) in resources {
        let Some(limit) = limit else { continue };
        let groups = u64::from(cluster.groups());
        let measure = |role: &RolePlan| measure(role).saturating_mul(groups);
        let weights: Vec<u64> = cluster.job.roles.iter().map(measure).collect();
        let sum = weights.iter().fold(added, |sum, weight| sum.saturating_add(*weight));
        let peak = order.heaviest(&weights).saturating_add(added);
        let demand = if by_kueue { sum } else { peak };
        let Some(largest) = cluster.job.roles.iter().max_by_key(|role| measure(role)) else { continue };
        if demand <= limit {
            continue;
        }
        let (name, target) = (&cluster.job.name, &cluster.job.target.name);
        let mut found = Diagnostic::warning(
            codes::KUBERNETES_QUOTA,
            format!(
                "job `{name}` requests {} together, above the quota of {} of target `{target}`",
                shown(demand),
                shown(limit)
            ),
        )
        .at_key(&largest.at().keys(["resources", key]), "is the largest part")
        .at_place(Location::target(&setting_at(cluster.job, ["quota", key])), "");
        if added > 0 {
            found =
                found.note(format!("the pod that submits the driver to Ray requests {} of it", shown(added)));
        }
        if by_kueue && peak < sum {
            found = found.note(format!(
                "at most {} run at the same time, but Kueue admits all roles of a JobSet together",
                shown(peak)
            ));
        }
        found = if by_kueue && peak <= limit {
            found.note("the job would wait for ever; submit its stages as jobs of their own, or request less")
        } else {
            found.note("the job would wait for ever; request less")
        };
        sink.push(found);
    }
}
