//! Which features Slurm supports; for others, the reason and the closest alternative.

#![expect(clippy::match_same_arms, reason = "the arms are in the order of what they are about")]

use jobc_schema::Pointer;
use jobc_schema::gpu::Vendor;
use jobc_schema::job::Network;
use jobc_schema::plan::{GpuAmount, GpuPlan, JobPlan, RolePlan};
use jobc_schema::queueing::StartTime;
use jobc_schema::role::{NeedState, RetryScope};
use jobc_schema::target::{SlurmContainer, SlurmTarget};

use crate::backend::{Capability, Support, preflight};

use super::parts::settings;
use super::{gpu, group};

/// The maximum time of `--signal`.
const MAX_SIGNAL_SECONDS: u64 = 65_535;

fn none(why: &str) -> Support {
    Support::None(why.to_owned())
}

fn submit(why: &str) -> Support {
    Support::Submit(why.to_owned())
}

fn lossy(why: &str) -> Support {
    Support::Lossy(why.to_owned())
}

/// How well a feature at one place of the job file is supported.
pub(super) fn support(capability: Capability, place: &Pointer, job: &JobPlan) -> Support {
    use Capability as C;
    let settings = settings(job);
    let container = settings.container;
    let has_bundles = matches!(container, SlurmContainer::Jobc | SlurmContainer::Oci);
    let segments: Vec<String> = place.segments().collect();
    let role = match &segments[..] {
        [roles, name, ..] if roles == "roles" => job.role(name),
        _ => None,
    };
    match capability {
        C::Priority => priority(job),
        C::After => start_time(job),
        C::Schedule => none(
            "a script is submitted once; leave `schedule` out, and add a line to `scrontab -e` that submits it, such as `0 3 * * * sbatch train.sbatch`",
        ),
        C::Idle => {
            none("nothing of jobc watches the GPUs of a job of Slurm; leave `idle` out, and set a `timeout`")
        }
        C::BudgetEnergy => none(
            "nothing of jobc reads the counters of the nodes; write `gpu_hours`, and see the energy that Slurm itself counts with `sacct -o ConsumedEnergy`",
        ),
        C::Budget => budget(container, job),
        C::Notify => none(
            "Slurm itself sends mail: leave `notify` out, and write `extra: {mail-user: ADDRESS, mail-type: FAIL}` in `slurm` of the target, or run `jobc wait TARGET/JOB --notify`",
        ),
        C::Needs(NeedState::Succeeded)
        | C::MinFailed
        | C::RoleMatrix
        | C::JobTimeout
        | C::GangRequired
        | C::MaxParallel
        | C::NoCpu
        | C::NoMemory
        | C::RetryExitCodes
        | C::Retry(RetryScope::Role | RetryScope::Job)
        | C::Network(Network::Auto | Network::Host)
        | C::PublishHost
        | C::SecretFromStarter
        | C::VolumePath
        | C::Gpu(Vendor::Nvidia | Vendor::Amd)
        | C::GpuNone
        | C::Ulimits
        | C::Workdir
            if container != SlurmContainer::Oci =>
        {
            lossy_parts(capability, job)
        }
        _ if container == SlurmContainer::Oci => of_oci(capability, &settings, role, &segments, job),
        C::Retry(RetryScope::Task)
        | C::RoleTimeout
        | C::Needs(NeedState::Started | NeedState::Ready)
        | C::NeedsMin
        | C::Elastic => Support::Full,
        C::ReadyProbe if container == SlurmContainer::None => Support::Full,
        C::ReadyProbe => ready_probe(role),
        C::MinSucceeded if !role.map_or(group::count(job) == 1, |role| group::is_last(job, role)) => none(
            "a role cannot end other Slurm jobs, and the stages of this job are several; submit the stages as jobs of their own",
        ),
        C::MinSucceeded => Support::Full,
        C::FileOwner if has_bundles => Support::Full,
        C::Files
        | C::FileIndex
        | C::Shm
        | C::VolumeMemory
        | C::User
        | C::ReadOnlyRoot
        | C::LinuxCapabilities
            if has_bundles =>
        {
            Support::Full
        }
        C::FileOwner | C::Files | C::FileIndex | C::FileSecret
            if matches!(container, SlurmContainer::Pyxis | SlurmContainer::Apptainer) =>
        {
            Support::Full
        }
        C::EnvSecret => Support::Full,
        C::FileSecret if container == SlurmContainer::Jobc => Support::Full,
        _ => rest(capability, &settings, role, &segments, job),
    }
}

