//! Which features OpenPAI supports; for others, the reason and the closest alternative.

use jobc_schema::gpu::Vendor;
use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, RolePlan, VolumeSource};
use jobc_schema::role::{Capabilities, RetryScope};

use crate::backend::{Capability, Support};

use super::extras::gang_allocation;
use super::storage;

/// How well a feature of a job is supported.
pub(super) fn support(capability: Capability, job: &JobPlan) -> Support {
    let none = |why: &str| Support::None(why.to_owned());
    let lossy = |why: &str| Support::Lossy(why.to_owned());
    match capability {
        Capability::Needs(_) | Capability::NeedsMin => none(
            "OpenPAI starts all roles at once; submit the stages as jobs of their own, or wait in `setup` for a file of the other role",
        ),
        Capability::ReadyProbe | Capability::ReadyLog | Capability::ReadyKeep => {
            none("OpenPAI has no readiness checks; let the connecting program retry until it succeeds")
        }
        Capability::Retry(RetryScope::Task) if gang_allocation(job) => none(
            "OpenPAI retries single tasks only where they need not start together; write `gang: none`, or `retry: {scope: job}`",
        ),
        Capability::Retry(RetryScope::Role) => {
            none("OpenPAI retries single tasks or the whole job; write `scope: job`")
        }
        Capability::Retry(RetryScope::Job) if !same_job_retries(job) => lossy(
            "OpenPAI has one count for the job, whichever role fails; write `retry` at the top of the job",
        ),
        Capability::RetryExitCodes => {
            none("OpenPAI uses its own table of exit codes; leave those of `retry` out")
        }
        Capability::RetryVerdicts => {
            none("OpenPAI uses its own table of exit codes; leave `on` out for this target")
        }
        Capability::Preflight => none(
            "nothing there tells checks from the command; write them in `setup`, whose failure OpenPAI retries as any other",
        ),
        Capability::Stall => none(
            "nothing there reads the counters of a task; write `timeout`, or let the program watch itself",
        ),
        Capability::ResumeExitCodes => {
            none("OpenPAI uses its own table of exit codes; leave `exit_codes` out for this target")
        }
        Capability::ResumeVariables => none(
            "a task of OpenPAI does not learn which attempt it is; resume if `$JOBC_CHECKPOINT_DIR` has a checkpoint",
        ),
        Capability::Budget | Capability::BudgetEnergy => none(
            "nothing of jobc counts what a job of OpenPAI uses; leave `budget` out, and write `timeout` in the roles",
        ),
        Capability::RetryMemory => none(
            "a task of OpenPAI has the same memory in each attempt; raise `resources.memory`, or leave `memory` out of `retry`",
        ),
        Capability::RetryDisruptions => none(
            "OpenPAI decides itself which lost tasks count as retries; leave `disruptions` out for this target",
        ),
        Capability::RetryBackoff => none("OpenPAI retries at once; write `sleep` in `setup`"),
        Capability::Priority => none(
            "OpenPAI has the classes `crit`, `prod`, `test` and `oppo`; write one as `priority` in `openpai`",
        ),
        Capability::After => none("OpenPAI starts jobs as soon as it can; submit the job at that time"),
        Capability::Notify => none(
            "nothing of jobc watches a job of OpenPAI; leave `notify` out, and write a command after `jobc wait`",
        ),
        Capability::Idle => none(
            "nothing of jobc watches the GPUs of a job of OpenPAI; leave `idle` out, and look at the metrics of the cluster",
        ),
        Capability::Schedule => none(
            "OpenPAI starts a job once; leave `schedule` out, and submit the job from a timer of yours",
        ),
        Capability::JobTimeout => none("OpenPAI has no limit for a whole job; write `timeout` on the roles"),
        Capability::GangMin => none(
            "OpenPAI starts all tasks together or each on its own; write `gang: required` or `gang: none`",
        ),
        Capability::Parallel => none(
            "OpenPAI starts all instances of a role; reduce `instances`, and let each process several parts",
        ),
        Capability::MaxParallel => {
            lossy("each combination is a separate job; submit only that many at a time")
        }
        Capability::RoleMaxParallel => lossy(
            "OpenPAI starts all combinations at once; move the matrix to the job, and submit only that many at a time",
        ),
        Capability::Metrics => lossy(
            "OpenPAI keeps no numbers of a task; read them in the log of the task, or run the job with `jobc run`",
        ),
        Capability::Subpath => none(
            "OpenPAI mounts a storage as a whole; leave `subpath` out, and write to a directory of the output in the command",
        ),
        Capability::Network(Network::Job) => none(
            "OpenPAI runs tasks on the host's network; leave `network` out and use `${{ ports.<label> }}`",
        ),
        Capability::Network(Network::None) => none("OpenPAI runs tasks on the host's network"),
        Capability::PublishService => {
            none("OpenPAI has no services; a port is reached at the host's address: write `publish: host`")
        }
        Capability::SecretFromStore => none(
            "OpenPAI has no secret store; write `env: NAME` or `file: PATH`, and the value is filled in at submit",
        ),
        Capability::VolumePath => provided(job, |source| matches!(source, VolumeSource::Path { .. })),
        Capability::VolumeNfs => provided(job, |source| matches!(source, VolumeSource::Nfs { .. })),
        Capability::VolumeS3 => provided(job, |source| matches!(source, VolumeSource::S3 { .. })),
        Capability::VolumePvc => provided(job, |source| matches!(source, VolumeSource::Pvc { .. })),
        Capability::VolumeHttps => provided(job, |source| matches!(source, VolumeSource::Https { .. })),
        Capability::VolumeGit => provided(job, |source| matches!(source, VolumeSource::Git { .. })),
        Capability::VolumeJob => match provided(job, |source| matches!(source, VolumeSource::Job { .. })) {
            Support::None(_) => none(
                "OpenPAI has no directory that ends with a job; name a storage of the cluster in the target, such as `storages: [{name: confignfs, provides: NAME}]` with the name of the data; its files stay",
            ),
            provided => provided,
        },
        Capability::VolumeJobMemory => none(
            "tasks of OpenPAI share no memory; leave it out, and run both programs in one task",
        ),
        Capability::VolumeMemory => none(
            "OpenPAI mounts no file systems in memory; write to /dev/shm, whose size is `resources: {shm: 8GiB}`",
        ),
        Capability::ExtraHosts => none(
            "OpenPAI sets no names in /etc/hosts; tasks run as root: write `echo ADDRESS NAME >> /etc/hosts` in `setup`",
        ),
        Capability::HostGateway => none(
            "tasks of OpenPAI have the network of their node; leave it out, and use 127.0.0.1 in the program",
        ),
        Capability::DnsServers | Capability::DnsSearch => none(
            "the cluster administrator sets how names are looked up; leave `dns` out, or write to /etc/resolv.conf in `setup`",
        ),
        Capability::VolumeInstance => none(
            "OpenPAI has no volumes of an instance; leave it out, and write to a directory of the container such as `/tmp`",
        ),
        Capability::Code => none(
            "OpenPAI runs what is in the image; copy the code into it with `image: {copy: [{from: ., to: /workspace}]}`, or clone it in `setup`",
        ),
        Capability::VolumeTarget => provided(job, |source| matches!(source, VolumeSource::Target {})),
        Capability::VolumeOptions => none("the cluster administrator sets the mount options of a storage"),
        Capability::NoCpu => none("OpenPAI requires a number of CPUs; write for example `cpu: 4`"),
        Capability::NoMemory => {
            none("OpenPAI requires an amount of memory; write for example `memory: 16GiB`")
        }
        Capability::Disk => none("OpenPAI does not limit files; leave `disk` out for this target"),
        Capability::Pids => none("OpenPAI does not limit processes; leave `pids` out for this target"),
        Capability::Hugepages => {
            none("OpenPAI does not support huge pages; leave `hugepages` out for this target")
        }
        Capability::DiskIo => none("OpenPAI does not limit disk traffic; leave `io` out for this target"),
        Capability::Rdma if job.roles.iter().any(|role| role.resources.rdma > Some(1)) => {
            lossy("OpenPAI assigns one InfiniBand adapter to an instance; write `rdma: 1`")
        }
        // Every task has it (rest-server, `k8s.js`).
        Capability::Devices if devices(job).all(|path| path == "/dev/fuse") => Support::Full,
        Capability::Devices => none(
            "tasks of OpenPAI have `/dev/fuse` and no other device besides GPUs; `rdma: 1` gives them an InfiniBand adapter",
        ),
        Capability::Ulimits => none(
            "OpenPAI has no field for limits; write `ulimit` in `setup`, which fails where the node allows less",
        ),
        Capability::Gpu(Vendor::Amd) => {
            sku(job, |role| role.resources.gpu.as_ref().is_some_and(|gpu| gpu.vendor == Vendor::Amd))
        }
        Capability::Gpu(
            Vendor::Intel | Vendor::Habana | Vendor::Huawei | Vendor::Cambricon | Vendor::Google,
        ) => none("OpenPAI schedules GPUs of NVIDIA and AMD"),
        Capability::GpuModel => {
            sku(job, |role| role.resources.gpu.as_ref().is_some_and(|gpu| !gpu.models.is_empty()))
        }
        Capability::GpuMemory => {
            sku(job, |role| role.resources.gpu.as_ref().is_some_and(|gpu| gpu.memory_bytes.is_some()))
        }
        Capability::GpuVersion => sku(job, |role| {
            role.resources.gpu.as_ref().is_some_and(|gpu| {
                gpu.compute_capability.is_some() || gpu.cuda.is_some() || gpu.driver.is_some()
            })
        }),
        Capability::GpuAll => none(
            "OpenPAI assigns a number of GPUs, and its nodes may have different ones; write for example `gpu: 8`",
        ),
        Capability::GpuShare | Capability::GpuTime | Capability::GpuGrow | Capability::GpuProfile => {
            none("OpenPAI assigns only whole GPUs; leave `share` out")
        }
        Capability::User => none(
            "OpenPAI runs tasks as root; write `run: [su, NAME, -c, …]`, or leave `user` out for this target",
        ),
        Capability::ImageCommand => none(
            "OpenPAI always runs commands of its own, and an image's ENTRYPOINT is not known here; write `run`",
        ),
        Capability::Labels => none("OpenPAI jobs have no labels; leave `labels` out for this target"),
        Capability::LinuxCapabilities if capabilities_are_given(job) => Support::Full,
        Capability::LinuxCapabilities => none(
            "every task of OpenPAI has the usual capabilities with `SYS_ADMIN`, `IPC_LOCK` and `DAC_READ_SEARCH`, and no others; leave `capabilities` out for this target",
        ),
        Capability::ReadOnlyRoot | Capability::Privileged => {
            none("OpenPAI does not support security settings; leave `security` out for this target")
        }
        Capability::ImageFile => none(
            "OpenPAI runs images of registries only: bring it into one with `jobc image import` and `jobc image push`, and name that",
        ),
        Capability::ImageHost => none("OpenPAI runs images only; name one"),
        Capability::ImageHostEnvironment => none(
            "OpenPAI runs images only, which do not have the directory, packages and variables of the user who starts the job; build an image with `from`, `python` and `copy`, and write variables into `env` and `secrets`",
        ),
        Capability::ImageBuild if job.target.settings.registry.is_none() => {
            none("OpenPAI pulls images, so a built image needs a registry; write `registry` in the target")
        }
        Capability::Elastic => none(
            "OpenPAI tells tasks each other's addresses only where it starts them together, and then retries all of them; leave `elastic` out and write `retry: {max: 3}`, which restarts the job",
        ),
        Capability::Ssh if !gang_allocation(job) => {
            none("OpenPAI sets up ssh only where tasks start together; leave out `gang: none`")
        }
        Capability::GracePeriod => {
            none("OpenPAI stops tasks with 30 s between SIGTERM and SIGKILL; leave `grace_period` out")
        }
        Capability::StopSignal => none(
            "OpenPAI stops tasks with SIGTERM; have the program handle that, and leave `stop_signal` out",
        ),
        Capability::RoleMatrix
        | Capability::MinSucceeded
        | Capability::MinFailed
        | Capability::Retry(RetryScope::Task | RetryScope::Job)
        | Capability::RoleTimeout
        | Capability::GangRequired
        | Capability::Network(Network::Auto | Network::Host)
        | Capability::PublishHost
        | Capability::Files
        | Capability::FileIndex
        | Capability::FileSecret
        | Capability::EnvSecret
        | Capability::SecretFromStarter
        | Capability::Shm
        | Capability::Rdma
        | Capability::Gpu(Vendor::Nvidia)
        | Capability::GpuNone
        | Capability::Workdir
        | Capability::ImageBuild
        | Capability::RegistryLogin
        // Tasks write the files themselves.
        | Capability::FileOwner
        | Capability::Ssh => Support::Full,
    }
}

