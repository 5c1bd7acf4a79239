//! The `docker run` command of an instance, and its GPU options alone, for people who know Docker.
//!
//! Sources: docker/cli `opts/gpus.go` (the value of `--gpus` is a record of comma-separated fields, so that a field
//! with commas is in quotes of its own); NVIDIA's MPS guide; ROCm's container toolkit.

use std::fmt::Write as _;

use jobc_schema::gpu::{DriverCapability, Vendor};
use jobc_schema::job::Network;
use jobc_schema::plan::{
    CommandPlan, EnvPlan, GpuAmount, GpuPlan, ImageSource, JobPlan, PortPlan, Reference, RolePlan, SharePlan,
    Text, VolumeSource,
};
use jobc_schema::resources::Publish;

use jobc_schema::shell;

/// Capabilities that Docker hands on by `--gpus`; the others need the variable.
const OPTION_CAPABILITIES: [DriverCapability; 6] = [
    DriverCapability::Compute,
    DriverCapability::Utility,
    DriverCapability::Video,
    DriverCapability::Graphics,
    DriverCapability::Display,
    DriverCapability::Compat32,
];

/// What of the driver a container gets unless it asks.
const DEFAULT_CAPABILITIES: [DriverCapability; 2] = [DriverCapability::Compute, DriverCapability::Utility];

/// The options of `docker run` that give a container the same GPUs as the role's first instance: GPUs alone, and what the
/// GPUs need. `None` for a role without GPUs, a role that runs on the files of the host, and cards that Docker does not
/// support.
pub fn gpu_options(job: &JobPlan, role: &RolePlan) -> Option<String> {
    let gpu = role.resources.gpu.as_ref()?;
    job.image_of(role).filter(|image| !matches!(image.source, ImageSource::Host { .. }))?;
    Some(options(job, role, gpu)?.join(" "))
}

/// The whole command that runs the role's first instance by Docker, an option a line, and what it leaves out.
///
/// `None` for a role that runs on the files of the host.
pub fn command(job: &JobPlan, role: &RolePlan) -> Option<String> {
    let image = job.image_of(role).filter(|image| !matches!(image.source, ImageSource::Host { .. }))?;
    let mut options = vec!["docker run --rm".to_owned()];
    let mut left_out = Vec::new();
    let resources = &role.resources;
    let gpu = resources.gpu.as_ref();
    match gpu.map(|gpu| self::options(job, role, gpu)) {
        Some(Some(words)) => options.extend(words),
        Some(None) if job.gpu_names(role, 0).is_none() => {
            left_out.push("GPUs: `oci.devices` of the target names too few".to_owned());
        }
        Some(None) => left_out.push("GPUs that Docker has no option for".to_owned()),
        None => {}
    }
    options.extend(limits(role, gpu.is_some_and(shares_memory)));
    options.extend(disk_traffic(role, &mut left_out));
    options.extend(network(job, role));
    options.extend(mounts(job, role, &mut left_out));
    options.extend(environment(job, role));
    options.extend(rights(role));
    if !role.files.is_empty() || !role.provided_files.is_empty() {
        let files = role.files.iter().chain(&role.provided_files).map(|file| file.path.as_str());
        left_out.push(format!("the files {}", files.collect::<Vec<_>>().join(", ")));
    }
    options.push(shell::quote(&image.reference));
    let program = program(job, &role.command);
    let last = options.pop().into_iter().chain(program).collect::<Vec<_>>().join(" ");
    options.push(last);
    let text = options.join(" \\\n  ");
    let left_out: String = left_out.iter().map(|what| format!("# left out: {what}\n")).collect();
    Some(format!("{left_out}{text}\n"))
}

