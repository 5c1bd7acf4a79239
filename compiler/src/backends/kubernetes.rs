//! Backend `kubernetes`: a Job, an Indexed Job with its Service, a JobSet, or another kind that the target names, with
//! ConfigMaps and references to Secrets.
//!
//! Read `workload` first, then `job`, `jobset` and `pod`; `kinds` is the table of what each kind can express, `support`
//! lists what cannot be expressed and why, and `docs/reference/kubernetes.md` says for users what becomes what.

mod address;
mod affinity;
mod claims;
mod cluster;
mod code;
mod command;
mod config;
mod devices;
mod env;
mod env_file;
mod gang;
mod gpu;
mod host_names;
mod job;
mod jobset;
mod kai;
mod kinds;
mod leaderworkerset;
mod metadata;
mod mpijob;
mod names;
mod naming;
mod object;
mod order;
mod origins;
mod patch;
mod places;
mod pod;
mod pod_security;
mod policy;
mod preflight;
mod probe;
mod provider_needs;
mod quantity;
mod quota;
mod rayjob;
mod reasons;
mod release;
mod resources;
mod secrets;
mod security;
mod service;
mod settings;
mod shape;
mod sharepod;
mod signals;
mod support;
#[cfg(test)]
mod tests;
mod tpu_topology;
mod trainjob;
mod validity;
mod volcano;
mod volumes;
mod workload;

use jobc_schema::plan::JobPlan;
use jobc_schema::{BackendName, Pointer};

use crate::backend::{Backend, Capability, Context, File, Support};
use crate::diagnostic::Sink;

use cluster::Cluster;
use code::CodePieces;
use object::Object;

/// Writes Kubernetes manifests.
#[derive(Debug)]
pub struct KubernetesBackend;

impl Backend for KubernetesBackend {
    fn name(&self) -> BackendName {
        BackendName::Kubernetes
    }

    fn about(&self) -> &'static str {
        "Kubernetes manifests: Job, JobSet, TrainJob and other kinds"
    }

    fn support(&self, capability: Capability, job: &JobPlan) -> Support {
        support::support(capability, job)
    }

    fn support_at(&self, capability: Capability, place: &Pointer, job: &JobPlan) -> Support {
        support::support_at(capability, place, job)
    }

    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File> {
        let cluster = Cluster::new(job);
        if !validity::check(&cluster, context.losses.allowed(), sink) {
            return vec![];
        }
        names::check(&cluster, sink);
        let mut configs = config::configs(&cluster, sink);
        configs.code = CodePieces::of(job, context, sink);
        let workload = workload::workload(&cluster, &configs, sink);
        let mut objects: Vec<Object> = config::objects(&cluster, std::mem::take(&mut configs.maps));
        objects.extend(configs.code.objects(&cluster));
        objects.extend(service::services(&cluster));
        objects.extend(claims::objects(&cluster));
        objects.extend(workload);
        gang::apply(&cluster, &mut objects);
        patch::apply(job, &mut objects, sink);
        reasons::complete(&cluster, &configs, &mut objects);
        pod_security::check(&cluster, &objects, sink);
        let mut files = object::files(objects, !cluster.settings.patches.is_empty());
        files.extend(configs.code.archive());
        files.extend(secrets::script(job, &context.to_job));
        files
    }

    fn check(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) {
        let cluster = Cluster::new(job);
        if !cluster.settings.patches.is_empty() || pod_security::is_enforced(&cluster) {
            // Both are compared with the objects themselves.
            self.lower(job, context, sink);
            return;
        }
        if validity::check(&cluster, context.losses.allowed(), sink) {
            names::check(&cluster, sink);
            config::configs(&cluster, sink);
            CodePieces::of(job, context, sink);
            workload::check(&cluster, sink);
        }
    }
}
