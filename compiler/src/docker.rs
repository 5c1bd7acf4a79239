//! The `docker run` command that gives an instance the same GPUs, for people who know Docker.
//!
//! Sources: docker/cli `opts/gpus.go` (the value of `--gpus` is a record of comma-separated fields, so that a field
//! with commas is in quotes of its own); NVIDIA's MPS guide; ROCm's container toolkit.

use std::fmt::Write as _;

use jobc_schema::gpu::{DriverCapability, Vendor};
use jobc_schema::plan::{CommandPlan, GpuPlan, ImageSource, JobPlan, RolePlan, SharePlan};

use crate::shell;

/// Capabilities that Docker hands on by `--gpus`; the others need the variable.
const BY_OPTION: [DriverCapability; 6] = [
    DriverCapability::Compute,
    DriverCapability::Utility,
    DriverCapability::Video,
    DriverCapability::Graphics,
    DriverCapability::Display,
    DriverCapability::Compat32,
];

/// What of the driver a container gets unless it asks.
const USUAL: [DriverCapability; 2] = [DriverCapability::Compute, DriverCapability::Utility];

/// The command that runs the role's first instance by Docker with the same GPUs; `None` for a role without GPUs, a role
/// that runs on the files of the host, and cards that Docker does not support.
pub fn command(job: &JobPlan, role: &RolePlan) -> Option<String> {
    let gpu = role.resources.gpu.as_ref()?;
    let image = job.image_of(role).filter(|image| !matches!(image.source, ImageSource::Host {}))?;
    let mut words = vec!["docker run --rm".to_owned()];
    words.extend(options(gpu)?);
    if let Some(bytes) = role.resources.shm_bytes.filter(|_| !shares_memory(gpu)) {
        words.push(format!("--shm-size {bytes}"));
    }
    words.push(shell::word(&image.reference).into_owned());
    words.extend(program(&role.command));
    Some(words.join(" "))
}

/// The options that ask for an instance's GPUs.
fn options(gpu: &GpuPlan) -> Option<Vec<String>> {
    if gpu.count == 0 {
        return Some(vec!["-e NVIDIA_VISIBLE_DEVICES=void".to_owned()]);
    }
    let numbers: Vec<String> = (gpu.first..gpu.first + gpu.count).map(|number| number.to_string()).collect();
    match (gpu.vendor, &gpu.share) {
        (Vendor::Nvidia, None) => Some(nvidia(&numbers, gpu)),
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

/// `--gpus` with these devices and the role's capabilities.
fn nvidia(devices: &[String], gpu: &GpuPlan) -> Vec<String> {
    let mut fields = vec![format!("device={}", devices.join(","))];
    let mut words = vec![];
    let names = gpu.capabilities.iter().map(|capability| capability.as_str()).collect::<Vec<_>>().join(",");
    let usual = gpu.capabilities.is_empty() || gpu.capabilities == USUAL;
    if !usual && gpu.capabilities.iter().all(|capability| BY_OPTION.contains(capability)) {
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
    shell::word(&text).into_owned()
}

/// Slices: MIG instances by name, else limits of a multi-process service that runs on the host.
fn slices(devices: &[String], share: &SharePlan, gpu: &GpuPlan) -> Vec<String> {
    if share.profile.is_some() {
        // Only the host knows its instances.
        let named: Vec<String> = devices.iter().map(|_| "MIG-UUID".to_owned()).collect();
        return nvidia(&named, gpu);
    }
    let cards = if share.same_card { &devices[..1] } else { devices };
    let mut words = nvidia(cards, gpu);
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
    gpu.share.as_ref().is_some_and(|share| share.profile.is_none())
}

/// The program, if it is known exactly and fits on one line.
fn program(command: &CommandPlan) -> Vec<String> {
    let words: Option<Vec<&str>> = match command {
        CommandPlan::Image {} => Some(vec![]),
        CommandPlan::Args(args) | CommandPlan::Argv { argv: args, setup: None } => {
            args.iter().map(|text| text.as_literal()).collect()
        }
        CommandPlan::Script { shell, setup: None, script } => script
            .as_literal()
            .map(|script| shell.iter().map(String::as_str).chain([script.trim_end()]).collect()),
        _ => None,
    };
    match words.filter(|words| words.iter().all(|word| !word.contains('\n'))) {
        Some(words) => words.into_iter().map(|word| shell::word(word).into_owned()).collect(),
        None => vec!["…".to_owned()],
    }
}

#[cfg(all(test, any(feature = "oci", feature = "cgroup", feature = "kubernetes")))]
mod tests {
    use serde_json::{Value, json};

    use super::command;
    use crate::backends::fixture;

    #[test]
    fn gpus_are_asked_for_as_docker_reads_them() {
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
            let line = command(&job, &job.roles[0]).unwrap_or_default();
            let (options, rest) = line.split_once(" busybox:1.35").unwrap_or_default();
            assert_eq!(options.strip_prefix("docker run --rm ").unwrap_or_default(), expected);
            assert!(expected.is_empty() || rest == " python 'a b.py'", "{line}");
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
}
