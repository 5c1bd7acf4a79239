//! The requirements of a provider for its target: settings, a release, no conflicting provider; and amounts that its
//! units rounded up.

use jobc_schema::plan::{GpuPlan, RolePlan};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::stdlib::providers::{self, Provider};
use crate::suggest;

use super::claims;
use super::cluster::Cluster;
use super::gpu::{missing_settings, names, needs_memory_unit, pod_request, provider};
use super::release::{Releases, format_release};
use super::settings::setting_at;
use super::tpu_topology;

/// Checks the target against the providers of the job's GPUs, and reports rounded amounts.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    others(cluster, sink);
    tpu_topology::check(cluster, sink);
    for role in &cluster.job.roles {
        let Some(gpu) = role.gpus() else { continue };
        let Ok(provider) = provider(cluster.job, gpu.vendor) else { continue };
        settings(cluster, role, provider, gpu, sink);
        if provider.claim.is_some() {
            release(cluster, role, provider, sink);
        }
        rounded(cluster, role, provider, sink);
        shm(cluster, role, provider, sink);
    }
}

/// A size of /dev/shm that is not used, as programs meet the provider's server there.
fn shm(cluster: &Cluster<'_>, role: &RolePlan, provider: &Provider, sink: &mut Sink) {
    if role.resources.shm_bytes.is_some()
        && pod_request(cluster.job, role).is_some_and(|given| given.shared_shm)
    {
        sink.push(
            Diagnostic::info(
                codes::GPU_PROVIDER_NEEDS,
                format!("the programs of role `{}` share /dev/shm with the server of `{}`, so its size is the server's", role.name, provider.name),
            )
            .at(&role.at().keys(["resources", "shm"]), "is not used")
            .note("a volume of its own there would cut them off from it"),
        );
    }
}

/// Declared providers that cannot serve the same nodes as the chosen one.
fn others(cluster: &Cluster<'_>, sink: &mut Sink) {
    let Some(gpu) = &cluster.settings.gpu else { return };
    let chosen = gpu.provider.as_deref().unwrap_or("nvidia");
    for (index, name) in gpu.others.iter().enumerate() {
        let at = setting_at(cluster.job, ["gpu", "others"]).index(index);
        let error = |message: String| {
            Diagnostic::error(codes::GPU_PROVIDERS, message).at_place(Location::target(&at), "")
        };
        let (Some(other), Some(chosen)) = (providers::find(name), providers::find(chosen)) else {
            if providers::find(name).is_none() {
                let known = suggest::list(names());
                sink.push(error(format!("unknown GPU provider `{name}`")).note(format!("known: {known}")));
            }
            continue;
        };
        let excludes = |one: &Provider, two: &Provider| one.excludes.contains(&two.name);
        if excludes(chosen, other) || excludes(other, chosen) {
            sink.push(
                error(format!("the GPU providers `{}` and `{}` cannot serve the same nodes", chosen.name, other.name))
                    .note("each would assign the same cards; label the nodes of each, and write a target for each with `node_selector`"),
            );
        }
    }
}

/// Settings that the provider needs.
fn settings(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    provider: &'static Provider,
    gpu: &GpuPlan,
    sink: &mut Sink,
) {
    let target = &cluster.job.target.name;
    let mut lack = |keys: &[&str], what: &str, write: &str| {
        // The setting itself is not there; the nearest part that is shows where it belongs.
        let there = match keys {
            ["gpu"] if cluster.settings.gpu.is_some() => setting_at(cluster.job, ["gpu"]),
            ["queue"] if cluster.settings.queue.is_some() => setting_at(cluster.job, ["queue"]),
            _ => setting_at(cluster.job, []),
        };
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_SETTING,
                format!(
                    "the GPU provider `{}` needs {what}, which target `{target}` does not set",
                    provider.name
                ),
            )
            .at_place(Location::target(&there), "")
            .at(&role.at().keys(["resources", "gpu"]), "asks for GPUs")
            .note(format!("write for example `{write}`")),
        );
    };
    for lacking in missing_settings(provider, cluster.settings, role) {
        let inner = matches!(lacking.keys[..], ["gpu"]);
        let write = if inner { format!("gpu: {{{}}}", lacking.write) } else { lacking.write.clone() };
        let what = lacking.write.split(':').next().unwrap_or_default();
        lack(&lacking.keys, &format!("`{what}`"), &write);
    }
    if needs_memory_unit(cluster.job, gpu) {
        lack(&["gpu"], "`memory_unit`", "gpu: {memory_unit: MiB}");
    }
    let queue = cluster.settings.queue.as_ref().and_then(|queue| queue.kueue.as_ref());
    let volcano = provider.pod.as_ref().is_some_and(|pod| pod.scheduler.as_deref() == Some("volcano"));
    if let (true, Some(queue)) = (volcano, queue) {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_SETTING,
                format!(
                    "the GPU provider `{}` uses Volcano's scheduler, which does not schedule pods of the Kueue queue `{queue}`",
                    provider.name
                ),
            )
            .at_place(Location::target(&setting_at(cluster.job, ["queue", "kueue"])), "")
            .note("write `queue: {volcano: NAME}`, or use a provider without its own scheduler"),
        );
    }
}

/// A release that is too old for claims, or that needs a setting for the request.
fn release(cluster: &Cluster<'_>, role: &RolePlan, provider: &Provider, sink: &mut Sink) {
    let has = Releases::of(cluster.settings).kubernetes;
    let at = role.at().keys(["resources", "gpu"]);
    if claims::api_version(has).is_none() {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_RELEASE,
                format!(
                    "the GPU provider `{}` uses resource claims, which need Kubernetes {} or later, not {}",
                    provider.name,
                    claims::first_release(),
                    format_release(has)
                ),
            )
            .at_place(Location::target(&setting_at(cluster.job, ["release"])), "")
            .at(&at, "asks for GPUs")
            .note("use a device plugin such as `nvidia` on older clusters"),
        );
        return;
    }
    let mut notice = |message: String, note: String| {
        sink.push(Diagnostic::info(codes::GPU_PROVIDER_NEEDS, message).at(&at, "").note(note));
    };
    let version = |text: &String| -> Option<(u32, u32)> {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    if let Some(least) =
        provider.requires.get("k8s").filter(|least| version(least).is_some_and(|least| has < least))
    {
        notice(
            format!(
                "the driver of `{}` requires Kubernetes {least}, and the target has {}",
                provider.name,
                format_release(has)
            ),
            "earlier releases of the driver may support it".to_owned(),
        );
    }
    if let (true, Some(form)) = (claims::is_shared(cluster.job, role), &provider.claim)
        && let Some(mps) = &form.mps
    {
        notice(
            format!(
                "the slices of role `{}` need the feature gate `{}` of `{}`'s driver",
                role.name, mps.gate, provider.name
            ),
            format!(
                "it is off unless the driver was installed with it; all instances of the role share one card by the claim `{}`",
                claims::object_name(cluster.job, role)
            ),
        );
    }
}

/// Amounts that were rounded up to the units of the provider.
fn rounded(cluster: &Cluster<'_>, role: &RolePlan, provider: &Provider, sink: &mut Sink) {
    let Some(given) = pod_request(cluster.job, role) else { return };
    for rounded in &given.rounded {
        sink.push(
            Diagnostic::info(
                codes::GPU_ROUNDED,
                format!(
                    "`{}` counts in {}; the slice is rounded up to {}",
                    provider.name, rounded.unit, rounded.to
                ),
            )
            .at(&role.at().keys(["resources", "gpu", "share", rounded.part.key()]), "requested here"),
        );
    }
}