/// CPUs, memory and the limits of processes.
fn limits(role: &RolePlan, shares_memory: bool) -> Vec<String> {
    let resources = &role.resources;
    let mut words = Vec::new();
    if let Some(millis) = resources.cpu_millis {
        words.push(format!("--cpus {}.{:03}", millis / 1000, millis % 1000));
    }
    if let Some(bytes) = resources.memory_bytes {
        words.push(format!("--memory {bytes}"));
    }
    if let Some(bytes) = resources.shm_bytes.filter(|_| !shares_memory) {
        words.push(format!("--shm-size {bytes}"));
    }
    if let Some(pids) = resources.pids {
        words.push(format!("--pids-limit {pids}"));
    }
    for (name, limit) in &resources.ulimits {
        let limit = limit.map_or("-1".to_owned(), |limit| limit.to_string());
        words.push(format!("--ulimit {name}={limit}"));
    }
    if let Some(signal) = &role.stop_signal {
        words.push(format!("--stop-signal {signal}"));
    }
    words.push(format!("--stop-timeout {}", role.grace_period_seconds));
    if role.init {
        words.push("--init".to_owned());
    }
    words
}

/// Limits of disk traffic; Docker takes only devices.
fn disk_traffic(role: &RolePlan, left_out: &mut Vec<String>) -> Vec<String> {
    let mut words = Vec::new();
    for (device, limits) in &role.resources.io {
        let node = if device.starts_with('/') { device.clone() } else { format!("/dev/block/{device}") };
        if !node.starts_with("/dev/") {
            left_out.push(format!("the limits of disk traffic of `{device}`, which is not a device"));
            continue;
        }
        words.extend(limits.rates().map(|(key, rate)| {
            let option = match key {
                "rbps" => "read-bps",
                "wbps" => "write-bps",
                "riops" => "read-iops",
                _ => "write-iops",
            };
            format!("--device-{option} {}", shell::quote(&format!("{node}:{rate}")))
        }));
    }
    words
}

fn network(job: &JobPlan, role: &RolePlan) -> Vec<String> {
    match job.network {
        Network::Host => return [vec!["--network host".to_owned()], names(job)].concat(),
        Network::None => return [vec!["--network none".to_owned()], names(job)].concat(),
        Network::Auto | Network::Job => {}
    }
    let numbers = |port: &PortPlan| {
        let first = u32::from(port.number);
        if port.count > 1 { format!("{first}-{}", first + port.count - 1) } else { first.to_string() }
    };
    let published = role.ports.iter().filter(|port| port.publish != Publish::None);
    published.map(|port| format!("-p {0}:{0}", numbers(port))).chain(names(job)).collect()
}

/// Names in /etc/hosts, and the settings of the resolver.
fn names(job: &JobPlan) -> Vec<String> {
    let hosts = job.extra_hosts.iter().map(|(name, address)| format!("--add-host {name}:{address}"));
    let dns = job.dns.iter().flat_map(|dns| {
        let settings = [("dns", &dns.servers), ("dns-search", &dns.search), ("dns-option", &dns.options)];
        settings.into_iter().flat_map(|(option, values)| {
            values.iter().map(move |value| format!("--{option} {}", shell::quote(value)))
        })
    });
    hosts.chain(dns).collect()
}

/// Directories of the host; what else data comes from, Docker cannot mount.
fn mounts(job: &JobPlan, role: &RolePlan, left_out: &mut Vec<String>) -> Vec<String> {
    let mut words = Vec::new();
    for mount in &role.mounts {
        let Some(volume) = job.volumes.get(&mount.volume) else { continue };
        if let VolumeSource::Memory { size_bytes } = volume.source {
            let options = format!("{}:size={size_bytes},mode=1777,exec", mount.path);
            words.push(format!("--tmpfs {}", shell::quote(&options)));
            continue;
        }
        let (VolumeSource::Path { path } | VolumeSource::Code { path, .. }) = &volume.source else {
            left_out.push(format!("`{}` at {}, which is no directory of the host", mount.volume, mount.path));
            continue;
        };
        let relative = path.strip_prefix("./").unwrap_or(path);
        let from = if path.starts_with('/') { String::new() } else { "\"$PWD\"/".to_owned() };
        let below = mount.subpath.as_ref().map(|path| format!("/{path}")).unwrap_or_default();
        let rest = format!("{relative}{below}:{}{}", mount.path, if mount.writable { "" } else { ":ro" });
        words.push(format!("-v {from}{}", shell::quote(&rest)));
    }
    words
}

/// The variables of the job, and those that jobc sets; a secret is handed on from the caller's environment by name.
fn environment(job: &JobPlan, role: &RolePlan) -> Vec<String> {
    let given = role.env.iter().map(|(name, value)| match value {
        EnvPlan::Secret { .. } => format!("-e {name}"),
        EnvPlan::Text(text) => variable(name, &first(job, text)),
    });
    let provided = role.provided_env.iter().map(|(name, text)| variable(name, &first(job, text)));
    given.chain(provided).collect()
}

