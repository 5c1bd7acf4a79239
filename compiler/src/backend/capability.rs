//! The features that a job may request of a backend, and how well a backend supports them.

use std::collections::BTreeMap;

use jobc_schema::Pointer;
use jobc_schema::gpu::Vendor;
use jobc_schema::job::Network;
use jobc_schema::plan::{GangPlan, GpuAmount, HOST_GATEWAY, JobPlan, ProbePlan, RolePlan, VolumeSource};
use jobc_schema::preemption::{ATTEMPT, RESUME};
use jobc_schema::resources::Publish;
use jobc_schema::role::{Disruptions, NeedState, RetryScope};

/// A feature that a job may request and that not every backend supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// An order between roles: the state that the other role must reach.
    Needs(NeedState),
    /// An order that waits for some instances only.
    NeedsMin,
    /// Readiness by port, page, command.
    ReadyProbe,
    /// Readiness by a line of the log.
    ReadyLog,
    /// Readiness that is checked again after the first success.
    ReadyKeep,
    /// The job succeeds once some instances of a role have succeeded.
    MinSucceeded,
    /// The job fails only after several instances of a role have failed, or never because of the role.
    MinFailed,
    /// Retries of this scope.
    Retry(RetryScope),
    /// Retries of some exit codes only.
    RetryExitCodes,
    /// A wait before a retry.
    RetryBackoff,
    /// Failures that the platform causes do not count as retries.
    RetryDisruptions,
    /// A place in the queue.
    Priority,
    /// An earliest start.
    After,
    /// Notices of the start and the end.
    Notify,
    /// An answer to idle GPUs.
    Idle,
    /// A start again and again.
    Schedule,
    /// Checks before the command.
    Preflight,
    /// Tasks that make no progress are noticed.
    Stall,
    /// Exit codes that mean "resume me".
    ResumeExitCodes,
    /// The number of the attempt, and whether it resumes another.
    ResumeVariables,
    /// A limit of GPU-hours or of the cost.
    Budget,
    /// A limit of energy.
    BudgetEnergy,
    /// Retries of some kinds of failures only.
    RetryVerdicts,
    /// Retries with more memory.
    RetryMemory,
    /// A limit on the whole job's time.
    JobTimeout,
    /// A limit on an instance's time.
    RoleTimeout,
    /// All or nothing, as a requirement.
    GangRequired,
    /// This many or none.
    GangMin,
    /// A limit on the instances that run at the same time.
    Parallel,
    /// A limit on the jobs of a matrix that run at the same time.
    MaxParallel,
    /// A role with a matrix.
    RoleMatrix,
    /// A limit on the combinations of a role that run at the same time.
    RoleMaxParallel,
    /// Metrics: numbers read from logs and files.
    Metrics,
    /// The host's network, a network of the job's own, or none.
    Network(Network),
    /// Names in /etc/hosts.
    ExtraHosts,
    /// The host's own services, by a name in /etc/hosts.
    HostGateway,
    /// Name servers instead of those of the platform.
    DnsServers,
    /// Search domains and options of the resolver.
    DnsSearch,
    /// A port published on the host.
    PublishHost,
    /// A port published as a service.
    PublishService,
    /// Files with text.
    Files,
    /// Files that use the instance's number.
    FileIndex,
    /// Files with a secret.
    FileSecret,
    /// Files that only their owner may read or execute, for a user other than root.
    FileOwner,
    /// Environment variables with a secret.
    EnvSecret,
    /// A secret of kind `env` or `file`, which the user who starts the job provides.
    SecretFromStarter,
    /// A secret in the secret store of the target.
    SecretFromStore,
    /// A bare path of the host.
    VolumePath,
    /// An NFS export.
    VolumeNfs,
    /// An S3 bucket.
    VolumeS3,
    /// A PersistentVolumeClaim.
    VolumePvc,
    /// A file fetched by https.
    VolumeHttps,
    /// A git repository.
    VolumeGit,
    /// A directory that lives as long as the job.
    VolumeJob,
    /// A directory in memory that the tasks of a host share as long as the job lives.
    VolumeJobMemory,
    /// A directory of each instance.
    VolumeInstance,
    /// A directory in memory of each instance.
    VolumeMemory,
    /// A volume that the target provides.
    VolumeTarget,
    /// A directory with code, which goes with the job.
    Code,
    /// A directory of a volume instead of all of it.
    Subpath,
    /// Volume options.
    VolumeOptions,
    /// A role without CPUs or memory.
    NoCpu,
    /// A role without memory.
    NoMemory,
    /// The size of /dev/shm.
    Shm,
    /// Disk space for files.
    Disk,
    /// A limit of processes.
    Pids,
    /// Huge pages.
    Hugepages,
    /// Limits of disk traffic.
    DiskIo,
    /// RDMA devices.
    Rdma,
    /// Device nodes besides GPUs.
    Devices,
    /// setrlimit(2) limits.
    Ulimits,
    /// GPUs of this vendor.
    Gpu(Vendor),
    /// All GPUs of the host.
    GpuAll,
    /// All GPUs hidden.
    GpuNone,
    /// GPUs of a model.
    GpuModel,
    /// GPUs with a minimum memory.
    GpuMemory,
    /// GPUs of a compute capability, CUDA or driver version.
    GpuVersion,
    /// A slice by memory or cores.
    GpuShare,
    /// Turns on whole GPUs.
    GpuTime,
    /// GPUs that are lent by a host.
    GpuGrow,
    /// A slice by MIG profile.
    GpuProfile,
    /// A user other than the image's.
    User,
    /// A working directory other than the image's.
    Workdir,
    /// The image's own command, or arguments for its ENTRYPOINT.
    ImageCommand,
    /// Labels.
    Labels,
    /// A read-only root.
    ReadOnlyRoot,
    /// Linux capabilities.
    LinuxCapabilities,
    /// All privileges.
    Privileged,
    /// The host's own files as the image.
    ImageHost,
    /// The host's own files with parts of the caller's environment.
    ImageHostEnvironment,
    /// An archive or a directory of the host as the image.
    ImageFile,
    /// An image that is built.
    ImageBuild,
    /// Credentials for a registry.
    RegistryLogin,
    /// An elastic rendezvous, which instances can leave and join.
    Elastic,
    /// ssh between instances.
    Ssh,
    /// A time between the stop signal and SIGKILL.
    GracePeriod,
    /// A signal other than SIGTERM that asks an instance to end.
    StopSignal,
}

