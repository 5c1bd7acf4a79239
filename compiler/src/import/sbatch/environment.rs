//! Variables of the caller that `sbatch` reads, which take precedence over the options of the script.
//!
//! A job file means the same everywhere, so they are read only where the user asks for it.

use crate::source::{SourceId, Sources, Span};

use super::super::draft::Draft;
use super::directives::Directive;
use super::options::by_name;

/// The variables whose names are not `SBATCH_` and the option, with the option.
const NAMED: [(&str, &str); 8] = [
    ("SBATCH_ARRAY_INX", "array"),
    ("SBATCH_MEM_PER_NODE", "mem"),
    ("SBATCH_NO_REQUEUE", "no-requeue"),
    ("SBATCH_REQ_SWITCH", "switches"),
    ("SBATCH_TIMELIMIT", "time"),
    ("SLURM_CLUSTERS", "clusters"),
    ("SLURM_HINT", "hint"),
    ("SLURM_SPREAD_JOB", "spread-job"),
];

/// Options that have a variable: `SBATCH_` and the name.
const OPTIONS: [&str; 38] = [
    "account",
    "acctg-freq",
    "batch",
    "clusters",
    "constraint",
    "container",
    "core-spec",
    "cpus-per-gpu",
    "delay-boot",
    "distribution",
    "exclusive",
    "export",
    "gpu-bind",
    "gpu-freq",
    "gpus",
    "gpus-per-node",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "hint",
    "job-name",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "network",
    "no-kill",
    "open-mode",
    "overcommit",
    "partition",
    "power",
    "profile",
    "qos",
    "requeue",
    "reservation",
    "signal",
    "thread-spec",
    "threads-per-core",
    "wckey",
];

/// The option that a variable of the caller sets.
pub(in super::super) fn option(name: &str) -> Option<&'static str> {
    let named = NAMED.iter().find(|(variable, _)| *variable == name).map(|(_, option)| *option);
    let rest = name.strip_prefix("SBATCH_").map(|rest| rest.to_ascii_lowercase().replace('_', "-"));
    named.or_else(|| rest.and_then(|rest| OPTIONS.iter().find(|option| **option == rest).copied()))
}

/// Adds the options of lines `NAME=VALUE`, behind those of the script.
pub(super) fn read(sources: &Sources, id: SourceId, found: &mut Vec<Directive>, draft: &mut Draft<'_>) {
    let mut at = 0;
    for line in sources.get(id).text().split_inclusive('\n') {
        let span = Span::new(id, at, at + line.trim_end().len());
        at += line.len();
        let Some((name, value)) = line.trim_end().split_once('=') else { continue };
        let Some(option) = option(name).and_then(|option| by_name(option).ok()) else { continue };
        // A flag is set by its variable, whatever the value is.
        let is_flag = option.argument == super::super::options::Argument::None;
        let value = if is_flag { String::new() } else { value.to_owned() };
        for script in found.iter().filter(|directive| directive.option.long == option.long) {
            draft.note(script.span, format!("`{name}` of the environment takes precedence"));
        }
        found.retain(|directive| directive.option.long != option.long);
        found.push(Directive { option, value, span });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_an_option() {
        for name in OPTIONS.iter().copied().chain(NAMED.iter().map(|(_, option)| *option)) {
            assert!(by_name(name).is_ok_and(|option| option.long == name), "{name}");
        }
        assert_eq!(option("SBATCH_TIMELIMIT"), Some("time"));
        assert_eq!(option("SBATCH_GPUS_PER_NODE"), Some("gpus-per-node"));
        assert_eq!(option("SBATCH_NODES"), None);
        assert_eq!(option("SLURM_EXPORT_ENV"), None);
    }
}