fn devices(job: &JobPlan) -> impl Iterator<Item = &String> {
    job.roles.iter().flat_map(|role| &role.resources.devices)
}

/// Whether the tasks of OpenPAI have all that the roles add to the usual capabilities, and lack all that they drop
/// (rest-server, `k8s.js`).
fn capabilities_are_given(job: &JobPlan) -> bool {
    let only = |names: &[String], known: &[&str]| {
        names.iter().all(|name| known.contains(&name.to_ascii_uppercase().trim_start_matches("CAP_")))
    };
    let given = |set: &Capabilities| {
        only(&set.add, &["SYS_ADMIN", "IPC_LOCK", "DAC_READ_SEARCH"]) && only(&set.drop, &["MKNOD"])
    };
    let mut sets = job.roles.iter().filter_map(|role| role.security.capabilities.as_ref()).peekable();
    sets.peek().is_some() && sets.all(given)
}

/// Whether every role retries the whole job as often; in a job from OpenPAI those that retry single tasks do so, too.
fn same_job_retries(job: &JobPlan) -> bool {
    let settings = job.target.settings.openpai.as_ref();
    let both = settings.is_some_and(|settings| settings.protocol.contains_key("jobRetryCount"));
    let tasks = |role: &&RolePlan| both && role.retry.scope == RetryScope::Task && role.retry.max > 0;
    let mut counts = job.roles.iter().filter(|role| !tasks(role)).map(|role| match role.retry.scope {
        RetryScope::Job => role.retry.max,
        RetryScope::Task | RetryScope::Role => 0,
    });
    let first = counts.next();
    counts.all(|count| Some(count) == first)
}

