//! The formats that are read, and what becomes of each option: `jobc import --list`.

use super::options::CommandOption;
use super::{compose, devcontainer, docker_run, kubernetes, sbatch, skypilot, torchx};

/// The formats that are read: the name for `--list`, and what they are.
pub static FORMATS: &[(&str, &str)] = &[
    ("compose", "Compose file"),
    ("devcontainer", "development container: `devcontainer.json`"),
    ("docker-run", "line of `docker run` or `podman run`"),
    (
        "kubernetes",
        "manifest of Kubernetes: Pod, Job, CronJob, JobSet, Kubeflow, Ray, LeaderWorkerSet, Volcano",
    ),
    ("openpai", "job of OpenPAI, protocol v2 (YAML) or v1 (JSON)"),
    ("sbatch", "batch script of Slurm, with lines `#SBATCH`"),
    ("skypilot", "task of SkyPilot"),
    ("torchx", "application of TorchX, as JSON"),
];

/// What becomes of each option of a format: the option, and what it becomes. `None` for a format without options.
pub fn table(format: &str) -> Option<Vec<(String, String)>> {
    let options = match format {
        "compose" => compose::KEYS,
        "devcontainer" => devcontainer::KEYS,
        "skypilot" => skypilot::KEYS,
        "torchx" => torchx::KEYS,
        "docker-run" => docker_run::OPTIONS,
        "kubernetes" => return Some(kubernetes::table()),
        "sbatch" => sbatch::OPTIONS,
        _ => return None,
    };
    let name = |option: &CommandOption| {
        if ["docker-run", "sbatch"].contains(&format) { written(option) } else { option.long.to_owned() }
    };
    Some(options.iter().map(|option| (name(option), option.becomes.words(option.long))).collect())
}

fn written(option: &CommandOption) -> String {
    match option.short {
        ' ' => format!("--{}", option.long),
        short => format!("-{short}, --{}", option.long),
    }
}
