//! What a bundle can express, what `jobc run` adds from the plan, and what neither can.

use jobc_schema::gpu::Vendor;
use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, VolumeSource};

use crate::backend::{Capability, Support};

use super::mounts::storage;

/// How far a bundle can express something.
pub(super) fn support(capability: Capability, job: &JobPlan) -> Support {
    use Capability as C;
    match capability {
        // A bundle starts one task once: order, time, repetition and number are matters of whoever starts it.
        C::Needs(_)
        | C::NeedsMin
        | C::ReadyProbe
        | C::ReadyLog
        | C::ReadyKeep
        | C::MinSucceeded
        | C::MinFailed
        | C::Retry(_)
        | C::RetryExitCodes
        | C::RetryBackoff
        | C::JobTimeout
        | C::RoleTimeout
        | C::GracePeriod
        | C::GangRequired
        | C::GangMin
        | C::Parallel
        | C::MaxParallel
        // Annotations say what to put in: an image, secrets, keys, devices, a disk limit.
        | C::ImageHost
        | C::ImageBuild
        | C::ImageCommand
        | C::RegistryLogin
        | C::Ssh
        | C::FileSecret
        | C::EnvSecret
        | C::SecretFromStarter
        | C::VolumeHttps
        | C::VolumeGit
        | C::Disk
        | C::Rdma
        | C::GpuModel
        | C::GpuMemory
        | C::GpuShare
        | C::GpuProfile
        | C::Gpu(Vendor::Intel)
        | C::Network(Network::Job) => Support::Plan,
        C::Gpu(Vendor::Nvidia | Vendor::Amd)
        | C::GpuNone
        | C::GpuVersion
        | C::Network(Network::Auto | Network::Host | Network::None)
        | C::Files
        | C::FileIndex
        | C::VolumePath
        | C::NoCpu
        | C::NoMemory
        | C::Shm
        | C::Pids
        | C::Hugepages
        | C::Ulimits
        | C::User
        | C::Workdir
        | C::Labels
        | C::ReadOnlyRoot
        | C::LinuxCapabilities
        | C::Privileged => Support::Full,
        C::PublishHost | C::PublishService => publish(job.network),
        C::SecretFromStore => Support::None(
            "a machine has no secret store; write `env:` or `file:`, which `jobc run` reads when the job starts".into(),
        ),
        C::VolumeNfs => provided(job, "an NFS export", |s| matches!(s, VolumeSource::Nfs { .. })),
        C::VolumeS3 => provided(job, "an S3 bucket", |s| matches!(s, VolumeSource::S3 { .. })),
        C::VolumePvc => provided(job, "a PersistentVolumeClaim", |s| matches!(s, VolumeSource::Pvc { .. })),
        C::VolumeTarget => provided(job, "a source of its own", |s| matches!(s, VolumeSource::Target {})),
        C::VolumeOptions => Support::None(
            "a bundle binds folders of the machine, which are mounted already; mount them there with these options".into(),
        ),
    }
}

/// On the machine's network a task's ports are the machine's; on the job's own `jobc run` forwards them.
fn publish(network: Network) -> Support {
    match network {
        Network::Auto | Network::Host => Support::Full,
        Network::Job => Support::Plan,
        Network::None => {
            Support::None("with `network: none` nobody can reach a port; write `network: job`".into())
        }
    }
}

/// Whether the target gives a folder for every volume of a kind that a bundle cannot mount.
fn provided(job: &JobPlan, what: &str, is: impl Fn(&VolumeSource) -> bool) -> Support {
    let missing =
        job.volumes.iter().find(|(name, volume)| is(&volume.source) && storage(job, name).is_none());
    match missing {
        None => Support::Full,
        Some((name, volume)) => {
            let why = if matches!(volume.source, VolumeSource::Target {}) {
                format!("the target `{}` has no folder for `{name}`", job.target.name)
            } else {
                format!("a bundle cannot mount {what}")
            };
            Support::None(format!(
                "{why}; write the folder it has on the machine into `targets.yaml`, as `oci: {{storage: {{{name}: /mnt/{name}}}}}`"
            ))
        }
    }
}