/// A higher priority than that of others is the operators' to give.
fn priority(job: &JobPlan) -> Support {
    match job.priority.as_ref().map(|priority| &priority.entry) {
        Some(entry) if entry.qos.is_none() && entry.value.is_none() => none(
            "Slurm knows this name by a quality of service; add `qos` to its entry in `priorities` of the target",
        ),
        Some(entry) if entry.qos.is_none() && entry.value > Some(0) => none(
            "only operators of Slurm raise a priority; name a quality of service in `priorities` of the target, such as `urgent: {value: 50, qos: urgent}`",
        ),
        _ => Support::Full,
    }
}

/// What is limited is counted by the supervisor on the nodes of each Slurm job.
fn budget(container: SlurmContainer, job: &JobPlan) -> Support {
    let is_counted = job.roles.iter().all(|role| role.fixed_gpus().is_some());
    let prices = job.target.settings.prices.as_ref();
    match () {
        () if container == SlurmContainer::Oci => none(
            "nothing of jobc runs beside containers that Slurm starts; write `timeout`, or `container: jobc`, `apptainer` or `pyxis`",
        ),
        () if group::count(job) > 1 => none(
            "the stages are several Slurm jobs, none of which knows what the others used; write `timeout` in the roles",
        ),
        () if !is_counted => none("the number of GPUs is that of the nodes; write it, or `timeout`"),
        () if job.budget.is_some_and(|budget| budget.cost.is_some())
            && prices.is_some_and(|prices| prices.energy.is_some()) =>
        {
            lossy("nothing of jobc reads the counters of the nodes, so the cost is that without energy")
        }
        () => Support::Full,
    }
}

/// A script has the time as Slurm reads it, in the zone of the cluster.
fn start_time(job: &JobPlan) -> Support {
    match job.after.as_deref().and_then(|text| StartTime::parse(text).ok()) {
        Some(StartTime::At { offset: Some(_), .. }) => {
            none("Slurm reads times in the zone of the cluster; write the time there, without a zone")
        }
        _ => Support::Full,
    }
}

/// Features that are supported exactly except in one case.
fn lossy_parts(capability: Capability, job: &JobPlan) -> Support {
    match capability {
        Capability::JobTimeout if group::count(job) > 1 => lossy(
            "the stages are several Slurm jobs, and each may take the whole time; set a `timeout` for each role",
        ),
        _ => Support::Full,
    }
}

