//! Errors of `sbatch`, at the lines of the job that cause them.

use crate::built::BatchScript;
use crate::place::Problem;

/// A part of a message, the options that it is about, and what to do.
type Row = (&'static str, &'static [&'static str], &'static str);

/// The messages of Slurm (`src/common/slurm_errno.c`), lower case.
const MESSAGES: &[Row] = &[
    (
        "invalid partition",
        &["partition"],
        "`sinfo --summarize` lists the partitions; set `slurm.partition` of the target",
    ),
    (
        "invalid account or account/partition combination",
        &["account", "partition"],
        "`sacctmgr show associations user=$USER` lists your accounts; set `slurm.account` of the target",
    ),
    ("invalid qos", &["qos"], "`sacctmgr show qos` lists them; set `slurm.qos` of the target"),
    ("invalid feature", &["constraint"], "`sinfo --format='%N %f'` lists the features of the nodes"),
    (
        "invalid generic resource",
        &["gpus-per-node", "gres"],
        "`sinfo --format='%N %G'` lists the GPUs of the nodes; set `slurm.gpu_types` of the target",
    ),
    ("invalid trackable resource", &["gpus-per-node", "gres"], "set `slurm.gpu: gres` in the target"),
    (
        "job array",
        &["job-name"],
        "`scontrol show config` has the limit, MaxArraySize; set `slurm.max_array` of the target",
    ),
    ("license", &["licenses"], "`scontrol show licenses` lists them"),
    ("time limit", &["time"], "`sinfo --format='%P %l'` lists the limits of the partitions"),
    ("reservation", &["reservation"], "`scontrol show reservations` lists them"),
    ("memory specification", &["mem"], "`sinfo --format='%N %m'` lists the memory of the nodes in MiB"),
    ("cpu count per node", &["cpus-per-task"], "`sinfo --format='%N %c'` lists the CPUs of the nodes"),
    ("node count", &["nodes"], "`sinfo --summarize` counts the nodes of the partitions"),
    ("more processors requested", &["nodes", "cpus-per-task"], "`sinfo --summarize` counts the nodes"),
    (
        "node configuration is not available",
        &["gpus-per-node", "gres", "mem", "cpus-per-task", "tmp", "constraint", "nodes"],
        "no node has all of it; `sinfo --format='%N %c %m %G %f'` lists CPUs, memory in MiB, GPUs and features",
    ),
    ("group not permitted", &["partition"], "ask an administrator, or set another `slurm.partition`"),
    (
        "partition configuration",
        &["partition", "nodes", "time"],
        "`scontrol show partition` shows its limits",
    ),
    (
        "accounting/qos policy",
        &["time", "nodes", "gpus-per-node", "gres", "account", "qos"],
        "`sacctmgr show qos` and `sshare` show what you may use",
    ),
    ("too long", &["job-name"], "a batch script may have 4 MiB unless the cluster says otherwise"),
];

/// What `sbatch --test-only` refuses and `sbatch` queues (`ESLURM_NODE_NOT_AVAIL`, `ESLURM_NODES_BUSY`).
const WAITS: [&str; 2] = ["required node not available", "requested nodes are busy"];

/// The problem of a message of `sbatch`.
///
/// `out` are the nodes that are down or drained, if they may be why it is refused.
pub(crate) fn of_sbatch(message: &str, out: &str, script: &BatchScript) -> Problem {
    let text = text(message);
    let lower = text.to_ascii_lowercase();
    if let Some(option) = unrecognized(message) {
        return Problem::error(format!("Slurm rejects the job: this release has no option `--{option}`"))
            .at(script.origin(option))
            .help("remove it from `slurm.extra` of the target");
    }
    if !out.is_empty() || WAITS.iter().any(|part| lower.contains(part)) {
        let why = if out.is_empty() { text } else { format!("nodes are down or drained: {out}") };
        return Problem::warning(format!("the job may have to wait: {why}"))
            .at(["nodelist", "nodes"].into_iter().find_map(|option| script.origin(option)))
            .help("`sinfo --list-reasons` says why nodes are down or drained");
    }
    let row = MESSAGES.iter().find(|(part, _, _)| lower.contains(part));
    let options = row.map_or(&["job-name"][..], |(_, options, _)| options);
    let place = options.iter().find_map(|option| script.origin(option)).or_else(|| script.origin("job-name"));
    let help = row.map(|(_, _, help)| (*help).to_owned());
    Problem { help, ..Problem::error(format!("Slurm rejects the job: {text}")).at(place) }
}

/// The words of an error, without what all errors have.
fn text(message: &str) -> String {
    let lines = message.lines().map(|line| {
        let line = line.trim();
        ["sbatch: ", "error: ", "allocation failure: ", "Batch job submission failed: "]
            .iter()
            .fold(line, |line, beginning| line.strip_prefix(beginning).unwrap_or(line))
    });
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    // The last line says what ended it, such as `Invalid partition name specified`.
    let last = lines.last().copied().unwrap_or("no reason was given");
    let mut chars = last.chars();
    let first = chars.next().unwrap_or_default();
    let is_word = chars.clone().next().is_some_and(char::is_lowercase);
    let text = if is_word { first.to_lowercase().chain(chars).collect() } else { last.to_owned() };
    text.trim_end_matches('.').to_owned()
}

/// The option that `sbatch` does not know: `sbatch: unrecognized option '--x=1'`.
fn unrecognized(message: &str) -> Option<&str> {
    let rest = message.split_once("unrecognized option")?.1;
    let option = rest.split(['\'', '"']).nth(1)?.trim_start_matches('-');
    option.split('=').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> BatchScript {
        BatchScript::of_text("job", "#!/bin/bash\n#SBATCH --partition=x\n#SBATCH --mem=5M\n")
    }

    #[test]
    fn messages_of_sbatch_become_sentences() {
        for (message, text, help) in [
            (
                "sbatch: error: invalid partition specified: gpu\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
                "Slurm rejects the job: invalid partition name specified",
                "`slurm.partition`",
            ),
            (
                "allocation failure: Requested node configuration is not available\n",
                "Slurm rejects the job: requested node configuration is not available",
                "`sinfo",
            ),
            (
                "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: Requested node configuration is not available",
                "Slurm rejects the job: requested node configuration is not available",
                "`sinfo",
            ),
            ("sbatch: error: X\n", "Slurm rejects the job: X", ""),
            ("", "Slurm rejects the job: no reason was given", ""),
        ] {
            let problem = of_sbatch(message, "", &script());
            assert_eq!(problem.message, text);
            assert!(problem.help.unwrap_or_default().contains(help), "{message}");
        }
        let waits = "allocation failure: Required node not available (down, drained or reserved)\n";
        let problem = of_sbatch(waits, "", &script());
        assert!(problem.is_warning, "{problem:?}");
        assert_eq!(
            problem.message,
            "the job may have to wait: required node not available (down, drained or reserved)"
        );
        let rejected = "allocation failure: Requested node configuration is not available\n";
        let problem = of_sbatch(rejected, "n[0,7]", &script());
        assert_eq!(
            (problem.message.as_str(), problem.is_warning),
            ("the job may have to wait: nodes are down or drained: n[0,7]", true)
        );
        let problem = of_sbatch(rejected, "", &script());
        assert!(!problem.is_warning && problem.message.ends_with("configuration is not available"));
        let problem =
            of_sbatch("sbatch: unrecognized option '--frobnicate=1'\nTry \"sbatch --help\"\n", "", &script());
        assert_eq!(problem.message, "Slurm rejects the job: this release has no option `--frobnicate`");
    }
}
