//! Which features of a job Kubernetes supports; each refusal has a reason and the closest alternative.

mod pods;
mod policies;

use jobc_schema::Pointer;
use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, RolePlan, SecretPlan, VolumePlan};
use jobc_schema::role::{NeedState, RetryScope};

use crate::backend::Support::{self, Full, Lossy};
use crate::backend::{Capability, capability};

use super::devices;
use super::gpu;
use super::host_names;
use super::kinds;
use super::preflight;
use super::release::{BACKOFF_LIMIT_PER_INDEX, DEPENDS_ON, Releases, SUCCESS_POLICY};
use super::settings::settings;
use super::shape::{Shape, shape};
use super::volumes::{self, volume};

/// The support at one place of the job, which depends on the place as well as on the capability.
pub(super) fn support_at(capability: Capability, place: &Pointer, job: &JobPlan) -> Support {
    if !depends_on_asker(capability, job) {
        return answer(capability, &Requester::Job, job);
    }
    let segments: Vec<String> = place.segments().take(2).collect();
    let (Some(list), Some(name)) = (segments.first(), segments.get(1)) else {
        return answer(capability, &Requester::Job, job);
    };
    let asker = match list.as_str() {
        "roles" => job.role(name).map(Requester::Role),
        "data" | "outputs" => job.volumes.get(name).map(|volume| Requester::Volume(name, volume)),
        "registries" => Some(Requester::Registry(name)),
        _ => None,
    };
    let need = place.segments().nth(3).filter(|_| list == "roles");
    match (asker, need) {
        (Some(Requester::Role(role)), Some(other)) if matches!(capability, Capability::Needs(_)) => {
            match kinds::kind(job).answer(capability, job, Some(role)) {
                Some(answer) => answer,
                None => policies::needs(capability, job, role, &other),
            }
        }
        (Some(Requester::Role(role)), _) if capability == Capability::Devices => {
            devices::support(job, role, place)
        }
        (Some(asker), _) => answer(capability, &asker, job),
        (None, _) => answer(capability, &Requester::Job, job),
    }
}

/// Whether the support depends on the requester; if not, a role need not be looked up among thousands.
fn depends_on_asker(capability: Capability, job: &JobPlan) -> bool {
    let releases = Releases::of(settings(job));
    let shape = shape(job);
    if !matches!(shape, Shape::Job | Shape::IndexedJob | Shape::JobSet) {
        return true;
    }
    match capability {
        Capability::Needs(NeedState::Ready | NeedState::Succeeded) => {
            shape != Shape::JobSet || releases.jobset < DEPENDS_ON
        }
        Capability::Retry(RetryScope::Task) => releases.kubernetes < BACKOFF_LIMIT_PER_INDEX,
        Capability::Gpu(vendor) => gpu::provider(job, vendor).is_ok_and(|provider| !provider.is_plain()),
        Capability::MinSucceeded => releases.kubernetes < SUCCESS_POLICY,
        Capability::Needs(NeedState::Started)
        | Capability::MinFailed
        | Capability::Retry(RetryScope::Role | RetryScope::Job)
        | Capability::RetryDisruptions
        | Capability::Preflight
        | Capability::FileIndex
        | Capability::FileOwner
        | Capability::Hugepages
        | Capability::Rdma
        | Capability::Devices
        | Capability::GpuModel
        | Capability::GpuMemory
        | Capability::GpuVersion
        | Capability::GpuShare
        | Capability::GpuTime
        | Capability::GpuGrow
        | Capability::GpuProfile
        | Capability::User
        | Capability::VolumePath
        | Capability::VolumeNfs
        | Capability::VolumeS3
        | Capability::VolumePvc
        | Capability::VolumeHttps
        | Capability::VolumeGit
        | Capability::VolumeJob
        | Capability::VolumeJobMemory
        | Capability::VolumeInstance
        | Capability::VolumeMemory
        | Capability::VolumeTarget
        | Capability::DnsServers
        | Capability::RegistryLogin => true,
        _ => false,
    }
}

