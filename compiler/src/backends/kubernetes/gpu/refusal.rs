//! GPU requests that a provider cannot serve, and which other providers can.

use jobc_schema::Bytes;
use jobc_schema::gpu::{Enforcement, Isolation};
use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan, SharePlan};

use crate::backend::Unsupported;
use crate::stdlib::models;
use crate::stdlib::providers::{self, Part, Provider, RequestForm};
use crate::suggest;

use super::super::settings::settings;
use super::provider::provider;

/// Something that a provider cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Whether it is about the slice rather than about the GPUs as such.
    pub(crate) of_share: bool,
    /// The reason, and the closest alternative.
    pub(crate) why: String,
    /// Whether something similar is still supported.
    pub(crate) lossy: bool,
}

/// Why the provider of the target cannot serve the GPUs of a role.
pub(crate) fn refusal(job: &JobPlan, role: &RolePlan) -> Option<Refusal> {
    let gpu = role.gpus()?;
    let of_gpu = |why: String| Some(Refusal { of_share: false, why, lossy: false });
    let provider = match provider(job, gpu.vendor) {
        Ok(provider) => provider,
        Err(why) => return of_gpu(why.into()),
    };
    if let Err(why) = serves(provider, gpu) {
        let more = others(provider, gpu);
        let of_share = gpu.share.is_some();
        return Some(Refusal { of_share, why: format!("{why}; {more}"), lossy: false });
    }
    let way = provider.way(gpu.share.as_ref())?;
    if let Some(most) = provider.instances.filter(|most| role.instances > *most) {
        return of_gpu(format!(
            "all pods of a role have the same environment, so with `{}` a role has at most {most} instance; write one role per instance",
            provider.name
        ));
    }
    if let Some(why) = remote(job, provider, gpu) {
        return of_gpu(why);
    }
    if provider.model_names.len() > 1 && super::pod_request::model_is_open(job, provider, gpu) {
        return of_gpu(format!(
            "`{}` has the model in the resource's name; write `model:` with one of {}, or the target's `gpu: {{resource: NAME}}`",
            provider.name,
            suggest::list(provider.model_names.iter().map(String::as_str))
        ));
    }
    if let Some(object) = &provider.object
        && let Some(why) = one_pod(job, role, &object.kind)
    {
        return of_gpu(why);
    }
    let wanted_user = provider.pod.as_ref().and_then(|pod| pod.run_as_user);
    if let (Some(user), Some(own)) = (wanted_user, role.user.as_deref())
        && own.split(':').next() != Some(user.to_string().as_str())
    {
        return of_gpu(format!(
            "with `{}` programs run as the user of its server, {user}, not as `{own}`; leave `user` out",
            provider.name
        ));
    }
    let share = gpu.share.as_ref()?;
    let of_share = |(why, lossy)| Refusal { of_share: true, why, lossy };
    size(job, role, gpu, share, way)
        .or_else(|| spread(provider, gpu, share, way))
        .or_else(|| isolation(provider, share, way))
        .map(of_share)
}

/// Whether a provider serves GPUs of that kind, with any settings of the target; the reason if it does not.
fn serves(provider: &Provider, gpu: &GpuPlan) -> Result<(), Unsupported> {
    let name = &provider.name;
    let share = gpu.share.as_ref();
    let Some(way) = provider.way(share) else {
        let why = match share {
            None => {
                format!("the target's GPU provider `{name}` serves slices, not whole GPUs; write `share`")
            }
            Some(share) if share.profile.is_some() => {
                format!("the target's GPU provider `{name}` serves no slices by profile")
            }
            Some(_) => format!("the target's GPU provider `{name}` serves no slices by memory or cores"),
        };
        return Err(why.into());
    };
    if let Some(most) = way.most.filter(|most| gpu.count > *most) {
        let what = if share.is_some() { "slice" } else { "GPU" };
        return Err(format!(
            "`{name}` gives an instance {most} {what}, not {}; ask for `count: {most}` and more instances",
            gpu.count
        )
        .into());
    }
    let Some(share) = share.filter(|share| share.profile.is_none()) else { return Ok(()) };
    for part in [Part::Memory, Part::Cores] {
        if part.is_in(share) && !way.takes.contains(&part) {
            return Err(format!("`{name}` does not support `{}` of a GPU; leave it out", part.key()).into());
        }
        if !part.is_in(share) && way.needs.contains(&part) {
            return Err(
                format!("`{name}` requires `{}` of the slice; write it under `share`", part.key()).into()
            );
        }
    }
    if way.alone && Part::Memory.is_in(share) && Part::Cores.is_in(share) {
        return Err(format!(
            "`{name}` accepts either `memory` or `cores` of a slice, not both; leave one out"
        )
        .into());
    }
    match (way.most_cores, share.cores_percent) {
        (Some(most), Some(cores)) if cores > most => Err(format!(
            "`{name}` assigns at most {most} % of the cores of a GPU to a slice; for all cores request a whole GPU"
        ).into()),
        _ => Ok(()),
    }
}

