//! The options of `docker run` and `podman run`, and what becomes of each.
//!
//! Names and arguments are those of docker/cli 27 `cli/command/container/opts.go` and of podman-run(1) 5.

use super::super::options::Argument::{self, None, Required};
use super::super::options::Becomes::{Field, Note, Refusal};
use super::super::options::{CommandOption, row};

const TERMINAL: &str = "`jobc run -it` and `jobc exec -it` give a terminal";
const LIFE: &str = "jobc keeps its own records of a job: `jobc ps`, `jobc logs`, `jobc rm`";
const NAMESPACE: &str = "a job's namespaces are its own";
const IMAGES: &str = "`jobc image pull` and `jobc lock` decide which image is taken";

/// A switch.
const fn flag(long: &'static str, why: &'static str) -> CommandOption {
    row(long, ' ', None, Note(why))
}

const fn field(long: &'static str, short: char, argument: Argument, what: &'static str) -> CommandOption {
    row(long, short, argument, Field(what))
}

const fn refused(long: &'static str, what: &'static str, instead: &'static str) -> CommandOption {
    row(long, ' ', Required, Refusal(what, instead))
}

/// The options, by name.
pub(in super::super) static OPTIONS: &[CommandOption] = &[
    field("add-host", ' ', Required, "`extra_hosts`"),
    row("annotation", ' ', Required, Note(LIFE)),
    row("attach", 'a', Required, Note(TERMINAL)),
    refused(
        "blkio-weight",
        "a share of disk traffic",
        "write limits: `resources: {io: {/dev/nvme0n1: {read: 500MB}}}`",
    ),
    field("cap-add", ' ', Required, "`security.capabilities.add`"),
    field("cap-drop", ' ', Required, "`security.capabilities.drop`"),
    row("cgroup-parent", ' ', Required, Note("jobc decides where cgroups are")),
    row("cgroupns", ' ', Required, Note(NAMESPACE)),
    row("cidfile", ' ', Required, Note(LIFE)),
    refused("cpu-period", "a limit of CPUs in parts", "request them by `--cpus`"),
    refused("cpu-quota", "a limit of CPUs in parts", "request them by `--cpus`"),
    row(
        "cpu-shares",
        'c',
        Required,
        Refusal("a share of CPUs", "request them by `--cpus`, which is request and limit"),
    ),
    field("cpus", ' ', Required, "`resources.cpu`"),
    refused(
        "cpuset-cpus",
        "certain CPUs",
        "request a number by `--cpus`; jobc chooses the CPUs near the GPUs",
    ),
    refused("cpuset-mems", "certain memory nodes", "leave it out; jobc chooses memory near the GPUs"),
    row("detach", 'd', None, Note("`jobc run -d` starts a job in the background")),
    row("detach-keys", ' ', Required, Note(TERMINAL)),
    field("device", ' ', Required, "`resources.devices`; GPUs as `resources.gpu`"),
    refused("device-cgroup-rule", "a rule for devices", "name the device by `--device`"),
    flag("disable-content-trust", IMAGES),
    field("dns", ' ', Required, "`dns.servers`"),
    field("dns-option", ' ', Required, "`dns.options`"),
    field("dns-search", ' ', Required, "`dns.search`"),
    field("entrypoint", ' ', Required, "`run`, with the words behind the image"),
    field(
        "env",
        'e',
        Required,
        "`env`; without a value `secrets`; `NVIDIA_VISIBLE_DEVICES` is `resources.gpu`",
    ),
    field("env-file", ' ', Required, "`env`, with the lines of the file"),
    row("expose", ' ', Required, Note("instances of a job reach all ports of each other")),
    field("gpus", ' ', Required, "`resources.gpu`"),
    field("group-add", ' ', Required, "nothing beside GPUs of AMD and Intel, else an error"),
    field("health-cmd", ' ', Required, "`ready.exec`"),
    field("health-interval", ' ', Required, "`ready.every`"),
    row("health-retries", ' ', Required, Note("`ready` is tried until its `timeout`")),
    row("health-start-interval", ' ', Required, Note("`ready.every` is the time between all checks")),
    field("health-start-period", ' ', Required, "`ready.delay`"),
    field("health-timeout", ' ', Required, "`ready.try_timeout`"),
    row("hooks-dir", ' ', Required, Note("settings of the engine")),
    row("hostname", 'h', Required, Field("nothing: an instance is called ROLE-INDEX")),
    flag("init", "the default"),
    row("interactive", 'i', None, Note(TERMINAL)),
    refused("ip", "a fixed address", "instances find each other by name: `${{ hosts.main[0] }}`"),
    row("ipc", ' ', Required, Field("nothing: write `shm` for shared memory")),
    row("isolation", ' ', Required, Note("of Windows")),
    field("label", 'l', Required, "`labels`"),
    refused("label-file", "labels in a file", "write `--label` for each"),
    refused(
        "link",
        "a link to another container",
        "write a role for each container; roles reach each other by name",
    ),
    row("log-driver", ' ', Required, Note(LIFE)),
    row("log-opt", ' ', Required, Note(LIFE)),
    row("mac-address", ' ', Required, Note("instances find each other by name")),
    field("memory", 'm', Required, "`resources.memory`"),
    row("memory-reservation", ' ', Required, Note("`memory` is request and limit")),
    field(
        "memory-swap",
        ' ',
        Required,
        "nothing where it equals `--memory`, else an error: a job has no swap",
    ),
    row("memory-swappiness", ' ', Required, Note("a job has no swap")),
    field("mount", ' ', Required, "`data`, `outputs`"),
    field("name", ' ', Required, "`name`"),
    field("network", ' ', Required, "`network`: `host` and `none`; another network is `job`"),
    refused("network-alias", "another name in a network", "use the name of the role"),
    flag("no-healthcheck", "only `ready` of a job file checks anything"),
    flag("no-hosts", "jobc writes /etc/hosts"),
    row(
        "oom-kill-disable",
        ' ',
        None,
        Refusal("the kernel's out-of-memory killer stays on", "write more `memory`"),
    ),
    refused("oom-score-adj", "the kernel's choice whom to kill", "leave it out"),
    row(
        "pid",
        ' ',
        Required,
        Refusal("processes of others are visible", "leave it out; `jobc exec` enters a task"),
    ),
    field("pids-limit", ' ', Required, "`resources.pids`"),
    row(
        "platform",
        ' ',
        Required,
        Note("jobc takes the image of the platform of the host; `image: {platform: …}` names another"),
    ),
    field("privileged", ' ', None, "`security.privileged`"),
    field("publish", 'p', Required, "`resources.ports`, with `publish: host`"),
    row("publish-all", 'P', None, Refusal("all ports of the image", "write `-p PORT` for each")),
    row("pull", ' ', Required, Note(IMAGES)),
    flag("quiet", LIFE),
    field("read-only", ' ', None, "`security.read_only_root`"),
    flag("replace", LIFE),
    field("restart", ' ', Required, "`retry` for `on-failure[:N]`; a job ends otherwise"),
    flag("rm", LIFE),
    flag("rmi", LIFE),
    field("runtime", ' ', Required, "`resources.gpu` for `nvidia`"),
    field("security-opt", ' ', Required, "nothing: the profiles are those of jobc"),
    field("shm-size", ' ', Required, "`resources.shm`"),
    row("sig-proxy", ' ', Argument::Optional, Note(TERMINAL)),
    field("stop-signal", ' ', Required, "`stop_signal`"),
    field("stop-timeout", ' ', Required, "`grace_period`"),
    refused("storage-opt", "settings of the engine's storage", "write `resources: {disk: 100GiB}`"),
    refused("sysctl", "a setting of the kernel", "leave it out, or set it on the host"),
    row("systemd", ' ', Required, Note("jobc starts no systemd")),
    field("tmpfs", ' ', Required, "`data`, with `source: memory:SIZE`; without a size `instance:`"),
    row("tty", 't', None, Note(TERMINAL)),
    row("tz", ' ', Required, Field("`env.TZ`")),
    field("ulimit", ' ', Required, "`resources.ulimits`"),
    field("user", 'u', Required, "`user`"),
    row("userns", ' ', Required, Note(NAMESPACE)),
    row("uts", ' ', Required, Note(NAMESPACE)),
    field("volume", 'v', Required, "`data`; named volumes `outputs`"),
    row(
        "volume-driver",
        ' ',
        Required,
        Refusal("a driver for volumes", "write `source: nfs://…` or another source of `data`"),
    ),
    refused("volumes-from", "the volumes of another container", "write `-v` for each"),
    field("workdir", 'w', Required, "`workdir`"),
];

/// The option with a long name; `net` and `kernel-memory` are old names.
pub(super) fn by_name(name: &str) -> Option<&'static CommandOption> {
    let name = match name {
        "net" => "network",
        "net-alias" => "network-alias",
        "dns-opt" => "dns-option",
        "healthcheck-command" => "health-cmd",
        name => name,
    };
    OPTIONS.iter().find(|option| option.long == name)
}
