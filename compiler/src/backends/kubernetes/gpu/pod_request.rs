//! The GPU requests of the pods of a role: the row of the provider in the table, with its placeholders filled.

use std::collections::BTreeMap;

use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan};
use k8s_openapi::api::core::v1::Toleration;

use crate::stdlib::providers::{PodField, PodRequirements, Provider, ResourceRequest};

use super::super::settings::settings;
use super::fill::{Filler, Rounding};
use super::provider::provider;

/// The GPU requests of the pods of a role.
#[derive(Debug, Default)]
pub(crate) struct PodRequest {
    /// Extended resources in limits; `true`: in requests as well.
    pub(crate) resources: Vec<(String, String, bool)>,
    /// The pod's labels.
    pub(crate) labels: Vec<(String, String)>,
    /// The pod's annotations.
    pub(crate) annotations: Vec<(String, String)>,
    /// The container's variables.
    pub(crate) env: Vec<(String, String)>,
    /// The container's variables that hold a field of the pod.
    pub(crate) fields: Vec<(String, String)>,
    /// The scheduler.
    pub(crate) scheduler: Option<&'static str>,
    /// Whether the pod shares the node's IPC namespace.
    pub(crate) host_ipc: bool,
    /// Whether /dev/shm is the server's, through which the GPU is shared.
    pub(crate) shared_shm: bool,
    /// The user that the container runs as.
    pub(crate) run_as_user: Option<i64>,
    /// Linux capabilities.
    pub(crate) linux_capabilities: &'static [String],
    /// Taints that are tolerated.
    pub(crate) tolerations: Vec<Toleration>,
    /// Labels a node must have.
    pub(crate) node_selector: BTreeMap<String, String>,
    /// Whether it requests GPUs with a claim.
    pub(crate) claim: bool,
    /// Amounts that were rounded up to the units of the provider.
    pub(crate) rounded: Vec<Rounding>,
}

/// The GPU requests of the pods of a role; `None` for a role without GPUs, or if they are refused.
pub(crate) fn pod_request(job: &JobPlan, role: &RolePlan) -> Option<PodRequest> {
    let gpu = role.gpus()?;
    let provider = provider(job, gpu.vendor).ok()?;
    let way = provider.way(gpu.share.as_ref())?;
    let holes = Filler::new(provider, role, settings(job))?;
    let renamed = settings(job).gpu.as_ref().and_then(|gpu| gpu.resource.clone());
    let mut given =
        PodRequest { claim: provider.claim.is_some(), shared_shm: way.shared_claim, ..PodRequest::default() };
    for ask in way.asks.iter().filter(|ask| !ask.above_one || gpu.count > 1) {
        for j in 0..if ask.each { gpu.count } else { 1 } {
            given.add(&holes, ask, j, renamed.as_ref());
        }
    }
    if let Some(pod) = &provider.pod {
        given.accompany(&holes, pod);
    }
    if let Some(key) = provider.models.as_deref().filter(|key| key.contains('/'))
        && !gpu.models.is_empty()
    {
        let names: Vec<String> = gpu.models.iter().map(|name| super::products::short(name)).collect();
        given.annotations.push((key.to_owned(), names.join(",")));
    }
    Some(given)
}

/// Whether the name of the resource contains the model, but no model is set.
pub(super) fn model_is_open(job: &JobPlan, provider: &Provider, gpu: &GpuPlan) -> bool {
    let renamed = settings(job).gpu.as_ref().is_some_and(|gpu| gpu.resource.is_some());
    let plain = |name: &str| name.replace([' ', '-', '_'], "").to_ascii_lowercase();
    let known = |wanted: &String| provider.model_names.iter().any(|name| plain(name) == plain(wanted));
    !renamed && !gpu.models.iter().any(known)
}

impl PodRequest {
    fn add(&mut self, holes: &Filler<'_>, ask: &ResourceRequest, j: u32, renamed: Option<&String>) {
        // The first resource has the name that the cluster gave it; then the model placeholder needs no value.
        let is_resource = matches!(ask.place, PodField::Limits | PodField::Both);
        let named = renamed.filter(|_| is_resource && self.resources.is_empty());
        let filled = match named {
            Some(name) => holes.fill(&ResourceRequest { key: name.clone(), ..ask.clone() }, j),
            None => holes.fill(ask, j),
        };
        let Some(filled) = filled else { return };
        if let Some(rounded) = filled.rounded.filter(|rounded| !self.rounded.contains(rounded)) {
            self.rounded.push(rounded);
        }
        let (key, amount) = (filled.key, filled.amount);
        match ask.place {
            PodField::Limits => self.resources.push((key, amount, false)),
            PodField::Both => self.resources.push((key, amount, true)),
            PodField::Labels => self.labels.push((key, amount)),
            PodField::Annotations => self.annotations.push((key, amount)),
            PodField::Env => self.env.push((key, amount)),
            PodField::Field => self.fields.push((key, amount)),
        }
    }

    fn accompany(&mut self, holes: &Filler<'_>, pod: &'static PodRequirements) {
        self.scheduler = pod.scheduler.as_deref();
        self.host_ipc = pod.host_ipc;
        self.shared_shm |= pod.shared_shm;
        self.run_as_user = pod.run_as_user;
        self.linux_capabilities = &pod.linux_capabilities;
        let fill = |(key, text): (&String, &String)| Some((key.clone(), holes.plain(text)?));
        self.labels.extend(pod.labels.iter().filter_map(fill));
        self.annotations.extend(pod.annotations.iter().filter_map(fill));
        self.node_selector.extend(pod.node_selector.clone());
        self.tolerations = pod
            .tolerations
            .iter()
            .map(|taint| Toleration {
                key: taint.get("key").cloned(),
                operator: taint.get("operator").cloned(),
                effect: taint.get("effect").cloned(),
                value: taint.get("value").cloned(),
                ..Toleration::default()
            })
            .collect();
    }
}