fn variable(name: &str, value: &str) -> String {
    format!("-e {}", shell::quote(&format!("{name}={value}")))
}

/// User, directory and security settings.
fn rights(role: &RolePlan) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(user) = &role.user {
        words.push(format!("--user {}", shell::quote(user)));
    }
    if let Some(workdir) = &role.workdir {
        words.push(format!("--workdir {}", shell::quote(workdir)));
    }
    if role.security.privileged {
        words.push("--privileged".to_owned());
    } else {
        words.push("--security-opt no-new-privileges".to_owned());
    }
    if role.security.read_only_root {
        words.push("--read-only".to_owned());
    }
    if let Some(capabilities) = &role.security.capabilities {
        words.extend(capabilities.drop.iter().map(|name| format!("--cap-drop {name}")));
        words.extend(capabilities.add.iter().map(|name| format!("--cap-add {name}")));
    }
    words
}

/// A text for the first instance, with all instances on this host.
fn first(job: &JobPlan, text: &Text) -> String {
    let number = |role: &str, label: &str| {
        let port = job.role(role).and_then(|role| role.port(label));
        port.map_or_else(String::new, |port| port.number.to_string())
    };
    text.render(|reference| match reference {
        Reference::Index {} => "0".to_owned(),
        Reference::Rank { offset } => offset.to_string(),
        Reference::Host { .. } => "localhost".to_owned(),
        Reference::Port { role, label, .. } | Reference::Ports { role, label, .. } => number(role, label),
        Reference::Hosts { role, label, before, after, .. } => {
            let port = label.as_ref().map(|label| format!(":{}", number(role, label))).unwrap_or_default();
            format!("{before}localhost{port}{after}")
        }
    })
}

/// The options that ask for an instance's GPUs.
fn options(job: &JobPlan, role: &RolePlan, gpu: &GpuPlan) -> Option<Vec<String>> {
    let named = job.target.settings.oci.as_ref().is_some_and(|oci| oci.devices.is_some());
    let whole = gpu.vendor == Vendor::Nvidia && gpu.share.is_none();
    match gpu.amount() {
        GpuAmount::All if whole => return Some(nvidia("all".to_owned(), gpu)),
        GpuAmount::AllOf(_) if whole && !named => return Some(nvidia("all".to_owned(), gpu)),
        GpuAmount::All | GpuAmount::Hidden => {
            return Some(vec!["-e NVIDIA_VISIBLE_DEVICES=void".to_owned()]);
        }
        GpuAmount::AllOf(_) | GpuAmount::Count(_) => {}
    }
    let numbers = job.gpu_names(role, 0)?;
    match (gpu.vendor, &gpu.share) {
        (Vendor::Nvidia, None) => Some(nvidia(devices(&numbers), gpu)),
        (Vendor::Nvidia, Some(share)) => Some(slices(&numbers, share, gpu)),
        (Vendor::Amd, None) => {
            Some(vec![format!("--runtime amd -e AMD_VISIBLE_DEVICES={}", numbers.join(","))])
        }
        (Vendor::Intel, None) => {
            let nodes = (gpu.first..gpu.first + gpu.count).map(|number| 128 + number);
            Some(nodes.map(|minor| format!("--device /dev/dri/renderD{minor}")).collect())
        }
        _ => None,
    }
}

/// The field of `--gpus` that names devices.
fn devices(names: &[String]) -> String {
    format!("device={}", names.join(","))
}

/// `--gpus` with this field, which says which or how many, and the role's capabilities.
fn nvidia(which: String, gpu: &GpuPlan) -> Vec<String> {
    let mut fields = vec![which];
    let mut words = vec![];
    let names = gpu.capabilities.iter().map(|capability| capability.as_str()).collect::<Vec<_>>().join(",");
    let usual = gpu.capabilities.is_empty() || gpu.capabilities == DEFAULT_CAPABILITIES;
    if !usual && gpu.capabilities.iter().all(|capability| OPTION_CAPABILITIES.contains(capability)) {
        fields.push(format!("capabilities={names}"));
    } else if !usual {
        words.push(format!("-e NVIDIA_DRIVER_CAPABILITIES={names}"));
    }
    words.insert(0, format!("--gpus {}", record(&fields)));
    words
}

