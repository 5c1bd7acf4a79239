//! The provider of GPUs on the cluster, and what the target must set for it.

use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::target::KubernetesTarget;

use crate::backend::Unsupported;
use crate::stdlib::providers::{self, ObjectKind, Provider};
use crate::suggest;

use super::super::settings::{RoleSettings, settings};

/// The provider of the target, or the vendor's own plugin; otherwise the reason why none supports the vendor.
pub(crate) fn provider(job: &JobPlan, vendor: Vendor) -> Result<&'static Provider, Unsupported> {
    let named = settings(job).gpu.as_ref().and_then(|gpu| gpu.provider.as_deref());
    match (providers::chosen(named, vendor), named) {
        (Some(provider), _) if provider.vendor != vendor => Err(format!(
            "the target's GPU provider `{}` serves {} GPUs and the role requests {}; write `vendor: {}` or choose another target",
            provider.name,
            provider.vendor.manufacturer(),
            vendor.manufacturer(),
            provider.vendor.as_str()
        ).into()),
        (Some(Provider { name, unserved: Some(why), .. }), _) => {
            Err(format!("the target's GPU provider `{name}` is not supported: {why}").into())
        }
        (Some(provider), _) => Ok(provider),
        (None, named) => Err(unknown(named.unwrap_or_default()).into()),
    }
}

/// The names that targets may give.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    providers::all()
        .iter()
        .filter(|provider| provider.unserved.is_none())
        .map(|provider| provider.name.as_str())
}

fn unknown(name: &str) -> String {
    let near =
        suggest::nearest(name, names()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("unknown GPU provider `{name}` in the target{near} (known: {})", suggest::list(names()))
}

/// The kind of object that replaces the Job, if the provider requires one.
pub(crate) fn object_kind(job: &JobPlan) -> Option<&'static ObjectKind> {
    let [role] = &job.roles[..] else { return None };
    let gpu = role.gpus()?;
    provider(job, gpu.vendor).ok()?.object.as_ref()
}

/// A setting that a provider needs and the target lacks: its keys below `kubernetes`, and what to write.
pub(crate) struct MissingSetting {
    /// Its keys below `kubernetes`.
    pub(crate) keys: Vec<&'static str>,
    /// An example value.
    pub(crate) write: String,
}

/// The settings that a provider needs and the target lacks.
pub(crate) fn missing_settings(
    provider: &'static Provider,
    settings: &KubernetesTarget,
    role: &RolePlan,
) -> Vec<MissingSetting> {
    let own = RoleSettings::of(settings, role).pod;
    let gpu = settings.gpu.clone().unwrap_or_default();
    let lacks = |name: &'static str| -> Option<MissingSetting> {
        let (there, keys, write): (bool, Vec<&'static str>, String) = match name {
            "queue.kai" => (
                settings.queue.as_ref().is_some_and(|queue| queue.kai.is_some()),
                vec!["queue"],
                "queue: {kai: NAME}".to_owned(),
            ),
            "replicas" => (gpu.replicas.is_some(), vec!["gpu"], "replicas: 4".to_owned()),
            "resource" => (gpu.resource.is_some(), vec!["gpu"], "resource: nvidia.com/GRID_T4-4Q".to_owned()),
            "servers" => (!gpu.servers.is_empty(), vec!["gpu"], "servers: [HOST]".to_owned()),
            "library" => (gpu.library.is_some(), vec!["gpu"], "library: /opt/NAME".to_owned()),
            "runtime_class" => (
                own.runtime_class.is_some(),
                vec!["runtime_class"],
                "runtime_class: kata-qemu-nvidia-gpu".to_owned(),
            ),
            selector => {
                let key = selector.strip_prefix("node_selector.")?;
                (
                    own.node_selector.contains_key(key),
                    vec!["node_selector"],
                    format!("node_selector: {{{key}: NAME}}"),
                )
            }
        };
        (!there).then_some(MissingSetting { keys, write })
    };
    provider.settings.iter().filter_map(|name| lacks(name)).collect()
}
