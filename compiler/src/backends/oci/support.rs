//! Which features a bundle supports, which `jobc run` adds from the plan, and which are not supported.

use jobc_schema::Pointer;
use jobc_schema::gpu::Vendor;
use jobc_schema::job::Network;
use jobc_schema::plan::{GpuAmount, JobPlan};
use jobc_schema::schedule::Overlap;

use crate::backend::{Capability, Support, preflight};

use super::mounts::storage;

/// How well a bundle supports a feature at one place of the job file.
pub(super) fn support(capability: Capability, place: &Pointer, job: &JobPlan) -> Support {
    use Capability as C;
    // `/data/NAME` or `/outputs/NAME`, with `source` below where it has one.
    let volume = place.segments().nth(1);
    let volume = volume.as_deref();
    match capability {
        // Every sshd would listen on the one address that all tasks share.
        C::Ssh if !has_own_addresses(job) => Support::None(
            "all tasks share the address of the host, where only one sshd can listen; write `network: job`".to_owned(),
        ),

        C::VolumeInstance if volume.is_some_and(|name| storage(job, name).is_some()) => Support::None(
            "the directory in `storage` of the target is the same for all instances; leave its entry out, and each gets one of its own".into(),
        ),

        // Slurm orders the jobs of its targets.
        C::Priority
            if (job.target.settings.is_host() || job.target.settings.is_machine())
                && job.priority.as_ref().is_some_and(|priority| priority.entry.value.is_none()) => Support::None(
            "the queue of a host orders jobs by number; add `value` to the entry in `priorities` of the target".into(),
        ),

        C::Schedule if job.max_parallel.is_some() || !job.matrix.is_empty() => Support::None(
            "a timer starts one job; write a job without `matrix`".into(),
        ),
        C::Schedule if job.schedule.as_ref().is_some_and(|schedule| schedule.overlap != Overlap::Skip) => Support::None(
            "a timer of systemd starts nothing that still runs; write `overlap: skip`, and a `timeout` if it may hang".into(),
        ),

        C::HostGateway if job.network == Network::None => Support::None(
            "with `network: none` nothing is reachable, the host neither; write `network: job`".into(),
        ),

        C::Preflight
            if place.segments().nth(1).and_then(|name| job.role(&name)).is_some_and(|role| !preflight::has_place(role)) => Support::None(
            "the checks are a shell before the command, which only the image knows; write the command as `run`".into(),
        ),
        // A bundle starts one task once: order, time, repetition and number are decided by the executor.
        C::Needs(_)
        | C::NeedsMin
        | C::ReadyProbe
        | C::ReadyLog
        | C::ReadyKeep
        | C::MinSucceeded
        | C::MinFailed
        | C::Retry(_)
        | C::RetryExitCodes
        | C::Stall
        | C::ResumeExitCodes
        | C::ResumeVariables
        | C::Budget
        | C::BudgetEnergy
        | C::RetryVerdicts
        | C::RetryMemory
        | C::RetryBackoff
        // No platform can evict a task on a host.
        | C::RetryDisruptions
        | C::Priority
        | C::After
        | C::Notify
        | C::Idle
        | C::JobTimeout
        | C::RoleTimeout
        | C::GracePeriod
        | C::StopSignal
        | C::GangRequired
        | C::GangMin
        | C::Parallel
        | C::MaxParallel
        | C::RoleMaxParallel
        | C::Metrics
        // Annotations define what to add: an image, secrets, keys, devices, a disk limit.
        | C::ImageHost
        | C::ImageHostEnvironment
        | C::ImageFile
        | C::ImageBuild
        | C::ImageCommand
        | C::RegistryLogin
        | C::Elastic
        | C::Ssh
        | C::FileSecret
        | C::FileOwner
        | C::EnvSecret
        | C::SecretFromStarter
        | C::VolumeHttps
        | C::VolumeGit
        | C::VolumeJob
        | C::VolumeJobMemory
        | C::VolumeInstance
        | C::Disk
        | C::Rdma
        | C::Devices
        | C::GpuModel
        | C::GpuMemory
        | C::GpuShare
        | C::GpuTime
        | C::GpuGrow
        | C::GpuProfile
        | C::Gpu(Vendor::Intel)
        | C::ExtraHosts
        | C::HostGateway
        | C::DnsServers
        | C::DnsSearch
        | C::Network(Network::Job) => Support::Plan,
        C::Gpu(vendor @ (Vendor::Habana | Vendor::Huawei | Vendor::Cambricon | Vendor::Google)) => {
            Support::None(format!(
                "jobs on a host support GPUs of NVIDIA, AMD and Intel, not {}; a Kubernetes target can support it",
                vendor.card()
            ))
        }
        C::GpuAll if counted(job) => Support::Full,
        C::GpuAll => Support::None(
            "how many GPUs there are is known only on the host: `jobc run` counts them; or write a number, or `gpus` of the host for the target".into(),
        ),
        C::Schedule
        | C::Preflight
        | C::Gpu(Vendor::Nvidia | Vendor::Amd)
        | C::GpuNone
        | C::GpuVersion
        | C::Network(Network::Auto | Network::Host | Network::None)
        | C::Files
        | C::FileIndex
        | C::RoleMatrix
        | C::VolumePath
        | C::VolumeMemory
        | C::Code
        | C::Subpath
        | C::NoCpu
        | C::NoMemory
        | C::Shm
        | C::Pids
        | C::Hugepages
        | C::DiskIo
        | C::Ulimits
        | C::User
        | C::Workdir
        | C::Labels
        | C::ReadOnlyRoot
        | C::LinuxCapabilities
        | C::Privileged => Support::Full,
        C::PublishHost | C::PublishService => publish(job.network),
        C::SecretFromStore => Support::None(
            "a host has no secret store; write `env:` or `file:`, which `jobc run` reads when the job starts".into(),
        ),
        C::VolumeNfs => provided(job, volume, "an NFS export"),
        C::VolumeS3 => provided(job, volume, "an S3 bucket"),
        C::VolumePvc => provided(job, volume, "a PersistentVolumeClaim"),
        C::VolumeTarget => provided(job, volume, "a volume without a `source`"),
        C::VolumeOptions => Support::None(
            "a bundle binds directories of the host, which are mounted already; mount them there with these options".into(),
        ),
    }
}