impl Capability {
    /// Every capability with the fields of a job file that request it, for `jobc backends`.
    pub const TABLE: &'static [(Self, &'static str)] = &[
        (Self::ImageBuild, "image block"),
        (Self::ImageHost, "image: host"),
        (Self::ImageHostEnvironment, "image: {host: {cwd, venv, env}}"),
        (Self::ImageFile, "image: ./PATH"),
        (Self::ImageCommand, "the image's own command"),
        (Self::RegistryLogin, "registries"),
        (Self::Files, "files"),
        (Self::FileIndex, "instance.index in files"),
        (Self::FileSecret, "secrets in files"),
        (Self::FileOwner, "files for the user alone"),
        (Self::EnvSecret, "secrets in env"),
        (Self::SecretFromStarter, "secrets from env or file"),
        (Self::SecretFromStore, "secrets from a store"),
        (Self::VolumePath, "data and outputs: a path"),
        (Self::VolumeNfs, "data and outputs: nfs://"),
        (Self::VolumeS3, "data and outputs: s3://"),
        (Self::VolumePvc, "data and outputs: pvc:"),
        (Self::VolumeHttps, "data: https://"),
        (Self::VolumeGit, "data: git+https://"),
        (Self::VolumeJob, "data: job:"),
        (Self::VolumeJobMemory, "data: job:memory"),
        (Self::VolumeInstance, "data: instance:"),
        (Self::VolumeMemory, "data: memory:"),
        (Self::VolumeTarget, "data and outputs of the target"),
        (Self::Code, "code"),
        (Self::Subpath, "subpath of data and outputs"),
        (Self::VolumeOptions, "options of data and outputs"),
        (Self::NoCpu, "no cpu stated"),
        (Self::NoMemory, "no memory stated"),
        (Self::Shm, "shm"),
        (Self::Disk, "disk"),
        (Self::Pids, "pids"),
        (Self::Hugepages, "hugepages"),
        (Self::DiskIo, "io"),
        (Self::Rdma, "rdma"),
        (Self::Devices, "devices"),
        (Self::Ulimits, "ulimits"),
        (Self::Gpu(Vendor::Nvidia), "gpu: NVIDIA"),
        (Self::Gpu(Vendor::Amd), "gpu: AMD"),
        (Self::Gpu(Vendor::Intel), "gpu: Intel"),
        (Self::Gpu(Vendor::Habana), "gpu: Gaudi"),
        (Self::Gpu(Vendor::Huawei), "gpu: Ascend"),
        (Self::Gpu(Vendor::Cambricon), "gpu: MLU"),
        (Self::Gpu(Vendor::Google), "gpu: TPU"),
        (Self::GpuAll, "gpu: all"),
        (Self::GpuNone, "gpu: 0"),
        (Self::GpuModel, "gpu.model"),
        (Self::GpuMemory, "gpu.memory"),
        (Self::GpuVersion, "gpu.cuda, driver, compute_capability"),
        (Self::GpuShare, "gpu.share by memory or cores"),
        (Self::GpuTime, "gpu.share by time"),
        (Self::GpuGrow, "gpu.share.grow"),
        (Self::GpuProfile, "gpu.share by MIG profile"),
        (Self::Needs(NeedState::Started), "needs: started"),
        (Self::Needs(NeedState::Ready), "needs: ready"),
        (Self::Needs(NeedState::Succeeded), "needs: succeeded"),
        (Self::NeedsMin, "needs with min"),
        (Self::ReadyProbe, "ready by port, http, exec"),
        (Self::ReadyLog, "ready by log"),
        (Self::ReadyKeep, "ready with keep"),
        (Self::MinSucceeded, "completion.min_succeeded"),
        (Self::MinFailed, "completion.min_failed"),
        (Self::Retry(RetryScope::Task), "retry: task"),
        (Self::Retry(RetryScope::Role), "retry: role"),
        (Self::Retry(RetryScope::Job), "retry: job"),
        (Self::RetryExitCodes, "retry.on_exit_codes"),
        (Self::RetryBackoff, "retry.backoff"),
        (Self::RetryDisruptions, "retry.disruptions: ignore"),
        (Self::Priority, "priority"),
        (Self::After, "after"),
        (Self::Notify, "notify"),
        (Self::Idle, "idle"),
        (Self::Schedule, "schedule"),
        (Self::Preflight, "preflight"),
        (Self::Stall, "stall"),
        (Self::ResumeExitCodes, "preemption.exit_codes"),
        (Self::ResumeVariables, "preemption: JOBC_ATTEMPT, JOBC_RESUME"),
        (Self::Budget, "budget.gpu_hours and cost"),
        (Self::BudgetEnergy, "budget.energy"),
        (Self::RetryVerdicts, "retry.on"),
        (Self::RetryMemory, "retry.memory"),
        (Self::JobTimeout, "timeout of the job"),
        (Self::RoleTimeout, "timeout of a role"),
        (Self::GracePeriod, "grace_period"),
        (Self::StopSignal, "stop_signal"),
        (Self::GangRequired, "gang: required"),
        (Self::GangMin, "gang: {min}"),
        (Self::Parallel, "parallel"),
        (Self::MaxParallel, "matrix.max_parallel"),
        (Self::RoleMatrix, "matrix of a role"),
        (Self::RoleMaxParallel, "matrix.max_parallel of a role"),
        (Self::Network(Network::Host), "network: host"),
        (Self::Network(Network::Job), "network: job"),
        (Self::Network(Network::None), "network: none"),
        (Self::ExtraHosts, "extra_hosts"),
        (Self::HostGateway, "extra_hosts: host-gateway"),
        (Self::DnsServers, "dns.servers"),
        (Self::DnsSearch, "dns.search and options"),
        (Self::PublishHost, "ports published on the host"),
        (Self::PublishService, "ports published as a service"),
        (Self::Elastic, "distributed.elastic"),
        (Self::Ssh, "distributed.ssh"),
        (Self::Metrics, "metrics"),
        (Self::User, "user"),
        (Self::Workdir, "workdir"),
        (Self::Labels, "labels"),
        (Self::ReadOnlyRoot, "security.read_only_root"),
        (Self::LinuxCapabilities, "security.capabilities"),
        (Self::Privileged, "security.privileged"),
    ];
}

