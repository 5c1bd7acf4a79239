//! Whether the target can run the job at all: its kind, its releases, its queue, and its images.

mod for_kind;
mod kind;

use jobc_schema::target::KubernetesGate;

use crate::diagnostic::{Diagnostic, Location, Safety, Severity, Sink, codes};

use super::cluster::Cluster;
use super::gang;
use super::kinds::{Setting, kind_of};
use super::policy::success_rule;
use super::provider_needs;
use super::quota;
use super::release::{
    ENV_FILES, NEWEST_KUBERNETES, OLDEST_KUBERNETES, Release, SUCCESS_POLICY, format_release,
};
use super::settings::setting_at;
use super::shape::Shape;

/// Checks the job against its target; false where no object can be made.
pub(super) fn check(cluster: &Cluster<'_>, allow_lossy: bool, sink: &mut Sink) -> bool {
    let before = sink.error_count();
    kind::check(cluster, sink);
    releases(cluster, sink);
    provider_needs::check(cluster, sink);
    suspended_queue(cluster, sink);
    for_kind::check(cluster, sink);
    gang::check(cluster, sink);
    let possible = sink.error_count() == before;
    needs(cluster, sink);
    launches(cluster, sink);
    images(cluster, sink);
    volume_secrets(cluster, allow_lossy, sink);
    quota::check(cluster, sink);
    possible
}

/// `suspend` next to Kueue, which suspends and resumes its jobs by the same field.
fn suspended_queue(cluster: &Cluster<'_>, sink: &mut Sink) {
    let Some(queue) = cluster.settings.queue.as_ref().and_then(|queue| queue.kueue.as_ref()) else { return };
    if !cluster.settings.suspend || !cluster.kind().takes(Setting::Kueue) {
        return;
    }
    let at = Location::target(&setting_at(cluster.job, ["suspend"]));
    sink.push(
        Diagnostic::error(
            codes::KUBERNETES_SETTING,
            format!("`suspend` cannot be combined with the Kueue queue `{queue}`"),
        )
        .at_place(at.clone(), "")
        .at_place(
            Location::target(&setting_at(cluster.job, ["queue", "kueue"])),
            "suspends and resumes the job",
        )
        .note("leave `suspend` out; to hold a job back, set `stopPolicy: Hold` of its LocalQueue"),
    );
}

/// Reports releases that are too old for the fields that every job needs.
fn releases(cluster: &Cluster<'_>, sink: &mut Sink) {
    let mut old = |key: &str, product: &str, has: Release, oldest: Release| {
        if has < oldest {
            sink.push(
                Diagnostic::error(
                    codes::KUBERNETES_RELEASE,
                    format!(
                        "jobc writes for {product} {} and later, not {}",
                        format_release(oldest),
                        format_release(has)
                    ),
                )
                .at_place(Location::target(&setting_at(cluster.job, [key])), "")
                .note(format!("write `{key}: \"{}\"` or later if the cluster has it", format_release(oldest)))
                .fix(
                    format!("write `{key}: \"{}\"`", format_release(oldest)),
                    Location::target(&setting_at(cluster.job, [key])),
                    format!("\"{}\"", format_release(oldest)),
                    Safety::Unsafe,
                ),
            );
        }
    };
    old("release", "Kubernetes", cluster.releases.kubernetes, OLDEST_KUBERNETES);
    let kind = cluster.kind();
    if let (Some(product), Some(release)) = (&kind.product, kind.release(cluster.settings))
        && let Some(key) = product.key
    {
        old(key, product.name, release, product.oldest);
    }
    // A TrainJob's JobSet.
    if cluster.shape == Shape::TrainJob {
        old("jobset", "JobSet", cluster.releases.jobset, kind_of(Shape::JobSet, false).oldest());
    }
    if cluster.settings.gates.contains(&KubernetesGate::EnvFiles) && cluster.releases.kubernetes < ENV_FILES {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_RELEASE,
                format!(
                    "Kubernetes {} has no feature gate `EnvFiles`",
                    format_release(cluster.releases.kubernetes)
                ),
            )
            .at_place(Location::target(&setting_at(cluster.job, ["gates"])), "")
            .note(format!("it needs Kubernetes {}; leave the gate out", format_release(ENV_FILES))),
        );
    }
    if cluster.releases.kubernetes > NEWEST_KUBERNETES {
        let newest = format_release(NEWEST_KUBERNETES);
        sink.push(
            Diagnostic::info(
                codes::KUBERNETES_RELEASE,
                format!(
                    "this jobc knows Kubernetes up to {newest}; the output for {} is the same",
                    format_release(cluster.releases.kubernetes)
                ),
            )
            .at_place(Location::target(&setting_at(cluster.job, ["release"])), ""),
        );
    }
}

