//! The smallest job that requests a capability, so that the result is that of a build of such a job.

use jobc_compiler::backend::Capability;
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_schema::gpu::Vendor;
use jobc_schema::job::Network;
use jobc_schema::role::{NeedState, RetryScope};
use serde_json::{Value, json};

/// The name of the data of such a job; targets that provide it name it.
pub(super) const DATA: &str = "d";
/// The name of the role that requests it.
pub(super) const ROLE: &str = "a";

/// A job of two roles that requests one feature besides CPUs and memory.
pub(super) fn job(capability: Capability) -> Value {
    let mut job = json!({
        "version": 1,
        "name": "example",
        "image": "busybox:1.36",
        "roles": {
            ROLE: {"run": ["true"], "instances": 2, "resources": {"cpu": 1, "memory": "1GiB"}},
            "b": {"run": ["true"], "resources": {"cpu": 1, "memory": "1GiB"}},
        },
    });
    if matches!(capability, Capability::NoCpu | Capability::NoMemory) {
        let without = if capability == Capability::NoCpu { "cpu" } else { "memory" };
        job["roles"][ROLE]["resources"].as_object_mut().expect("a map").remove(without);
    }
    merge(&mut job, whole(capability));
    merge(&mut job["roles"][ROLE], role(capability));
    merge(&mut job["roles"][ROLE], json!({"resources": resources(capability)}));
    if capability == Capability::NeedsMin {
        job["roles"]["b"]["instances"] = json!(2);
    }
    if capability == Capability::GpuAll {
        job["roles"][ROLE]["instances"] = json!(1);
    }
    if capability == Capability::Needs(NeedState::Ready) {
        job["roles"]["b"]["ready"] = json!({"exec": ["true"]});
    }
    job
}

/// The requests at the top of the job.
fn whole(capability: Capability) -> Value {
    let data = |source: &str| json!({"data": {DATA: {"source": source, "mount": "/d"}}});
    let secret = json!({"s": {"env": "S"}});
    match capability {
        Capability::ImageBuild => json!({"image": {"from": "debian:12", "apt": ["git"]}}),
        Capability::ImageHost => json!({"image": "host"}),
        Capability::ImageHostEnvironment => json!({"image": {"host": {"cwd": true}}}),
        Capability::ImageFile => json!({"image": "./rootfs.tar"}),
        Capability::RegistryLogin => json!({
            "registries": {"example.com": {"username": "u", "password": {"secret": "s"}}}, "secrets": secret
        }),
        Capability::FileSecret | Capability::EnvSecret | Capability::SecretFromStarter => {
            json!({"secrets": secret})
        }
        Capability::SecretFromStore => json!({"secrets": {"s": {"store": {"name": "n", "key": "k"}}}}),
        Capability::VolumePath => data("/d"),
        Capability::VolumeNfs => data("nfs://nas/d"),
        Capability::VolumeS3 => data("s3://bucket/d"),
        Capability::VolumePvc => data("pvc:d"),
        Capability::VolumeHttps => data("https://example.com/d"),
        Capability::VolumeGit => data("git+https://example.com/d"),
        Capability::VolumeTarget => json!({"data": {DATA: {"mount": "/d"}}}),
        Capability::VolumeInstance => {
            json!({"data": {DATA: {"source": "instance:", "mount": "/d", "writable": true}}})
        }
        Capability::VolumeMemory => {
            json!({"data": {DATA: {"source": "memory:1MiB", "mount": "/d", "writable": true}}})
        }
        Capability::VolumeJobMemory => {
            json!({"data": {DATA: {"source": "job:memory", "mount": "/d", "writable": true}}})
        }
        Capability::ExtraHosts => json!({"extra_hosts": {"db.lab": "10.0.0.7"}}),
        Capability::HostGateway => json!({"extra_hosts": {"host.lab": "host-gateway"}}),
        Capability::DnsServers => json!({"dns": {"servers": ["10.0.0.2"]}}),
        Capability::DnsSearch => json!({"dns": {"search": ["corp.example.com"]}}),
        Capability::Code => json!({"code": "."}),
        Capability::VolumeJob => json!({"data": {DATA: {"source": "job:", "mount": "/d", "writable": true}}}),
        Capability::Elastic => json!({
            "distributed": {"framework": "torchrun", "roles": [ROLE], "elastic": {"min": 1, "max": 2}},
            "retry": {"max": 1},
        }),
        Capability::VolumeOptions => {
            json!({"data": {DATA: {"source": "nfs://nas/d", "mount": "/d", "options": {"vers": "4"}}}})
        }
        Capability::Priority => json!({"priority": -1}),
        Capability::After => json!({"after": "22:00"}),
        Capability::Notify => json!({"notify": [{"on": ["failed"], "run": "true"}]}),
        Capability::Idle => json!({"idle": {"after": "1h"}, "roles": {ROLE: {"resources": {"gpu": 1}}}}),
        Capability::Schedule => json!({"schedule": {"cron": "0 3 * * *"}}),
        Capability::ResumeExitCodes => json!({"preemption": {"exit_codes": [85]}}),
        Capability::ResumeVariables => json!({"preemption": {}}),
        Capability::Budget => {
            json!({"budget": {"gpu_hours": 1}, "roles": {ROLE: {"resources": {"gpu": 1}}}})
        }
        Capability::BudgetEnergy => json!({"budget": {"energy": "1kWh"}}),
        Capability::JobTimeout => json!({"timeout": "1h"}),
        Capability::Retry(RetryScope::Job) => json!({"retry": {"max": 1, "scope": "job"}}),
        Capability::GangRequired => json!({"gang": "required"}),
        Capability::GangMin => json!({"gang": {"min": 2}}),
        Capability::MaxParallel => json!({"matrix": {"axes": {"x": [1, 2]}, "max_parallel": 1}}),
        Capability::Metrics => json!({"metrics": {"loss": {"log": "loss=([0-9.]+)"}}}),
        Capability::Subpath => json!({"outputs": {DATA: {"source": "/d", "mount": "/d"}}}),
        Capability::Network(Network::Host) => json!({"network": "host"}),
        Capability::Network(Network::Job) => json!({"network": "job"}),
        Capability::Network(Network::None) => json!({"network": "none"}),
        Capability::Ssh => json!({"distributed": {"framework": "mpi", "roles": [ROLE], "ssh": true}}),
        _ => json!({}),
    }
}