/// How well a backend supports a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// Exactly.
    Full,
    /// Not in this format, but by the executor of the plan: `jobc run` reads it from plan.json.
    Plan,
    /// Not in these files alone: `jobc submit` provides it. The reason, and the closest alternative.
    Submit(String),
    /// Not exactly: what happens instead; an error unless `--allow-lossy` is given.
    Lossy(String),
    /// Not at all: the reason, and the closest alternative.
    None(String),
}

/// The requests of a job, each with its place, in the order of the file.
pub fn needs(job: &JobPlan) -> Vec<(Capability, Pointer)> {
    let mut found = Vec::new();
    let root = Pointer::ROOT;
    match job.gang {
        GangPlan::Required => found.push((Capability::GangRequired, root.key("gang"))),
        GangPlan::Min(_) => found.push((Capability::GangMin, root.key("gang"))),
        GangPlan::Auto | GangPlan::None => {}
    }
    if job.network != Network::Auto {
        found.push((Capability::Network(job.network), root.key("network")));
    }
    needs_of_names(job, &mut found);
    if job.priority.is_some() {
        found.push((Capability::Priority, root.key("priority")));
    }
    if job.after.is_some() {
        found.push((Capability::After, root.key("after")));
    }
    if !job.notify.is_empty() {
        found.push((Capability::Notify, root.key("notify")));
    }
    if job.idle.is_some() {
        found.push((Capability::Idle, root.key("idle")));
    }
    if job.schedule.is_some() {
        found.push((Capability::Schedule, root.key("schedule")));
    }
    if job.timeout_seconds.is_some() {
        found.push((Capability::JobTimeout, root.key("timeout")));
    }
    if let Some(budget) = &job.budget {
        let at = root.key("budget");
        let limits = [
            (budget.gpu_hours.is_some(), Capability::Budget, "gpu_hours"),
            (budget.cost.is_some(), Capability::Budget, "cost"),
            (budget.energy.is_some(), Capability::BudgetEnergy, "energy"),
        ];
        let set = limits.into_iter().filter(|(is_set, ..)| *is_set);
        found.extend(set.map(|(_, capability, key)| (capability, at.key(key))));
    }
    if job.max_parallel.is_some() {
        found.push((Capability::MaxParallel, root.keys(["matrix", "max_parallel"])));
    }
    for host in job.registries.keys() {
        found.push((Capability::RegistryLogin, root.keys(["registries", host])));
    }
    if job.distributed.as_ref().is_some_and(|d| d.elastic.is_some()) {
        found.push((Capability::Elastic, root.keys(["distributed", "elastic"])));
    }
    if job.distributed.as_ref().is_some_and(|d| d.ssh.is_some()) {
        found.push((Capability::Ssh, root.key("distributed")));
    }
    needs_of_secrets(job, &mut found);
    needs_of_volumes(job, &mut found);
    for image in job.images.values() {
        use jobc_schema::plan::ImageSource;
        match &image.source {
            ImageSource::Host { cwd: false, venv: false, env } if env.is_empty() => {
                found.push((Capability::ImageHost, image.declared_at.clone()));
            }
            ImageSource::Host { .. } => {
                found.push((Capability::ImageHostEnvironment, image.declared_at.key("host")));
            }
            ImageSource::File { .. } => found.push((Capability::ImageFile, image.declared_at.clone())),
            ImageSource::Build { .. } | ImageSource::Dockerfile { .. } => {
                found.push((Capability::ImageBuild, image.declared_at.clone()));
            }
            ImageSource::Reference {} => {}
        }
    }
    // A map, because a job may have thousands of roles that need each other.
    let instances = job.roles.iter().map(|role| (role.name.as_str(), role.instances)).collect();
    for role in &job.roles {
        needs_of_role(&instances, role, &mut found);
        needs_of_preemption(job, role, &mut found);
    }
    found
}