/// A record of comma-separated values as one word of the shell.
fn record(fields: &[String]) -> String {
    let quoted = |field: &String| if field.contains(',') { format!("\"{field}\"") } else { field.clone() };
    let text = fields.iter().map(quoted).collect::<Vec<_>>().join(",");
    shell::quote(&text)
}

/// Slices: MIG instances by name, else limits of a multi-process service that runs on the host.
fn slices(devices: &[String], share: &SharePlan, gpu: &GpuPlan) -> Vec<String> {
    if share.profile.is_some() {
        // Only the host knows its instances.
        let named: Vec<String> = devices.iter().map(|_| "MIG-UUID".to_owned()).collect();
        return nvidia(self::devices(&named), gpu);
    }
    let cards = if share.same_card { &devices[..1] } else { devices };
    let mut words = nvidia(self::devices(cards), gpu);
    if share.time {
        return words;
    }
    words.push(
        "--ipc host -v /tmp/nvidia-mps:/tmp/nvidia-mps -e CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps".to_owned(),
    );
    if let Some(cores) = share.cores_percent {
        words.push(format!("-e CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={cores}"));
    }
    if let Some(bytes) = share.memory_bytes {
        // Devices are numbered from 0 inside; the service counts in whole megabytes.
        let mut limits = String::new();
        for number in 0..cards.len() {
            let comma = if number > 0 { "," } else { "" };
            let _ = write!(limits, "{comma}{number}={}M", bytes.div_ceil(1 << 20));
        }
        words.push(format!("-e CUDA_MPS_PINNED_DEVICE_MEM_LIMIT={limits}"));
    }
    words
}

/// Whether /dev/shm is the host's, so that it has no size of its own.
fn shares_memory(gpu: &GpuPlan) -> bool {
    gpu.share.as_ref().is_some_and(|share| share.profile.is_none() && !share.time)
}

/// The program with its arguments; a script with its set-up before it.
fn program(job: &JobPlan, command: &CommandPlan) -> Vec<String> {
    let list = |words: &[Text]| words.iter().map(|text| first(job, text)).collect::<Vec<_>>();
    let words = match command {
        CommandPlan::Image {} => vec![],
        CommandPlan::Args(args) => list(args),
        CommandPlan::Argv { argv, setup: None } => list(argv),
        CommandPlan::Argv { argv, setup: Some(setup) } => {
            let own: Vec<String> = list(argv).iter().map(|word| shell::quote(word)).collect();
            let script = format!("{}\nexec {}", first(job, setup).trim_end(), own.join(" "));
            vec!["/bin/sh".to_owned(), "-euc".to_owned(), script]
        }
        CommandPlan::Script { shell, setup, script } => {
            let setup = setup.as_ref().map(|setup| format!("{}\n", first(job, setup).trim_end()));
            let script = format!("{}{}", setup.unwrap_or_default(), first(job, script).trim_end());
            shell.iter().cloned().chain([script]).collect()
        }
    };
    words.iter().map(|word| shell::quote(word)).collect()
}

#[cfg(all(test, any(feature = "oci", feature = "cgroup", feature = "kubernetes")))]
mod tests {
    use serde_json::{Value, json};

    use super::{command, gpu_options};
    use crate::backends::fixture;