/// Reports more dependencies than `dependsOn` can have.
fn needs(cluster: &Cluster<'_>, sink: &mut Sink) {
    let max = cluster.releases.max_depends_on();
    if !cluster.shape.is_jobset() || max == 0 {
        return;
    }
    for role in cluster.job.roles.iter().filter(|role| role.needs.len() > max) {
        let release = format_release(cluster.releases.jobset);
        let role_needs = role.needs.len();
        let mut diagnostic = Diagnostic::error(
            codes::KUBERNETES_RELEASE,
            format!(
                "role `{}` needs {role_needs} roles, and JobSet {release} waits for at most {max}",
                role.name
            ),
        )
        .at_key(&role.at().key("needs"), "")
        .note("remove dependencies that follow from others, or combine several roles into one");
        let combinations = role.needs.iter().find_map(|need| cluster.job.role(&need.role)?.matrix.as_ref());
        if let Some(matrix) = combinations {
            let declared = &matrix.role;
            diagnostic = diagnostic.note(format!(
                "each combination of `{declared}` counts; `jobc run` has no such limit, or let the command of `{}` wait for their files",
                role.name
            ));
        }
        if max == 1 && role_needs <= 5 {
            diagnostic = diagnostic.note("JobSet 0.9 and later wait for up to 5; write `jobset: \"0.9\"` for the target if the cluster has it");
        }
        sink.push(diagnostic);
    }
}

/// `launch: first` ends the job with its first instance, which needs a success policy.
fn launches(cluster: &Cluster<'_>, sink: &mut Sink) {
    for role in &cluster.job.roles {
        let by_launch = role.completion.min_succeeded.is_none() && success_rule(role).is_some();
        let by_job = cluster.shape == Shape::IndexedJob || cluster.shape.is_jobset();
        if by_launch && by_job && cluster.releases.kubernetes < SUCCESS_POLICY {
            sink.push(
                Diagnostic::error(
                    codes::KUBERNETES_RELEASE,
                    format!(
                        "role `{}` ends with its first instance, which needs Kubernetes {}, and the target has {}",
                        role.name,
                        format_release(SUCCESS_POLICY),
                        format_release(cluster.releases.kubernetes)
                    ),
                )
                .at_key(&role.at(), "")
                .note("start it from a role of one instance (`launch: ROLE`), which any release can wait for"),
            );
        }
    }
}

/// A cluster pulls images, so built images need a registry.
fn images(cluster: &Cluster<'_>, sink: &mut Sink) {
    if cluster.job.target.settings.registry.is_some() {
        return;
    }
    for image in cluster.job.images.values().filter(|image| image.source.is_built()) {
        sink.push(
            Diagnostic::warning(
                codes::KUBERNETES_REGISTRY,
                format!(
                    "the image `{}` is built here, but the target has no registry to pull it from",
                    image.reference
                ),
            )
            .at(&image.declared_at, "is built")
            .note(format!(
                "write `registry: HOST/PATH` for target `{}`, and push the image there",
                cluster.job.target.name
            )),
        );
    }
}

/// Secrets of volumes that a pod opens without one.
fn volume_secrets(cluster: &Cluster<'_>, allow_lossy: bool, sink: &mut Sink) {
    for (name, volume) in cluster.job.volumes.iter().filter(|(_, volume)| volume.secret.is_some()) {
        let severity = if allow_lossy { Severity::Warning } else { Severity::Error };
        sink.push(
            Diagnostic::new(
                codes::KUBERNETES_VOLUME_SECRET,
                severity,
                format!(
                    "the secret of `{name}` is not used on Kubernetes: a pod cannot use it to mount a volume"
                ),
            )
            .at(&volume.at(name).key("secret"), "")
            .note(
                "the PersistentVolume or its CSI driver holds the credentials; leave `secret` out for this target",
            ),
        );
    }
}