type CapabilityNeeds = Vec<(Capability, Pointer)>;

fn needs_of_names(job: &JobPlan, found: &mut CapabilityNeeds) {
    for (name, address) in &job.extra_hosts {
        let capability =
            if address == HOST_GATEWAY { Capability::HostGateway } else { Capability::ExtraHosts };
        found.push((capability, Pointer::ROOT.keys(["extra_hosts", name])));
    }
    let Some(dns) = &job.dns else { return };
    let settings = [
        (Capability::DnsServers, "servers", &dns.servers),
        (Capability::DnsSearch, "search", &dns.search),
        (Capability::DnsSearch, "options", &dns.options),
    ];
    for (capability, key, _) in settings.into_iter().filter(|(.., values)| !values.is_empty()) {
        found.push((capability, Pointer::ROOT.keys(["dns", key])));
    }
}

fn needs_of_secrets(job: &JobPlan, found: &mut CapabilityNeeds) {
    use jobc_schema::plan::SecretPlan;
    for (name, secret) in &job.secrets {
        let capability = match secret {
            SecretPlan::Env(_) | SecretPlan::File(_) => Capability::SecretFromStarter,
            SecretPlan::Store { .. } => Capability::SecretFromStore,
        };
        found.push((capability, Pointer::ROOT.keys(["secrets", name])));
    }
}