/// The support for the whole job: the least for any of the places that request it.
pub(super) fn support(capability: Capability, job: &JobPlan) -> Support {
    let answers = capability::needs(job)
        .into_iter()
        .filter(|(needed, _)| *needed == capability)
        .map(|(_, place)| support_at(capability, &place, job));
    let rank = |support: &Support| match support {
        Support::None(_) => 0,
        Lossy(_) => 1,
        Support::Plan | Support::Submit(_) => 2,
        Full => 3,
    };
    answers.min_by_key(rank).unwrap_or_else(|| answer(capability, &Requester::Job, job))
}

/// The requester of a feature.
enum Requester<'a> {
    /// The job, or no particular role.
    Job,
    /// A role.
    Role(&'a RolePlan),
    /// A volume, by its name.
    Volume(&'a str, &'a VolumePlan),
    /// A registry, by its host.
    Registry(&'a str),
}

fn none(why: impl Into<String>) -> Support {
    Support::None(why.into())
}

fn lossy(why: &str) -> Support {
    Support::Lossy(why.to_owned())
}

fn answer(capability: Capability, asker: &Requester<'_>, job: &JobPlan) -> Support {
    let role = if let Requester::Role(role) = asker { Some(*role) } else { None };
    let kind = kinds::kind(job);
    if let Some(answer) = kind.answer(capability, job, role) {
        return answer;
    }
    match capability {
        Capability::RetryVerdicts => {
            let codes = kind.answer(Capability::RetryExitCodes, job, role);
            policies::retry_verdicts(codes, role, job)
        }
        Capability::Preflight => preflight::support(job, role),
        Capability::Stall => none(
            "nothing of jobc runs beside pods; `jobc why` says which task of a running job is quiet; write `timeout`, or let the program watch itself, as `TORCH_NCCL_ASYNC_ERROR_HANDLING` does",
        ),
        Capability::ResumeExitCodes => {
            let codes = kind.answer(Capability::RetryExitCodes, job, role);
            policies::resume_exit_codes(codes, job)
        }
        Capability::ResumeVariables => lossy(
            "a pod does not learn which attempt it is, and `JOBC_ATTEMPT` and `JOBC_RESUME` are not set; resume if `$JOBC_CHECKPOINT_DIR` has a checkpoint",
        ),
        Capability::BudgetEnergy => none(
            "nothing of jobc reads the counters of the nodes; write `gpu_hours`, and see the metrics of the cluster, such as those of the DCGM exporter",
        ),
        Capability::Budget => {
            let by_kind = kind.answer(Capability::JobTimeout, job, role);
            policies::budget(by_kind.unwrap_or_else(|| policies::answer(Capability::JobTimeout, job, role)), job)
        }
        Capability::RetryMemory => none(
            "a pod has the same memory in each attempt; raise `resources.memory`, or leave `memory` out of `retry`",
        ),
        Capability::NeedsMin
        | Capability::ReadyLog
        | Capability::MinSucceeded
        | Capability::MinFailed
        | Capability::Retry(_)
        | Capability::RetryBackoff
        | Capability::RetryDisruptions
        | Capability::Priority
        | Capability::After
        | Capability::Notify
        | Capability::Idle
        | Capability::Schedule
        | Capability::JobTimeout
        | Capability::GangRequired
        | Capability::GangMin
        | Capability::Parallel
        | Capability::MaxParallel
        | Capability::RoleMaxParallel
        | Capability::StopSignal
        | Capability::Metrics => policies::answer(capability, job, role),
        Capability::Pids
        | Capability::DiskIo
        | Capability::Hugepages
        | Capability::Rdma
        | Capability::Ulimits
        | Capability::Gpu(_)
        | Capability::GpuModel
        | Capability::GpuMemory
        | Capability::GpuVersion
        | Capability::GpuShare
        | Capability::GpuTime
        | Capability::GpuGrow
        | Capability::GpuProfile
        | Capability::User
        | Capability::FileOwner
        | Capability::FileIndex => pods::answer(capability, job, role),
        Capability::Needs(_)
        | Capability::RoleMatrix
        | Capability::Code
        | Capability::Subpath
        | Capability::ReadyProbe
        | Capability::ReadyKeep
        | Capability::RetryExitCodes
        | Capability::RoleTimeout
        | Capability::GracePeriod
        | Capability::NoCpu
        | Capability::NoMemory
        | Capability::Shm
        | Capability::Disk
        | Capability::Devices
        | Capability::GpuNone
        | Capability::Workdir
        | Capability::ImageCommand
        | Capability::Labels
        | Capability::ReadOnlyRoot
        | Capability::LinuxCapabilities
        | Capability::Privileged
        | Capability::Files
        | Capability::FileSecret
        | Capability::EnvSecret
        | Capability::ExtraHosts
        | Capability::DnsSearch
        | Capability::PublishHost
        | Capability::PublishService
        | Capability::Network(Network::Auto | Network::Host | Network::Job)
        | Capability::SecretFromStarter
        | Capability::SecretFromStore
        | Capability::ImageBuild
        | Capability::Elastic
        | Capability::Ssh => Full,
        Capability::VolumePath
        | Capability::VolumeNfs
        | Capability::VolumeS3
        | Capability::VolumePvc
        | Capability::VolumeHttps
        | Capability::VolumeGit
        | Capability::VolumeJob
        | Capability::VolumeJobMemory
        | Capability::VolumeInstance
        | Capability::VolumeMemory
        | Capability::VolumeTarget => volume_support(asker, job),
        Capability::DnsServers if host_names::replaces_servers(job) => Full,
        Capability::DnsServers => Lossy(
            "pods find each other by the name server of the cluster, so these servers are asked only if that one does not answer; have its administrator forward the domains"
                .to_owned(),
        ),
        Capability::HostGateway => none(
            "a pod cannot reach the loopback addresses of its node; write the address or name of a Service",
        ),
        Capability::VolumeOptions => Lossy(
            "Kubernetes takes mount options from the PersistentVolume, so these are not used; set `mountOptions` there and write `pvc:NAME`"
                .to_owned(),
        ),
        Capability::GpuAll => none(
            "a pod gets a number of GPUs, and the nodes of a cluster may have different ones; write for example `gpu: 8`",
        ),
        Capability::Network(Network::None) => none(
            "a pod always has a network; the closest setting is a NetworkPolicy that denies all traffic in the namespace",
        ),
        Capability::ImageFile => none(
            "a cluster's hosts do not have the file: bring it into a registry with `jobc image import` and `jobc image push`, and name that",
        ),
        Capability::ImageHost => none(
            "`image: host` is the root filesystem of the host that runs the job, which a pod does not have; name an image",
        ),
        Capability::ImageHostEnvironment => none(
            "a pod does not have the directory, packages and variables of the user who starts the job; build an image with `from`, `python` and `copy`, and write variables into `env` and `secrets`",
        ),
        Capability::RegistryLogin => registry_support(asker, job),
    }
}

fn volume_support(asker: &Requester<'_>, job: &JobPlan) -> Support {
    let Requester::Volume(name, plan) = asker else { return Full };
    if let Some(why) = volumes::refuse_one_pods(name, plan, job) {
        return none(why);
    }
    match volume(name, plan, settings(job)) {
        Ok(_) => Full,
        Err(why) => none(why),
    }
}

fn registry_support(asker: &Requester<'_>, job: &JobPlan) -> Support {
    let Requester::Registry(host) = asker else { return Full };
    let secret = job.registries.get(*host).and_then(|registry| job.secrets.get(&registry.password_secret));
    match secret {
        Some(SecretPlan::Store { .. }) => none(
            "a pull secret holds the credentials as one JSON text, which cannot be made from a key of another Secret; create a docker-registry Secret and name it in the target's `image_pull_secrets`",
        ),
        _ => Full,
    }
}