/// Whether the target names a storage for every volume of a kind.
fn provided(job: &JobPlan, of_kind: impl Fn(&VolumeSource) -> bool) -> Support {
    let missing = job
        .volumes
        .iter()
        .find(|(name, volume)| of_kind(&volume.source) && storage::provider(job, name).is_none());
    match missing {
        None => Support::Full,
        Some((name, _)) => Support::None(format!(
            "tasks of OpenPAI see only storages of the cluster; name the storage that has it in the target, such as `storages: [{{name: confignfs, provides: {name}}}]`, or download it in `setup`"
        )),
    }
}

/// Whether the target selects hardware for every role that requests some.
fn sku(job: &JobPlan, asks: impl Fn(&RolePlan) -> bool) -> Support {
    let settings = job.target.settings.openpai.as_ref();
    let chosen = |role: &&RolePlan| {
        settings
            .and_then(|settings| role.entry_in(&settings.roles))
            .is_some_and(|role| role.sku_type.is_some() || role.pinned_cell.is_some())
    };
    match job.roles.iter().filter(|role| asks(role)).find(|role| !chosen(role)) {
        None => Support::Full,
        Some(role) => Support::None(format!(
            "OpenPAI distinguishes GPUs by HiveD's SKU types; name one in the target, such as `roles: {{{}: {{sku_type: V100}}}}`",
            role.name
        )),
    }
}