fn needs_of_volumes(job: &JobPlan, found: &mut CapabilityNeeds) {
    for (name, volume) in &job.volumes {
        let at = volume.at(name);
        let capability = match volume.source {
            VolumeSource::Path { .. } => Capability::VolumePath,
            VolumeSource::Nfs { .. } => Capability::VolumeNfs,
            VolumeSource::S3 { .. } => Capability::VolumeS3,
            VolumeSource::Pvc { .. } => Capability::VolumePvc,
            VolumeSource::Https { .. } => Capability::VolumeHttps,
            VolumeSource::Git { .. } => Capability::VolumeGit,
            VolumeSource::Job { in_memory: false } => Capability::VolumeJob,
            VolumeSource::Job { in_memory: true } => Capability::VolumeJobMemory,
            VolumeSource::Memory { .. } => Capability::VolumeMemory,
            VolumeSource::Instance { .. } => Capability::VolumeInstance,
            VolumeSource::Target {} => Capability::VolumeTarget,
            VolumeSource::Code { .. } => Capability::Code,
        };
        let is_whole = matches!(capability, Capability::VolumeTarget | Capability::Code);
        let place = if is_whole { at.clone() } else { at.key("source") };
        found.push((capability, place.clone()));
        if let VolumeSource::Instance { size_bytes: Some(_) } = volume.source {
            // It counts against `disk`.
            found.push((Capability::Disk, place));
        }
        if !volume.options.is_empty() {
            found.push((Capability::VolumeOptions, at.key("options")));
        }
    }
}