/// The other providers that serve such GPUs, for messages.
fn others(provider: &Provider, gpu: &GpuPlan) -> String {
    let strict = |other: &Provider| {
        gpu.share.as_ref().is_none_or(|share| {
            let enforced = other.way(Some(share)).and_then(|way| way.enforce).unwrap_or(Enforcement::Nothing);
            enforced.satisfies(share.isolation)
        })
    };
    let able: Vec<String> = providers::all()
        .iter()
        .filter(|other| other.name != provider.name && other.vendor == gpu.vendor && other.unserved.is_none())
        .filter(|other| serves(other, gpu).is_ok() && strict(other))
        .map(|other| format!("`{}`", other.name))
        .collect();
    if able.is_empty() {
        return "no provider supports this".to_owned();
    }
    format!("providers that support it: {}", able.join(", "))
}

/// Whether a slice created by the administrator is as large as the request.
fn size(
    job: &JobPlan,
    role: &RolePlan,
    gpu: &GpuPlan,
    share: &SharePlan,
    way: &RequestForm,
) -> Option<(String, bool)> {
    let settings = settings(job).gpu.as_ref();
    match way.size.as_deref() {
        Some("replica") => {
            let replicas = u64::from(settings?.replicas?);
            if share.cores_percent.is_some_and(|cores| u64::from(cores) * replicas > 100) {
                let has = 100 / replicas;
                return Some((
                    format!("the target makes {replicas} replicas of a GPU, each with {has} % of the cores"),
                    false,
                ));
            }
            let wanted = share.memory_bytes?;
            match min_card_memory(job, gpu) {
                Some(card) if wanted > card / replicas => Some((
                    format!(
                        "the target makes {replicas} replicas of a GPU, each with {} of its memory",
                        Bytes(card / replicas)
                    ),
                    false,
                )),
                Some(_) => None,
                None => Some((
                    format!(
                        "the target makes {replicas} replicas of a GPU of unknown memory size; write `model`, or the target's `gpu: {{models: […]}}`"
                    ),
                    true,
                )),
            }
        }
        Some("name") => {
            let resource = settings?.resource.as_deref()?;
            let wanted = share.memory_bytes?;
            let class = resource.rsplit_once('-').map_or("", |(_, class)| class);
            let digits = class.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            match digits.parse::<u64>() {
                Ok(gigabytes) if wanted <= gigabytes << 30 => None,
                Ok(gigabytes) => Some((format!("a `{resource}` has {gigabytes} GiB of memory"), false)),
                Err(_) => Some((
                    format!(
                        "the name `{resource}` does not contain the memory size, as a suffix such as `-4Q` would"
                    ),
                    true,
                )),
            }
        }
        _ if way.shared_claim => {
            let instances = u64::from(role.instances);
            let cores = share.cores_percent.map_or(0, |cores| u64::from(cores) * instances);
            if cores > 100 {
                return Some((
                    format!(
                        "all instances of a role share one card by one claim, and {instances} of them ask for {cores} % of its cores"
                    ),
                    false,
                ));
            }
            let total = share.memory_bytes? * instances;
            let card = min_card_memory(job, gpu)?;
            (total > card).then(|| {
                (format!("all instances of a role share one card by one claim, and {instances} of them ask for {} of its {}", Bytes(total), Bytes(card)), false)
            })
        }
        _ => None,
    }
}

