//! The keys of a service of Compose, and what becomes of each (compose-spec `05-services.md`).

use super::super::options::Argument::Required;
use super::super::options::Becomes::{self, Field, Note, Refusal};
use super::super::options::{CommandOption, row};

const ENGINE: &str = "a setting of the engine";
const RECORDS: &str = "jobc keeps the output of each task: `jobc logs` prints it";

const fn key(name: &'static str, becomes: Becomes) -> CommandOption {
    row(name, ' ', Required, becomes)
}

/// The keys, by name.
pub(in super::super) static KEYS: &[CommandOption] = &[
    key("annotations", Note(ENGINE)),
    key("attach", Note(RECORDS)),
    key(
        "blkio_config",
        Refusal("limits of disk traffic", "write `resources: {io: {/dev/nvme0n1: {read: 500MB}}}`"),
    ),
    key("build", Field("`image: {dockerfile, context, target, args}`")),
    key("cap_add", Field("`security.capabilities.add`")),
    key("cap_drop", Field("`security.capabilities.drop`")),
    key("cgroup", Note(ENGINE)),
    key("cgroup_parent", Note("jobc decides where cgroups are")),
    key("command", Field("`args`, or the end of `run` beside `entrypoint`")),
    key("configs", Field("`files`")),
    key("container_name", Note("an instance is called ROLE-INDEX")),
    key("cpu_count", Field("`resources.cpu`")),
    key("cpu_percent", Note("of Windows")),
    key("cpu_period", Refusal("a limit of CPUs in parts", "request them by `cpus`")),
    key("cpu_quota", Refusal("a limit of CPUs in parts", "request them by `cpus`")),
    key("cpu_rt_period", Refusal("real-time CPUs", "leave it out")),
    key("cpu_rt_runtime", Refusal("real-time CPUs", "leave it out")),
    key("cpu_shares", Refusal("a share of CPUs", "request them by `cpus`, which is request and limit")),
    key("cpus", Field("`resources.cpu`")),
    key("cpuset", Refusal("certain CPUs", "request a number by `cpus`; jobc chooses the CPUs near the GPUs")),
    key("credential_spec", Refusal("accounts of Windows", "leave it out")),
    key("depends_on", Field("`needs`")),
    key("deploy", Field("`instances`, `resources`, `retry`")),
    key("develop", Note("of `docker compose watch`")),
    key("device_cgroup_rules", Refusal("a rule for devices", "name the device in `devices`")),
    key("devices", Field("`resources.devices`; GPUs as `resources.gpu`")),
    key("dns", Field("`dns.servers`")),
    key("dns_opt", Field("`dns.options`")),
    key("dns_search", Field("`dns.search`")),
    key("domainname", Note("an instance is called ROLE-INDEX")),
    key("driver_opts", Note(ENGINE)),
    key("entrypoint", Field("`run`")),
    key("env_file", Field("`env`, with the lines of the file")),
    key("environment", Field("`env`; without a value `secrets`")),
    key("expose", Note("instances of a job reach all ports of each other")),
    key("extends", Field("the keys of the other service in the same file")),
    key("external_links", Field("nothing: the other containers are not part of the job")),
    key("extra_hosts", Field("`extra_hosts`")),
    key("gpus", Field("`resources.gpu`")),
    key("group_add", Field("nothing beside GPUs of AMD and Intel, else an error")),
    key("healthcheck", Field("`ready`")),
    key("hostname", Note("an instance is called ROLE-INDEX")),
    key("image", Field("`image`")),
    key("init", Note("the default")),
    key("ipc", Field("nothing: write `shm_size` for shared memory")),
    key("isolation", Note("of Windows")),
    key(
        "labels",
        Note("of other programs that read the engine's labels; `labels` of a role are for targets"),
    ),
    key("links", Note("roles reach each other by name")),
    key("logging", Note(RECORDS)),
    key("mac_address", Note("instances find each other by name")),
    key("mem_limit", Field("`resources.memory`")),
    key("mem_reservation", Note("`memory` is request and limit")),
    key("mem_swappiness", Note("a job has no swap")),
    key("memswap_limit", Note("a job has no swap")),
    key(
        "models",
        Refusal(
            "a model that Docker runs",
            "write a role that serves it; `jobc std show vllm-serve` has one",
        ),
    ),
    key("network_mode", Field("`network`: `host` and `none`")),
    key("networks", Field("`network: job`, one for all")),
    key("oom_kill_disable", Refusal("the kernel's out-of-memory killer stays on", "write more memory")),
    key("oom_score_adj", Refusal("the kernel's choice whom to kill", "leave it out")),
    key("pid", Refusal("processes of others are visible", "leave it out; `jobc exec` enters a task")),
    key("pids_limit", Field("`resources.pids`")),
    key("platform", Note("jobc takes the image of the platform of the host")),
    key("ports", Field("`resources.ports`, with `publish: host`")),
    key("post_start", Refusal("a command beside the container", "write it in `run`")),
    key(
        "pre_start",
        Refusal("a command before the container", "write it as `setup`, which runs before `run`"),
    ),
    key(
        "pre_stop",
        Refusal("a command before the end", "catch the signal in the program: `stop_signal`, `grace_period`"),
    ),
    key("privileged", Field("`security.privileged`")),
    key("profiles", Field("nothing: services with a profile are left out, if others have none")),
    key("provider", Refusal("a service outside of containers", "leave it out")),
    key("pull_policy", Note("`jobc image pull` and `jobc lock` decide which image is taken")),
    key("read_only", Field("`security.read_only_root`")),
    key("restart", Field("`retry` for `on-failure[:N]`; a job ends otherwise")),
    key("runtime", Field("`resources.gpu` for `nvidia`")),
    key("scale", Field("`instances`")),
    key("secrets", Field("`files`, with `secrets`")),
    key("security_opt", Field("nothing: the profiles are those of jobc")),
    key("shm_size", Field("`resources.shm`")),
    key("stdin_open", Note("`jobc run -it` and `jobc exec -it` give a terminal")),
    key("stop_grace_period", Field("`grace_period`")),
    key("stop_signal", Field("`stop_signal`")),
    key(
        "storage_opt",
        Refusal("settings of the engine's storage", "write `resources: {disk: 100GiB}` in a job file"),
    ),
    key("sysctls", Refusal("settings of the kernel", "leave them out, or set them on the host")),
    key("tmpfs", Field("`data`, with `source: memory:SIZE`; without a size `instance:`")),
    key("tty", Note("`jobc run -it` and `jobc exec -it` give a terminal")),
    key("ulimits", Field("`resources.ulimits`")),
    key(
        "use_api_socket",
        Refusal("the socket of Docker", "a job starts no containers; write a role for each"),
    ),
    key("user", Field("`user`")),
    key("userns_mode", Note("a job's namespaces are its own")),
    key("uts", Note("a job's namespaces are its own")),
    key("volumes", Field("`data`; named volumes `outputs`")),
    key("volumes_from", Refusal("the volumes of another service", "write `volumes` in each")),
    key("working_dir", Field("`workdir`")),
];

#[cfg(test)]
mod tests {
    use super::KEYS;

    #[test]
    fn names_are_sorted() {
        assert!(KEYS.windows(2).all(|pair| pair[0].long < pair[1].long));
    }
}