/// The support with all container runtimes except Slurm's own.
fn rest(
    capability: Capability,
    settings: &SlurmTarget,
    role: Option<&RolePlan>,
    segments: &[String],
    job: &JobPlan,
) -> Support {
    use Capability as C;
    let container = settings.container;
    let gpu = role.and_then(|role| role.resources.gpu.as_ref());
    match capability {
        C::ReadyLog => {
            none("a Slurm job does not read its logs; write `ready: {port: LABEL}` or `{exec: [...]}`")
        }
        C::ReadyKeep => none("readiness is watched once on Slurm; leave `keep` out for this target"),
        C::RetryBackoff if role.is_some_and(|role| role.retry.scope == RetryScope::Job) => lossy(
            "Slurm itself chooses when a requeued job starts again, about two minutes later; leave `backoff` out",
        ),
        C::RetryBackoff => Support::Full,
        C::RetryVerdicts if role.is_some_and(|role| role.retry.scope == RetryScope::Job) => none(
            "Slurm itself starts a whole job again, by its exit code; write `scope: role`, or `on_exit_codes`",
        ),
        C::RetryVerdicts if settings.jobc.as_deref().is_some_and(|jobc| jobc.starts_with('/')) => {
            Support::Full
        }
        C::RetryVerdicts => none(
            "only jobc on the nodes tells kinds of failures apart; write `jobc: /PATH` in the target, or `on_exit_codes`",
        ),
        C::RetryMemory => none(
            "a step has the memory that the Slurm job asked for; raise `resources.memory`, or leave `memory` out of `retry`",
        ),
        C::Preflight if !role.is_none_or(preflight::has_place) => none(
            "the checks are a shell before the command, which only the image knows; write the command as `run`",
        ),
        C::Preflight => Support::Full,
        C::Stall => none(
            "nothing of jobc reads the counters of tasks on the nodes all the time; `jobc why` says which task of a running job is quiet; write `timeout`, or let the program watch itself, as `TORCH_NCCL_ASYNC_ERROR_HANDLING` does",
        ),
        C::ResumeExitCodes => Support::Full,
        C::ResumeVariables if matches!(container, SlurmContainer::Jobc | SlurmContainer::Oci) => lossy(
            "the variables of a bundle are the same in each attempt; resume if `$JOBC_CHECKPOINT_DIR` has a checkpoint",
        ),
        C::ResumeVariables => Support::Full,
        C::RetryDisruptions
            if job.preemption.is_some() && job.roles.iter().all(|role| role.retry.max == 0) =>
        {
            Support::Full
        }
        C::RetryDisruptions if job.preemption.is_some() => lossy(
            "`SLURM_RESTART_COUNT` also counts what the cluster does to a job; write `max: 0`, or leave `retry` out",
        ),
        C::RetryDisruptions => lossy(
            "`SLURM_RESTART_COUNT` also counts what the cluster does to a job; leave `disruptions` out for this target",
        ),
        C::GangMin => none("Slurm allocates all nodes of a job or none; write `gang: required`"),
        C::Parallel => none(
            "all instances of a role are one step; reduce `instances`, or use a `matrix` of the job with `max_parallel`",
        ),
        C::RoleMaxParallel => none(
            "the combinations are steps or jobs that Slurm starts as it can; move the matrix to the job, which becomes an array with `max_parallel`",
        ),
        C::Metrics if role.is_none_or(|role| !role.has_file_metrics()) => Support::Full,
        C::Metrics => lossy(
            "`jobc report` reads the output of tasks, not their files; print the number, and write `log`",
        ),
        C::GracePeriod if grace_of(role, job) > MAX_SIGNAL_SECONDS => {
            none("Slurm announces the end of the time limit at most 65535 s before; write `18h` or less")
        }
        // `form::check` says what `scancel` leaves of it.
        C::GracePeriod => Support::Full,
        C::StopSignal if matches!(container, SlurmContainer::Oci) => lossy(
            "Slurm announces the end of a job with SIGTERM; have the program handle SIGTERM, too, or write `container: jobc`, `apptainer` or `pyxis`",
        ),
        C::StopSignal => Support::Full,
        C::Network(Network::Job)
            if settings.exclusive
                && matches!(
                    container,
                    SlurmContainer::None | SlurmContainer::Pyxis | SlurmContainer::Apptainer
                ) =>
        {
            Support::Full
        }
        C::Network(Network::Job) => none(
            "the address of an instance is that of its node, which other jobs share; leave `network` out, or write `exclusive: true` in the target with `container: pyxis`, `apptainer` or `none`",
        ),
        C::Network(Network::None) => none("tasks use the network of their nodes"),
        C::PublishService => {
            none("Slurm has no services; a port is reached at the address of the node: write `publish: host`")
        }
        C::SecretFromStore => {
            none("Slurm has no secret store; write `env: NAME` or `file: PATH`, which `submit.sh` reads")
        }
        C::VolumeNfs => provided(settings, segments, "an NFS export"),
        C::VolumeS3 => provided(settings, segments, "an S3 bucket"),
        C::VolumePvc => provided(settings, segments, "a PersistentVolumeClaim"),
        C::VolumeTarget => provided(settings, segments, "a volume without a `source`"),
        C::VolumeHttps | C::VolumeGit => provided(settings, segments, "what must be fetched"),
        C::VolumeJob if container == SlurmContainer::None => {
            provided(settings, segments, "a directory of the job")
        }
        C::VolumeJob if container == SlurmContainer::Jobc => {
            provided(settings, segments, "a directory that the bundles of several nodes share")
        }
        C::VolumeJob => Support::Full,
        C::VolumeJobMemory => none(
            "instances may run on several nodes, which share no memory; run both programs in one role, and leave it out",
        ),
        C::VolumeMemory if container == SlurmContainer::Pyxis => Support::Full,
        C::VolumeMemory => none(
            "nothing mounts a file system in memory here; write to the /dev/shm of the node, or write `container: jobc` or `pyxis`",
        ),
        C::ExtraHosts | C::HostGateway | C::DnsServers | C::DnsSearch
            if container == SlurmContainer::None =>
        {
            none("tasks look up names as their nodes do; leave it out, or write another `container`")
        }
        C::HostGateway => {
            none("tasks have the network of their nodes; leave it out, and use 127.0.0.1 in the program")
        }
        C::ExtraHosts => none(
            "containers have the /etc/hosts of their node; replace it by `files: {/etc/hosts: {content: …}}` of the role, with the lines of the node that the program needs",
        ),
        C::DnsServers | C::DnsSearch => none(
            "containers have the /etc/resolv.conf of their node; replace it by `files: {/etc/resolv.conf: {content: …}}` of the role",
        ),
        C::VolumeInstance if container == SlurmContainer::None => none(
            "without a container nothing is mounted; leave it out, and write to `${TMPDIR:-/tmp}` of the node in the command, or write another `container`",
        ),
        C::VolumeInstance if container == SlurmContainer::Oci => none(
            "nothing of jobc runs beside containers that Slurm starts; write `container: jobc`, `apptainer` or `pyxis`",
        ),
        C::VolumeInstance => Support::Full,
        C::VolumeOptions => {
            none("the nodes have mounted their file systems already; leave `options` out for this target")
        }
        C::Subpath if container == SlurmContainer::None => none(
            "without a container nothing is mounted; leave `subpath` out, and write to a directory of the output in the command",
        ),
        C::Subpath => Support::Full,
        // enroot mounts a file system in memory of that size over the /dev/shm of the node.
        C::Shm if container == SlurmContainer::Pyxis => Support::Full,
        C::Shm => lossy(
            "tasks see the /dev/shm of their node, usually half of its memory; leave `shm` out, or choose `container: jobc` or `pyxis`",
        ),
        C::Disk => lossy("Slurm looks for nodes with that much room in /tmp by `--tmp`, and limits nothing"),
        C::Pids => lossy("Slurm does not limit processes; leave `pids` out for this target"),
        C::Hugepages => none(
            "Slurm does not hand out huge pages; leave `hugepages` out, and name a feature of the nodes in `constraint` of the target",
        ),
        C::DiskIo => none("Slurm does not limit disk traffic; leave `io` out for this target"),
        C::Devices if container == SlurmContainer::Oci => none(
            "the devices of a container that Slurm starts are those of its oci.conf; leave `devices` out, or write `container: jobc`, `apptainer` or `pyxis`",
        ),
        C::Devices => Support::Full,
        C::Rdma if settings.exclusive && container != SlurmContainer::Oci => Support::Full,
        C::Rdma => lossy(
            "tasks see all network adapters of their node, also those that other jobs use; a target with `exclusive: true` has nodes of its own",
        ),
        C::Gpu(Vendor::Nvidia | Vendor::Amd) => Support::Full,
        C::Gpu(vendor) => {
            Support::None(format!("the backend requests GPUs of NVIDIA and AMD, not {}", vendor.card()))
        }
        C::GpuAll if gpu.is_some_and(|gpu| gpu.amount() != GpuAmount::All) => Support::Full,
        C::GpuAll => none(
            "how many GPUs a node has is not known here; write a number, or `gpus` of the nodes in the target",
        ),
        C::GpuModel => particular(settings, gpu, job, "model"),
        C::GpuMemory => particular(settings, gpu, job, "memory"),
        C::GpuVersion => version(settings, gpu, segments, job),
        C::GpuShare => none(
            "Slurm hands out whole GPUs, MIG instances, shards and MPS shares of a site's own size; leave `share` out, or write a MIG `profile`",
        ),
        C::GpuGrow => none("Slurm gives a job the GPUs that it asks for; leave `share` out"),
        C::GpuTime => none(
            "on Slurm the partition decides whether jobs take turns (`OverSubscribe=FORCE` with `PreemptMode=GANG`), which an administrator sets; leave `share` out",
        ),
        C::GpuProfile => {
            match gpu.and_then(|gpu| gpu.share.as_ref()).and_then(|share| share.profile.as_ref()) {
                Some(profile) if settings.gpu_types.contains_key(profile) => Support::Full,
                profile => Support::None(format!(
                    "the target does not say what the cluster calls these MIG instances; write `slurm: {{gpu_types: {{{0}: {0}}}}}` with its GRES type",
                    profile.map_or("1g.10gb", String::as_str)
                )),
            }
        }
        C::User => none("tasks run as the user who submits; leave `user` out, or write `container: jobc`"),
        C::ImageCommand if container == SlurmContainer::Apptainer => Support::Full,
        C::ImageCommand => none("what an image runs by itself is not known here; write `run`"),
        C::Labels => none("Slurm jobs have no labels; leave `labels` out for this target"),
        C::ReadOnlyRoot | C::LinuxCapabilities | C::Privileged => {
            none("tasks have the rights of the user who submits; leave `security` out for this target")
        }
        C::Files | C::FileIndex | C::FileSecret | C::FileOwner => none(
            "without a container a file would be on the node itself; put it next to the program, or write another `container`",
        ),
        C::ImageHost if matches!(container, SlurmContainer::None | SlurmContainer::Jobc) => Support::Full,
        C::ImageHostEnvironment if container == SlurmContainer::None => Support::Full,
        C::ImageHost | C::ImageHostEnvironment => {
            none("the files of the nodes are not an image; write `container: none`")
        }
        C::ImageFile if container == SlurmContainer::None => Support::Full,
        C::ImageFile if container == SlurmContainer::Jobc => submit(
            "`jobc submit` brings the image; for `sbatch`, put it into the directory `images` of the target, and write its name",
        ),
        C::ImageFile => none("put the image into the directory `images` of the target, and write its name"),
        C::ImageBuild
            if container == SlurmContainer::None
                || settings.images.is_some()
                || job.target.settings.registry.is_some() =>
        {
            Support::Full
        }
        C::ImageBuild if container == SlurmContainer::Jobc => submit(
            "nodes do not build images, and `jobc submit` does; for `sbatch`, write `registry` in the target, or `images` with a directory that has them",
        ),
        C::ImageBuild => none(
            "nodes do not build images; write `registry` in the target, or `images` with a directory that has them",
        ),
        C::RegistryLogin if container == SlurmContainer::None || settings.images.is_some() => Support::Full,
        C::RegistryLogin => none(
            "the nodes use the log-ins of the user; log in there, and leave `registries` out, or write `images` in the target",
        ),
        C::Ssh if container == SlurmContainer::None => Support::Full,
        C::Ssh => none(
            "programs in a container cannot start processes on other nodes; write `container: none`, or let every instance start its own",
        ),
        _ => Support::Full,
    }
}