/// The memory of the smallest card that may be assigned, if the job or the target sets it.
fn min_card_memory(job: &JobPlan, gpu: &GpuPlan) -> Option<u64> {
    let of_name = |name: &str| models::find(name)?.variants().map(|size| size.memory_gb << 30).min();
    if !gpu.models.is_empty() {
        let least = gpu.models.iter().map(|name| of_name(name)).collect::<Option<Vec<_>>>()?;
        return least.into_iter().min();
    }
    if let Some(cards) = job.target.settings.gpus.as_ref().and_then(|gpus| gpus.cards.as_ref()) {
        let of = |card: &jobc_schema::target::TargetCard| {
            card.memory.map(|bytes| bytes.0).or_else(|| of_name(&card.model))
        };
        let least =
            cards.iter().filter(|card| card.vendor == gpu.vendor).map(of).collect::<Option<Vec<_>>>()?;
        return least.into_iter().min().max(gpu.memory_bytes);
    }
    let named = settings(job).gpu.as_ref().map_or(&[][..], |gpu| &gpu.models);
    let least = named.iter().map(|name| of_name(name)).collect::<Option<Vec<_>>>()?;
    least.into_iter().min().max(gpu.memory_bytes)
}

/// Whether several slices of an instance can be placed as requested.
fn spread(
    provider: &Provider,
    gpu: &GpuPlan,
    share: &SharePlan,
    way: &RequestForm,
) -> Option<(String, bool)> {
    if gpu.count < 2 {
        return None;
    }
    if share.same_card {
        return (!way.same_card).then(|| {
            (format!("`{}` cannot keep slices on one card; ask for one larger slice", provider.name), false)
        });
    }
    (share.profile.is_some() && share.isolation != Isolation::None).then(|| {
        (
            format!(
                "`{}` may take several slices of one card; ask for `count: 1` and more instances",
                provider.name
            ),
            true,
        )
    })
}

/// Whether a slice is isolated as strictly as requested.
fn isolation(provider: &Provider, share: &SharePlan, way: &RequestForm) -> Option<(String, bool)> {
    let enforced = way.enforce.unwrap_or(Enforcement::Nothing);
    if enforced.satisfies(share.isolation) {
        return None;
    }
    let name = &provider.name;
    let kept = enforced.words();
    Some(match share.isolation {
        Isolation::Hard => (
            format!(
                "with `{name}` {kept} isolates the slice, not the hardware; MIG profiles are isolated by hardware"
            ),
            false,
        ),
        _ => {
            (format!("with `{name}` {kept} isolates the slice; write `isolation: none` to accept this"), true)
        }
    })
}

/// Whether there are as many remote GPUs as the role's last logical number asks for.
fn remote(job: &JobPlan, provider: &Provider, gpu: &GpuPlan) -> Option<String> {
    let asks = provider.whole.as_ref()?.asks.iter().any(|ask| ask.each);
    let servers = settings(job).gpu.as_ref().map_or(0, |gpu| gpu.servers.len());
    let last = usize::try_from(gpu.first + gpu.count).ok()?;
    (asks && servers > 0 && last > servers).then(|| {
        format!("the target's `gpu: {{servers: […]}}` names {servers} GPUs, and the job needs {last} at once")
    })
}

/// Why a job cannot be a single pod.
fn one_pod(job: &JobPlan, role: &RolePlan, kind: &str) -> Option<String> {
    let why = if job.roles.len() > 1 || role.instances > 1 {
        "the job has several"
    } else if role.retry.max > 0 {
        "it is not retried"
    } else {
        return None;
    };
    Some(format!(
        "a {kind} is a single pod without a Job, and {why}; `kubeshare-v2` and `hami` support pods of Jobs"
    ))
}