fn needs_of_role(instances: &BTreeMap<&str, u32>, role: &RolePlan, found: &mut CapabilityNeeds) {
    use jobc_schema::plan::{CommandPlan, EnvPlan, FileContent, Reference};
    use jobc_schema::progress::is_progress;
    let at = role.at();
    if let Some(matrix) = &role.matrix {
        found.push((Capability::RoleMatrix, at.key("matrix")));
        if matrix.max_parallel.is_some() {
            found.push((Capability::RoleMaxParallel, at.keys(["matrix", "max_parallel"])));
        }
    }
    // The place of a lossy answer about both is that of the metrics.
    if role.metrics.keys().any(|name| !is_progress(name)) {
        found.push((Capability::Metrics, at.key("metrics")));
    } else if !role.metrics.is_empty() {
        found.push((Capability::Metrics, at.key("progress")));
    }
    for mount in role.mounts.iter().filter(|mount| mount.subpath.is_some()) {
        found.push((Capability::Subpath, at.keys(["outputs", &mount.volume, "subpath"])));
    }
    for need in &role.needs {
        let place = at.keys(["needs", &need.role]);
        found.push((Capability::Needs(need.state), place.clone()));
        if instances.get(need.role.as_str()).is_some_and(|all| need.min < *all) {
            found.push((Capability::NeedsMin, place));
        }
    }
    if let Some(ready) = &role.ready {
        let capability = if matches!(ready.probe, ProbePlan::Log(_)) {
            Capability::ReadyLog
        } else {
            Capability::ReadyProbe
        };
        found.push((capability, at.key("ready")));
        if ready.keep {
            found.push((Capability::ReadyKeep, at.keys(["ready", "keep"])));
        }
    }
    if role.completion.min_succeeded.is_some() {
        found.push((Capability::MinSucceeded, at.keys(["completion", "min_succeeded"])));
    }
    if role.completion.min_failed != Some(1) {
        found.push((Capability::MinFailed, at.keys(["completion", "min_failed"])));
    }
    if role.retry.max > 0 || role.retry.disruptions == Disruptions::Ignore {
        found.push((Capability::Retry(role.retry.scope), at.key("retry")));
    }
    if role.retry.max > 0 {
        if role.retry.has_final_codes() && role.retry.codes_key() != "on" {
            found.push((Capability::RetryExitCodes, at.keys(["retry", role.retry.codes_key()])));
        }
        if !role.retry.on.is_empty() {
            found.push((Capability::RetryVerdicts, at.keys(["retry", "on"])));
        }
        if !role.retry.memory_bytes.is_empty() {
            found.push((Capability::RetryMemory, at.keys(["retry", "memory"])));
        }
        if role.retry.backoff_seconds.is_some() {
            found.push((Capability::RetryBackoff, at.keys(["retry", "backoff"])));
        }
    }
    if !role.preflight.is_empty() {
        found.push((Capability::Preflight, at.key("preflight")));
    }
    if role.stall.is_some() {
        found.push((Capability::Stall, at.key("stall")));
    }
    if role.timeout_seconds.is_some() {
        found.push((Capability::RoleTimeout, at.key("timeout")));
    }
    if role.grace_period_seconds != 30 {
        found.push((Capability::GracePeriod, at.key("grace_period")));
    }
    if role.stop_signal.is_some() {
        found.push((Capability::StopSignal, at.key("stop_signal")));
    }
    if role.parallel.is_some_and(|n| n < role.instances) {
        found.push((Capability::Parallel, at.key("parallel")));
    }
    for port in &role.ports {
        let place = at.keys(["resources", "ports", &port.label]);
        match port.publish {
            Publish::None => {}
            Publish::Host => found.push((Capability::PublishHost, place)),
            Publish::Service => found.push((Capability::PublishService, place)),
        }
    }
    let has_user =
        role.user.as_deref().is_some_and(|user| !matches!(user.split(':').next(), Some("0" | "root")));
    for file in &role.files {
        let place = at.keys(["files", &file.path]);
        if has_user && !file.is_for_all() {
            found.push((Capability::FileOwner, place.key("mode")));
        }
        match &file.content {
            FileContent::Secret { .. } => found.push((Capability::FileSecret, place)),
            FileContent::Text(text) => {
                if text.references().any(|r| matches!(r, Reference::Index {} | Reference::Rank { .. })) {
                    found.push((Capability::FileIndex, place.clone()));
                }
                found.push((Capability::Files, place));
            }
        }
    }
    for (name, value) in &role.env {
        if matches!(value, EnvPlan::Secret { .. }) {
            found.push((Capability::EnvSecret, at.keys(["env", name])));
        }
    }
    if matches!(role.command, CommandPlan::Image {} | CommandPlan::Args(_)) {
        found.push((Capability::ImageCommand, at.clone()));
    }
    if role.user.is_some() {
        found.push((Capability::User, at.key("user")));
    }
    if role.workdir.is_some() {
        found.push((Capability::Workdir, at.key("workdir")));
    }
    if !role.labels.is_empty() {
        found.push((Capability::Labels, at.key("labels")));
    }
    let security = at.key("security");
    if role.security.read_only_root {
        found.push((Capability::ReadOnlyRoot, security.key("read_only_root")));
    }
    if role.security.capabilities.is_some() {
        found.push((Capability::LinuxCapabilities, security.key("capabilities")));
    }
    if role.security.privileged {
        found.push((Capability::Privileged, security.key("privileged")));
    }
    needs_of_resources(role, &at.key("resources"), found);
}

