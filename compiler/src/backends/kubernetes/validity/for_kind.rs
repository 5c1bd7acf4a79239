//! Settings of the target that the kind of object does not support.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::super::cluster::Cluster;
use super::super::gpu;
use super::super::kinds::Setting;
use super::super::settings::{RoleSettings, setting_at};
use super::super::shape::Shape;

/// Rejects settings that would be ignored.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let (settings, kind) = (cluster.settings, cluster.kind());
    let queue = settings.queue.as_ref();
    let kueue = queue.is_some_and(|queue| queue.kueue.is_some());
    let instead = if cluster.shape == Shape::SharePod {
        "leave it out, or use a provider that supports pods of Jobs, such as `kubeshare-v2`"
    } else {
        "leave it out, or write `kind: auto`"
    };
    let mut refuse = |keys: &[&str], message: String, note: &str| {
        let at = Location::target(&setting_at(cluster.job, keys.iter().copied()));
        sink.push(
            Diagnostic::error(codes::KUBERNETES_SETTING, message).at_place(at, "").note(note.to_owned()),
        );
    };
    let subject = if cluster.shape == Shape::SharePod {
        "the GPU provider of this job needs a single pod, which".to_owned()
    } else {
        format!("a {}", kind.name)
    };
    if kueue && !kind.takes(Setting::Kueue) {
        let key: &[&str] = &["queue", "kueue"];
        let note = if kind.takes(Setting::Volcano) {
            "write `queue: {volcano: NAME}`, or `kind: auto`"
        } else {
            instead
        };
        refuse(key, format!("{subject} is not managed by Kueue"), note);
    }
    if settings.suspend && !kind.takes(Setting::Suspend) {
        refuse(&["suspend"], format!("{subject} cannot be created suspended"), instead);
    }
    if settings.ttl.is_some() && !kind.takes(Setting::Ttl) {
        refuse(&["ttl"], format!("{subject} has no time after which it is deleted"), instead);
    }
    let volcano = queue.and_then(|queue| queue.volcano.as_ref());
    if let Some(name) = volcano.filter(|_| !kind.takes(Setting::Volcano) && !gpu::is_volcano(cluster.job)) {
        refuse(
            &["queue", "volcano"],
            format!(
                "target `{}` names the Volcano queue `{name}`, which a {} cannot use",
                cluster.job.target.name, kind.name
            ),
            "write `kind: volcano`, or `queue: {kueue: NAME}`, or leave it out",
        );
    }
    if kueue && volcano.is_some() {
        refuse(
            &["queue", "volcano"],
            "a job cannot wait in a queue of Kueue and in one of Volcano".to_owned(),
            "leave one of them out",
        );
    }
    if settings.runtime.is_some() && cluster.shape != Shape::TrainJob {
        refuse(
            &["runtime"],
            "`runtime` is for `kind: trainjob`".to_owned(),
            "write `kind: trainjob`, or leave it out",
        );
    }
    if !settings.volcano_plugins.is_empty() && cluster.shape != Shape::Volcano {
        refuse(
            &["volcano_plugins"],
            "`volcano_plugins` is for `kind: volcano`".to_owned(),
            "write `kind: volcano`, or leave it out",
        );
    }
    if settings.volcano_plugins.contains_key("svc") {
        refuse(
            &["volcano_plugins", "svc"],
            "jobc writes the plugin `svc` itself, for the addresses of the instances".to_owned(),
            "leave it out; to change its arguments, write a patch of the Job",
        );
    }
    if let Some(topology) = queue.and_then(|queue| queue.topology.as_ref()) {
        if !kueue {
            refuse(
                &["queue", "topology"],
                "`topology` is for jobs in a queue of Kueue".to_owned(),
                "write `kueue: NAME` next to it, or leave it out",
            );
        }
        if topology.required.is_some() == topology.preferred.is_some() {
            refuse(
                &["queue", "topology"],
                "`topology` needs exactly one of `required` and `preferred`".to_owned(),
                "write for example `{required: cloud.provider.com/topology-rack}`",
            );
        }
    }
    schedulers(cluster, sink);
}

/// Refuses a scheduler other than the one that must place the pods: that of the kind, the queue or the GPU provider.
fn schedulers(cluster: &Cluster<'_>, sink: &mut Sink) {
    let queue = cluster.settings.queue.as_ref();
    let mut reported = BTreeSet::new();
    for role in &cluster.job.roles {
        let settings = RoleSettings::of(cluster.settings, role);
        let Some(name) = &settings.pod.scheduler else { continue };
        let at = setting_at(cluster.job, settings.place("scheduler"));
        let given = gpu::pod_request(cluster.job, role).and_then(|given| given.scheduler);
        let (what, scheduler) = if cluster.shape == Shape::TrainJob && cluster.settings.runtime.is_some() {
            ("pods of a runtime of the platform".to_owned(), None)
        } else if cluster.shape == Shape::Volcano {
            ("pods of a Volcano Job".to_owned(), Some("volcano"))
        } else if let Some(queue) = queue.and_then(|queue| queue.volcano.as_ref()) {
            (format!("pods of the Volcano queue `{queue}`"), Some("volcano"))
        } else if let Some(scheduler) = given {
            let provider = cluster.settings.gpu.as_ref().and_then(|gpu| gpu.provider.as_ref());
            (format!("pods with GPUs of `{}`", provider.map_or("the provider", |name| name)), Some(scheduler))
        } else {
            continue;
        };
        if scheduler == Some(name) || !reported.insert(at.to_string()) {
            continue;
        }
        let by = scheduler.map_or_else(
            || "the scheduler that the runtime names".to_owned(),
            |scheduler| format!("`{scheduler}`"),
        );
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_SETTING,
                format!("{what} are scheduled by {by}, not by `{name}`"),
            )
            .at_place(Location::target(&at), "")
            .note("leave `scheduler` out"),
        );
    }
}
