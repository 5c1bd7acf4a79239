//! The object that runs the job: a Job or a JobSet.

use jobc_schema::Pointer;
use jobc_schema::schedule::{Overlap, Schedule};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, Job, JobTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::diagnostic::Sink;

use super::cluster::Cluster;
use super::config::Configs;
use super::object::Object;
use super::origins::Origins;
use super::shape::Shape;
use super::{gpu, job, jobset, leaderworkerset, mpijob, pod, rayjob, sharepod, trainjob, volcano};

/// The object that runs the job, after the objects it refers to.
pub(super) fn workload(cluster: &Cluster<'_>, configs: &Configs, sink: &mut Sink) -> Vec<Object> {
    let mut origins = Origins::default();
    from_settings(cluster, &mut origins);
    if cluster.shape == Shape::TrainJob {
        return trainjob::objects(cluster, configs, origins, sink);
    }
    let Some((kind, value)) = object(cluster, configs, &mut origins, sink) else { return vec![] };
    vec![Object { kind, name: cluster.job.name.clone(), value, origins: origins.into_list() }]
}

/// Its kind and value.
fn object(
    cluster: &Cluster<'_>,
    configs: &Configs,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<(&'static str, Value)> {
    Some(match (cluster.shape, &cluster.job.roles[..]) {
        (Shape::Job | Shape::IndexedJob, [role]) => {
            if let Some(schedule) = &cluster.job.schedule {
                let mut of_job = Origins::default();
                let job = job::job(cluster, configs, role, &mut of_job, sink);
                origins.append(of_job.moved_below(&Pointer::ROOT.keys(["spec", "jobTemplate"])));
                return Some(("CronJob", serde_json::to_value(cron_job(schedule, job, origins)).ok()?));
            }
            let job: Job = job::job(cluster, configs, role, origins, sink);
            ("Job", serde_json::to_value(job).ok()?)
        }
        (Shape::Pod, [role]) => ("Pod", sharepod::pod(cluster, configs, role, origins, sink)?),
        (Shape::Job | Shape::IndexedJob | Shape::Pod | Shape::TrainJob, _) => return None,
        (Shape::SharePod, _) => {
            let kind = gpu::object_kind(cluster.job)?;
            (&kind.kind, sharepod::object(cluster, configs, kind, origins, sink)?)
        }
        (Shape::JobSet, _) => ("JobSet", jobset::jobset(cluster, configs, origins, sink).into_value()),
        (Shape::Volcano, _) => ("Job", volcano::job(cluster, configs, origins, sink)),
        (Shape::MpiJob, _) => ("MPIJob", mpijob::job(cluster, configs, origins, sink)?),
        (Shape::RayJob, _) => ("RayJob", rayjob::job(cluster, configs, origins, sink)?),
        (Shape::LeaderWorkerSet, _) => {
            ("LeaderWorkerSet", leaderworkerset::set(cluster, configs, origins, sink)?)
        }
    })
}

/// A CronJob, which makes Jobs such as this one.
fn cron_job(schedule: &Schedule, job: Job, origins: &mut Origins) -> CronJob {
    let at = Pointer::ROOT.key("schedule");
    origins.spec(["spec", "schedule"], &at.key("cron"));
    origins.spec(["spec", "concurrencyPolicy"], &at.key("overlap"));
    if schedule.zone.is_some() {
        origins.spec(["spec", "timeZone"], &at.key("zone"));
    }
    let policy = match schedule.overlap {
        Overlap::Skip => "Forbid",
        Overlap::Replace => "Replace",
        Overlap::Allow => "Allow",
    };
    let (labels, annotations) = (job.metadata.labels.clone(), job.metadata.annotations.clone());
    CronJob {
        metadata: job.metadata,
        spec: CronJobSpec {
            schedule: schedule.cron.clone(),
            time_zone: schedule.zone.clone(),
            concurrency_policy: Some(policy.to_owned()),
            job_template: JobTemplateSpec {
                metadata: Some(ObjectMeta { labels, annotations, ..ObjectMeta::default() }),
                spec: job.spec,
            },
            ..CronJobSpec::default()
        },
        status: None,
    }
}

/// Finds what [`workload`] finds, and makes no object.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let roles = match (cluster.shape, &cluster.job.roles[..]) {
        (Shape::SharePod, [role]) if gpu::object_kind(cluster.job).is_some() => vec![role],
        (Shape::Job | Shape::IndexedJob | Shape::Pod, [role]) => vec![role],
        (Shape::Job | Shape::IndexedJob | Shape::Pod | Shape::SharePod, _) => vec![],
        _ => jobset::in_order(cluster),
    };
    for role in roles {
        pod::check(cluster, role, sink);
    }
}

/// Notes which of the metadata are settings.
fn from_settings(cluster: &Cluster<'_>, origins: &mut Origins) {
    let settings = cluster.settings;
    origins.spec(["metadata", "name"], &jobc_schema::Pointer::ROOT.key("name"));
    if settings.namespace.is_some() {
        origins.target(["metadata", "namespace"], &["namespace"]);
    }
    if let Some(queue) = &settings.queue {
        if queue.kueue.is_some() {
            origins.target(["metadata", "labels", "kueue.x-k8s.io/queue-name"], &["queue", "kueue"]);
        }
        if queue.kueue.is_some() && queue.priority.is_some() {
            origins.target(["metadata", "labels", "kueue.x-k8s.io/priority-class"], &["queue", "priority"]);
        }
    }
    for key in settings.pod.labels.keys() {
        origins.target(["metadata", "labels", key], &["labels", key]);
    }
    if cluster.job.description.is_some() {
        let description = jobc_schema::Pointer::ROOT.key("description");
        origins.spec(["metadata", "annotations", "kubernetes.io/description"], &description);
    }
}