/// On the host's network a task's ports are the host's; on the job's own `jobc run` forwards them.
fn publish(network: Network) -> Support {
    match network {
        Network::Auto | Network::Host => Support::Full,
        Network::Job => Support::Plan,
        Network::None => {
            Support::None("with `network: none` no port is reachable; write `network: job`".into())
        }
    }
}

/// How far a bundle can express a volume of a kind it cannot mount: where the target gives a directory for it.
///
/// The name is absent where the question is about bundles in general.
fn provided(job: &JobPlan, name: Option<&str>, what: &str) -> Support {
    match name {
        Some(name) if storage(job, name).is_some() => Support::Full,
        _ => {
            let name = name.unwrap_or("NAME");
            Support::None(format!(
                "a bundle cannot mount {what}; write a path as its `source`, such as `./{name}`, or its directory on the host into `targets.yaml`, as `oci: {{storage: {{{name}: /mnt/{name}}}}}`"
            ))
        }
    }
}

/// Whether the GPUs of the host were counted for every role that gets all of them.
fn counted(job: &JobPlan) -> bool {
    job.roles.iter().filter_map(|role| role.resources.gpu.as_ref()).all(|gpu| gpu.amount() != GpuAmount::All)
}

/// Whether every task has its own address, or there is only one task.
fn has_own_addresses(job: &JobPlan) -> bool {
    job.network == Network::Job || job.totals.instances <= 1
}