/// The requests of the role.
fn role(capability: Capability) -> Value {
    let needs = |state: &str| json!({"needs": {"b": state}});
    match capability {
        Capability::ImageCommand => json!({"run": null}),
        Capability::Elastic => json!({"run": ["torchrun", "train.py"]}),
        Capability::RoleMatrix => json!({"matrix": {"x": [1, 2]}}),
        Capability::RoleMaxParallel => json!({"matrix": {"axes": {"x": [1, 2]}, "max_parallel": 1}}),
        Capability::Subpath => json!({"outputs": {DATA: {"subpath": "s"}}}),
        Capability::Files => json!({"files": {"/f": {"content": "x"}}}),
        Capability::FileIndex => json!({"files": {"/f": {"content": "${{ instance.index }}"}}}),
        Capability::FileOwner => {
            json!({"user": "1000:1000", "files": {"/f": {"content": "x", "mode": "0600"}}})
        }
        Capability::FileSecret => json!({"files": {"/f": {"secret": "s"}}}),
        Capability::EnvSecret | Capability::SecretFromStarter | Capability::SecretFromStore => {
            json!({"env": {"S": "${{ secrets.s }}"}})
        }
        Capability::Needs(NeedState::Started) => needs("started"),
        Capability::Needs(NeedState::Succeeded) => needs("succeeded"),
        Capability::Needs(NeedState::Ready) => needs("ready"),
        Capability::NeedsMin => json!({"needs": {"b": {"state": "succeeded", "min": 1}}}),
        Capability::ReadyProbe => json!({"ready": {"exec": ["true"]}}),
        Capability::ReadyLog => json!({"ready": {"log": "ready"}}),
        Capability::ReadyKeep => json!({"ready": {"exec": ["true"], "keep": true}}),
        Capability::MinSucceeded => json!({"completion": {"min_succeeded": 1}}),
        Capability::MinFailed => json!({"completion": {"min_failed": 2}}),
        Capability::Retry(RetryScope::Task) => json!({"retry": {"max": 1, "scope": "task"}}),
        Capability::Retry(RetryScope::Role) => json!({"retry": {"max": 1, "scope": "role"}}),
        Capability::RetryExitCodes => json!({"retry": {"max": 1, "on_exit_codes": [3]}}),
        Capability::Preflight => json!({"preflight": [{"disk": "1GiB"}]}),
        Capability::Stall => json!({"stall": {"after": "10m"}}),
        Capability::ResumeVariables => json!({"run": "train --resume \"$JOBC_RESUME\""}),
        Capability::RetryVerdicts => json!({"retry": {"max": 1, "on": ["node", "preempted"]}}),
        Capability::RetryMemory => {
            json!({"resources": {"cpu": 1, "memory": "1GiB"}, "retry": {"max": 1, "memory": 1.5}})
        }
        Capability::RetryBackoff => json!({"retry": {"max": 1, "backoff": "10s"}}),
        Capability::RetryDisruptions => {
            json!({"retry": {"max": 0, "scope": "task", "disruptions": "ignore"}})
        }
        Capability::RoleTimeout => json!({"timeout": "1h"}),
        Capability::GracePeriod => json!({"grace_period": "10s"}),
        Capability::StopSignal => json!({"stop_signal": "SIGUSR1"}),
        Capability::Parallel => json!({"parallel": 1}),
        Capability::User => json!({"user": "1000:1000"}),
        Capability::Workdir => json!({"workdir": "/w"}),
        Capability::Labels => json!({"labels": {"team": "x"}}),
        Capability::ReadOnlyRoot => json!({"security": {"read_only_root": true}}),
        Capability::LinuxCapabilities => json!({"security": {"capabilities": {"add": ["SYS_NICE"]}}}),
        Capability::Privileged => json!({"security": {"privileged": true}}),
        _ => json!({}),
    }
}

