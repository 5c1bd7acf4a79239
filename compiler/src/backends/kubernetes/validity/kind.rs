//! The kind that the target names, and the roles that it supports.

use jobc_schema::Pointer;
use jobc_schema::role::UNLIMITED_RETRIES;
use jobc_schema::target::KubernetesKind;

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};

use super::super::cluster::Cluster;
use super::super::settings::setting_at;
use super::super::{leaderworkerset, mpijob, rayjob, trainjob, volcano};

/// Rejects a job whose roles do not match its kind.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    match cluster.settings.kind {
        KubernetesKind::Auto | KubernetesKind::Jobset => {}
        KubernetesKind::Volcano => volcano::check(cluster, sink),
        KubernetesKind::Job => one_role(cluster, "Job", "jobset", sink),
        KubernetesKind::Pod => pod(cluster, sink),
        KubernetesKind::Trainjob => trainjob::check(cluster, sink),
        KubernetesKind::Mpijob => mpijob::check(cluster, sink),
        KubernetesKind::Rayjob => rayjob::check(cluster, sink),
        KubernetesKind::Leaderworkerset => leaderworkerset::check(cluster, sink),
        KubernetesKind::Pytorchjob => leaving(cluster, "PyTorchJob", sink),
        KubernetesKind::Tfjob => leaving(cluster, "TFJob", sink),
    }
}

fn one_role(cluster: &Cluster<'_>, kind: &str, instead: &str, sink: &mut Sink) {
    if cluster.job.roles.len() <= 1 {
        return;
    }
    sink.push(
        Diagnostic::error(
            codes::KUBERNETES_KIND,
            format!(
                "a {kind} has one pod template, and job `{}` has {} roles",
                cluster.job.name,
                cluster.job.roles.len()
            ),
        )
        .at_key(&Pointer::ROOT.key("roles"), "")
        .at_place(Location::target(&setting_at(cluster.job, ["kind"])), format!("asks for a {kind}"))
        .note(format!("write `kind: {instead}` or `kind: auto` for the target")),
    );
}

fn pod(cluster: &Cluster<'_>, sink: &mut Sink) {
    one_role(cluster, "Pod", "jobset", sink);
    let [role] = &cluster.job.roles[..] else { return };
    if role.instances > 1 {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_KIND,
                format!("a Pod is one instance, and role `{}` has {}", role.name, role.instances),
            )
            .at_key(&role.at().key("instances"), "")
            .at_place(Location::target(&setting_at(cluster.job, ["kind"])), "asks for a Pod")
            .note("write `kind: job` or `kind: auto` for the target"),
        );
    }
    if role.retry.max == UNLIMITED_RETRIES {
        sink.push(
            Diagnostic::info(
                codes::KUBERNETES_KIND,
                "a Pod restarts its container on its node; one that is evicted or loses its node does not come back"
                    .to_owned(),
            )
            .at_key(&role.at().key("retry"), "becomes `restartPolicy: OnFailure`")
            .note("`kind: job` makes a new pod"),
        );
    }
}

/// Kinds of the old Training Operator, which Kueue no longer supports.
fn leaving(cluster: &Cluster<'_>, name: &str, sink: &mut Sink) {
    let at = Location::target(&setting_at(cluster.job, ["kind"]));
    sink.push(
        Diagnostic::error(codes::KUBERNETES_KIND, format!("jobc does not write the legacy kind {name}"))
            .at_place(at.clone(), "")
            .note("its successor is TrainJob: write `kind: trainjob` where Kubeflow Trainer is installed, or `auto`")
            .fix("write `trainjob`", at, "trainjob", Safety::Unsafe),
    );
}