/// With `container: oci` Slurm replaces the command of a bundle, and no script of ours runs next to it.
fn of_oci(
    capability: Capability,
    settings: &SlurmTarget,
    role: Option<&RolePlan>,
    segments: &[String],
    job: &JobPlan,
) -> Support {
    use Capability as C;
    match capability {
        C::Needs(NeedState::Started | NeedState::Ready)
        | C::NeedsMin
        | C::ReadyProbe
        | C::ReadyLog
        | C::MinSucceeded
        | C::MinFailed
        | C::Retry(RetryScope::Task)
        | C::RoleTimeout
        | C::Elastic
        | C::EnvSecret
        | C::FileSecret => none(
            "nothing of jobc runs beside containers that Slurm starts; write `container: jobc`, `apptainer` or `pyxis`",
        ),
        C::Files
        | C::FileIndex
        | C::Shm
        | C::VolumeMemory
        | C::ReadOnlyRoot
        | C::LinuxCapabilities
        | C::Subpath => Support::Full,
        C::JobTimeout => lossy_parts(capability, job),
        _ => rest(capability, settings, role, segments, job),
    }
}

/// The grace period of a role, or the maximum of all roles.
fn grace_of(role: Option<&RolePlan>, job: &JobPlan) -> u64 {
    let of_job = || job.roles.iter().map(|role| role.grace_period_seconds).max().unwrap_or(0);
    role.map_or_else(of_job, |role| role.grace_period_seconds)
}