/// The requests in `resources` of the role.
fn resources(capability: Capability) -> Value {
    let gpu = |more: Value| {
        let mut gpu = json!({"count": 1});
        merge(&mut gpu, more);
        json!({"gpu": gpu})
    };
    match capability {
        Capability::Shm => json!({"shm": "64MiB"}),
        Capability::Disk => json!({"disk": "1GiB"}),
        Capability::Pids => json!({"pids": 100}),
        Capability::Hugepages => json!({"hugepages": {"2MiB": "2MiB"}}),
        Capability::DiskIo => json!({"io": {"259:0": {"read": "1MB"}}}),
        Capability::Rdma => json!({"rdma": 1}),
        Capability::Devices => json!({"devices": ["/dev/fuse"]}),
        Capability::Ulimits => json!({"ulimits": {"nofile": 1024}}),
        Capability::PublishHost => json!({"ports": {"p": {"port": 80, "publish": "host"}}}),
        Capability::PublishService => json!({"ports": {"p": {"port": 80, "publish": "service"}}}),
        Capability::Gpu(Vendor::Nvidia) => gpu(json!({})),
        Capability::Gpu(vendor) => gpu(json!({"vendor": vendor})),
        Capability::GpuNone => json!({"gpu": 0}),
        Capability::GpuAll => json!({"gpu": "all"}),
        Capability::GpuModel => gpu(json!({"model": "A100"})),
        Capability::GpuMemory => gpu(json!({"memory": "40GB"})),
        Capability::GpuVersion => gpu(json!({"cuda": "12.4"})),
        Capability::GpuShare => gpu(json!({"share": {"memory": "10GiB"}})),
        Capability::GpuProfile => gpu(json!({"share": {"profile": "1g.10gb"}})),
        _ => json!({}),
    }
}

/// Puts the entries of one map into another; `null` removes.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if value.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// The built-in targets, and a plain one for Slurm, which has none.
pub(super) fn plain() -> Value {
    let mut targets = json!({"slurm": {"backends": ["slurm"], "slurm": {"container": "none"}}});
    for (name, target) in built_in_targets() {
        targets[name] = json!(target);
    }
    targets
}

/// Targets with settings that a plain target lacks, each with the backend that uses them.
pub(super) fn equipped() -> Value {
    let kubernetes = |settings: Value| json!({"backends": ["kubernetes"], "registry": "example.com/team", "kubernetes": settings});
    let slurm = |mut settings: Value| {
        let more = json!({
            "exclusive": true,
            "images": "/images",
            "storage": {DATA: "/data"},
            "gpu_features": {"A100-80GB": "a100"},
            "gpu_types": {"1g.10gb": "1g.10gb"},
        });
        merge(&mut settings, more);
        json!({
            "backends": ["slurm"],
            "gpus": {"driver": "570.0", "cards": [{"model": "A100-80GB", "count": 8}]},
            "slurm": settings,
        })
    };
    let provider = |name: &str| kubernetes(json!({"gpu": {"provider": name}}));
    json!({
        "local": {"backends": ["dockerfile", "oci", "cgroup"], "registry": "example.com/team"},
        "host": {"backends": ["oci"], "gpus": {"cards": [{"model": "A100-80GB", "count": 8}]}},
        "cluster": kubernetes(json!({
            "queue": {"kueue": "q"}, "storage": {DATA: {"pvc": "d"}}, "rdma": "rdma/hca",
            "devices": {"/dev/fuse": "github.com/fuse"}
        })),
        "hami": provider("hami"),
        "mig": provider("nvidia-mig-mixed"),
        "amd": provider("amd"),
        "intel": provider("intel"),
        "gaudi": provider("gaudi"),
        "ascend": provider("ascend"),
        "cambricon": provider("cambricon"),
        "tpu": provider("tpu"),
        "pai": {
            "backends": ["openpai"],
            "registry": "example.com/team",
            "openpai": {
                "storages": [{"name": "s", "provides": DATA}], "roles": {ROLE: {"sku_type": "V100"}}
            },
        },
        "slurm": slurm(json!({"container": "none"})),
        "pyxis": slurm(json!({"container": "pyxis"})),
        "apptainer": slurm(json!({"container": "apptainer"})),
    })
}

#[cfg(test)]
mod tests {
    use jobc_compiler::backend::capability;

    use super::super::{Selection, plans};
    use super::*;

    #[test]
    fn every_capability_is_requested() {
        for (wanted, words) in Capability::TABLE {
            for ask in [Selection::BuiltIn, Selection::Equipped] {
                let found = plans(&job(*wanted), &ask).map_err(|(_, sink)| sink.finish());
                let jobs = found.unwrap_or_else(|findings| panic!("{words}: {findings:?}"));
                let needed = |job| capability::needs(job).iter().any(|(needed, _)| needed == wanted);
                assert!(jobs.iter().all(needed), "{words} is not asked for");
            }
        }
    }
}