/// What a role needs to be resumed after disruptions; `preemption` implies that they do not count.
fn needs_of_preemption(job: &JobPlan, role: &RolePlan, found: &mut CapabilityNeeds) {
    let at = Pointer::ROOT.key("preemption");
    if role.retry.disruptions == Disruptions::Ignore {
        let at = if job.preemption.is_some() { at.clone() } else { role.at().keys(["retry", "disruptions"]) };
        found.push((Capability::RetryDisruptions, at));
    }
    let Some(preemption) = &job.preemption else { return };
    if !preemption.exit_codes.is_empty() {
        found.push((Capability::ResumeExitCodes, at.key("exit_codes")));
    }
    if [ATTEMPT, RESUME].into_iter().any(|name| role.provided_env.contains_key(name)) {
        found.push((Capability::ResumeVariables, at));
    }
}

fn needs_of_resources(role: &RolePlan, at: &Pointer, found: &mut CapabilityNeeds) {
    let resources = &role.resources;
    let mut ask = |wanted: bool, capability: Capability, key: &str| {
        if wanted {
            found.push((capability, at.key(key)));
        }
    };
    ask(resources.cpu_millis.is_none(), Capability::NoCpu, "cpu");
    ask(resources.memory_bytes.is_none(), Capability::NoMemory, "memory");
    ask(resources.shm_bytes.is_some(), Capability::Shm, "shm");
    ask(resources.disk_bytes.is_some(), Capability::Disk, "disk");
    ask(resources.pids.is_some(), Capability::Pids, "pids");
    ask(!resources.hugepages_bytes.is_empty(), Capability::Hugepages, "hugepages");
    ask(!resources.io.is_empty(), Capability::DiskIo, "io");
    ask(resources.rdma.is_some_and(|n| n > 0), Capability::Rdma, "rdma");
    for number in 0..resources.devices.len() {
        found.push((Capability::Devices, at.key("devices").index(number)));
    }
    let mut ask = |wanted: bool, capability: Capability, key: &str| {
        if wanted {
            found.push((capability, at.key(key)));
        }
    };
    ask(!resources.ulimits.is_empty(), Capability::Ulimits, "ulimits");
    let Some(gpu) = &resources.gpu else { return };
    let at = at.key("gpu");
    match gpu.amount() {
        GpuAmount::Hidden => return found.push((Capability::GpuNone, at)),
        GpuAmount::All => return found.push((Capability::GpuAll, at)),
        GpuAmount::AllOf(_) => found.push((Capability::GpuAll, at.clone())),
        GpuAmount::Count(_) => {}
    }
    found.push((Capability::Gpu(gpu.vendor), at.clone()));
    let mut ask = |wanted: bool, capability: Capability, key: &str| {
        if wanted {
            found.push((capability, at.key(key)));
        }
    };
    ask(!gpu.models.is_empty(), Capability::GpuModel, "model");
    ask(gpu.memory_bytes.is_some(), Capability::GpuMemory, "memory");
    ask(gpu.compute_capability.is_some(), Capability::GpuVersion, "compute_capability");
    ask(gpu.cuda.is_some(), Capability::GpuVersion, "cuda");
    ask(gpu.driver.is_some(), Capability::GpuVersion, "driver");
    if let Some(share) = &gpu.share {
        ask(share.profile.is_some(), Capability::GpuProfile, "share");
        ask(share.profile.is_none() && !share.time, Capability::GpuShare, "share");
        if share.time {
            found.push((Capability::GpuTime, at.key("share").key("time")));
        }
    }
    if gpu.grow.is_some() {
        found.push((Capability::GpuGrow, at.key("share").key("grow")));
    }
}