/// Probes by port and page reach the node's network from outside of the container.
fn ready_probe(role: Option<&RolePlan>) -> Support {
    use jobc_schema::plan::ProbePlan;
    match role.and_then(|role| role.ready.as_ref()).map(|ready| &ready.probe) {
        Some(ProbePlan::Exec(_)) => none(
            "the check would run outside of the container; write `ready: {port: LABEL}` or `{http: ...}`",
        ),
        _ => Support::Full,
    }
}

/// Whether the target provides a directory for a volume.
fn provided(settings: &SlurmTarget, segments: &[String], what: &str) -> Support {
    let name = segments.get(1).map_or("NAME", String::as_str);
    if settings.storage.contains_key(name) {
        return Support::Full;
    }
    Support::None(format!(
        "the nodes do not mount {what} for a job; name the directory that has it in the target, such as `slurm: {{storage: {{{name}: /datasets/{name}}}}}`"
    ))
}

/// Whether particular GPUs can be requested from the cluster.
fn particular(settings: &SlurmTarget, gpu: Option<&GpuPlan>, job: &JobPlan, field: &str) -> Support {
    // A target whose nodes have cards of one kind: other passes have compared them.
    let uniform = job.target.settings.gpus.as_ref().and_then(|gpus| gpus.cards.as_ref());
    if uniform.is_some_and(|cards| cards.len() == 1) || gpu.is_some_and(|gpu| gpu::is_known(settings, gpu)) {
        return Support::Full;
    }
    let model = gpu.and_then(|gpu| gpu.models.first()).map_or("A100-80GB", String::as_str);
    Support::None(format!(
        "the target does not say which nodes have GPUs of that {field}; write `slurm: {{gpu_features: {{{model}: FEATURE}}}}` or `gpu_types` with what `sinfo -o %f,%G` shows"
    ))
}

fn version(settings: &SlurmTarget, gpu: Option<&GpuPlan>, segments: &[String], job: &JobPlan) -> Support {
    match segments.last().map(String::as_str) {
        Some("compute_capability") => particular(settings, gpu, job, "compute capability"),
        _ if job
            .target
            .settings
            .gpus
            .as_ref()
            .is_some_and(|gpus| gpus.driver.is_some() || gpus.cuda.is_some()) =>
        {
            Support::Full
        }
        _ => none(
            "Slurm does not know the driver of its nodes; write `gpus: {driver: VERSION}` in the target, or leave this out",
        ),
    }
}