    #[test]
    fn gpus_are_requested_as_docker_reads_them() {
        let check = |gpu: Value, expected: &str| {
            let mut whole = json!({"count": 1, "first": 0, "vendor": "nvidia"});
            for (key, value) in gpu.as_object().unwrap() {
                whole[key] = value.clone();
            }
            let changes = json!({"roles": {"main": {
                "command": {"argv": {"argv": ["python", "a b.py"]}},
                "resources": {"gpu": whole}
            }}});
            let job = fixture::job(&changes);
            assert_eq!(gpu_options(&job, &job.roles[0]).unwrap_or_default(), expected);
        };
        check(json!({}), "--gpus device=0");
        check(json!({"count": 2}), "--gpus '\"device=0,1\"'");
        check(
            json!({"count": 2, "first": 2, "capabilities": ["compute", "utility"]}),
            "--gpus '\"device=2,3\"'",
        );
        check(
            json!({"count": 2, "capabilities": ["compute", "video"]}),
            "--gpus '\"device=0,1\",\"capabilities=compute,video\"'",
        );
        check(json!({"capabilities": ["compute"]}), "--gpus device=0,capabilities=compute");
        check(
            json!({"capabilities": ["compute", "ngx"]}),
            "--gpus device=0 -e NVIDIA_DRIVER_CAPABILITIES=compute,ngx",
        );
        check(json!({"count": 0}), "-e NVIDIA_VISIBLE_DEVICES=void");
        check(json!({"count": 0, "all": true}), "--gpus all");
        check(json!({"count": 4, "all": true}), "--gpus all");
        check(
            json!({"count": 0, "all": true, "capabilities": ["compute", "video"]}),
            "--gpus 'all,\"capabilities=compute,video\"'",
        );
        let slice = |share: Value| json!({"share": share});
        check(
            slice(json!({"profile": "1g.10gb", "isolation": "hard", "same_card": false})),
            "--gpus device=MIG-UUID",
        );
        check(
            slice(
                json!({"memory_bytes": 8_589_934_593_u64, "cores_percent": 30, "isolation": "soft", "same_card": false}),
            ),
            "--gpus device=0 --ipc host -v /tmp/nvidia-mps:/tmp/nvidia-mps -e CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps \
             -e CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 -e CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8193M",
        );
        check(json!({"vendor": "amd", "count": 2}), "--runtime amd -e AMD_VISIBLE_DEVICES=0,1");
        check(
            json!({"vendor": "intel", "count": 2}),
            "--device /dev/dri/renderD128 --device /dev/dri/renderD129",
        );
        check(json!({"vendor": "google"}), "");
    }

    #[test]
    fn devices_of_the_target_are_named() {
        let check = |devices: Value, first: u32, expected: Option<&str>| {
            let changes = json!({
                "target": {"settings": {"oci": {"devices": devices}}},
                "roles": {"main": {"resources": {"gpu": {"count": 2, "first": first, "vendor": "nvidia"}}}}
            });
            let job = fixture::job(&changes);
            assert_eq!(gpu_options(&job, &job.roles[0]).as_deref(), expected);
        };
        check(json!([1, 2]), 0, Some("--gpus '\"device=1,2\"'"));
        check(json!([1, 2, 3, "GPU-5c7d"]), 2, Some("--gpus '\"device=3,GPU-5c7d\"'"));
        check(json!({"main": [3, 1]}), 2, Some("--gpus '\"device=3,1\"'"));
        check(json!({"other": [3, 1]}), 0, Some("--gpus '\"device=0,1\"'"));
        check(json!([1]), 0, None);
    }

    #[test]
    fn a_whole_command_leaves_nothing_out_in_silence() {
        let changes = json!({
            "network": "none",
            "volumes": {
                "set": {"kind": "data", "source": {"kind": "path", "path": "./my data"}},
                "far": {"kind": "data", "source": {"kind": "nfs", "host": "nas", "path": "/x"}},
            },
            "roles": {"main": {
                "command": {"script": {"shell": ["bash", "-c"], "setup": "cd /w", "script": "echo it's $A\n"}},
                "env": {"A": "1 2", "TOKEN": {"secret": "token"}},
                "user": "1000", "workdir": "/w",
                "mounts": [
                    {"volume": "set", "path": "/set", "writable": false},
                    {"volume": "far", "path": "/far", "writable": true},
                ],
                "files": [{"path": "/etc/a", "content": "a", "mode": 420}],
                "resources": {
                    "cpu_millis": 1500, "memory_bytes": 1024, "shm_bytes": 512, "pids": 10,
                    "ulimits": {"nofile": 1024, "memlock": null},
                    "io": {"/dev/vda": {"read_bytes": 1_048_576, "write_ops": 10}, "/data": {"read_ops": 8}},
                    "gpu": {"count": 1, "first": 0, "vendor": "nvidia"},
                },
            }},
        });
        let job = fixture::job(&changes);
        insta::assert_snapshot!(command(&job, &job.roles[0]).unwrap());
    }
}
