//! What the target gives to a role's pods: the settings for all, and those of the role over them.

use std::sync::LazyLock;

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::target::{KubernetesTarget, PodSettings};

/// The settings of a target without `kubernetes`.
static DEFAULTS: LazyLock<KubernetesTarget> = LazyLock::new(KubernetesTarget::default);

/// The target's settings for Kubernetes.
pub(super) fn settings(job: &JobPlan) -> &KubernetesTarget {
    job.target.settings.kubernetes.as_ref().unwrap_or(&DEFAULTS)
}

/// The place of a setting in `targets.yaml`.
pub(super) fn setting_at<'k>(job: &JobPlan, keys: impl IntoIterator<Item = &'k str>) -> Pointer {
    Pointer::ROOT.keys(["targets", &job.target.name, "kubernetes"]).keys(keys)
}

/// The settings of one role's pods, and which of them come from the role's own entry.
pub(super) struct RoleSettings {
    /// The settings: maps joined key by key, lists one after the other, single values replaced.
    pub pod: PodSettings,
    /// The role's name, where the target has an entry for it.
    own: Option<String>,
    /// The keys that the role's own entry sets.
    set: Vec<&'static str>,
}

impl RoleSettings {
    /// Joins what all pods get with what the pods of a role get.
    pub(super) fn of(settings: &KubernetesTarget, role: &RolePlan) -> Self {
        let mut pod = settings.pod.clone();
        let mut set = vec![];
        let role = if settings.roles.contains_key(&role.name) { &role.name } else { role.declared() };
        let Some(own) = settings.roles.get(role) else { return Self { pod, own: None, set } };
        let own = &own.pod;
        pod.labels.extend(own.labels.clone());
        pod.annotations.extend(own.annotations.clone());
        pod.node_selector.extend(own.node_selector.clone());
        pod.tolerations.extend(own.tolerations.iter().cloned());
        pod.devices.extend(own.devices.clone());
        for secret in &own.image_pull_secrets {
            if !pod.image_pull_secrets.contains(secret) {
                pod.image_pull_secrets.push(secret.clone());
            }
        }
        let mut replace = |key, value: &Option<String>, slot: &mut Option<String>| {
            if value.is_some() {
                slot.clone_from(value);
                set.push(key);
            }
        };
        replace("priority_class", &own.priority_class, &mut pod.priority_class);
        replace("scheduler", &own.scheduler, &mut pod.scheduler);
        replace("service_account", &own.service_account, &mut pod.service_account);
        replace("runtime_class", &own.runtime_class, &mut pod.runtime_class);
        replace("rdma", &own.rdma, &mut pod.rdma);
        if own.affinity.is_some() {
            pod.affinity.clone_from(&own.affinity);
            set.push("affinity");
        }
        if !own.node_selector.is_empty() {
            set.push("node_selector");
        }
        if !own.tolerations.is_empty() {
            set.push("tolerations");
        }
        if !own.devices.is_empty() {
            set.push("devices");
        }
        Self { pod, own: Some(role.to_owned()), set }
    }

    /// The keys below `kubernetes` of the target under which a setting stands.
    pub(super) fn place<'k>(&'k self, key: &'k str) -> Vec<&'k str> {
        match &self.own {
            Some(role) if self.set.contains(&key) => vec!["roles", role, key],
            _ => vec![key],
        }
    }
}
