//! What a script asks Slurm for, in one form for each option: `jobc diff` compares it with what jobc asks for.

use std::collections::BTreeMap;

use crate::diagnostic::Sink;
use crate::source::{SourceId, Span};

use super::super::draft::Draft;
use super::directives;
use super::values::{gpus, memory, time};

/// Options that jobc writes for itself: where the output goes, and what a task inherits.
const OF_JOBC: [&str; 8] =
    ["comment", "error", "export", "no-requeue", "open-mode", "output", "chdir", "parsable"];

/// The options of a script, of its first component, by name.
pub fn requested(script: &str) -> BTreeMap<String, String> {
    let id = SourceId::default();
    let mut sink = Sink::new();
    let mut draft = Draft::new(Span::new(id, 0, 0), &mut sink);
    let head = directives::read(script, id, &mut draft);
    let mut all = BTreeMap::new();
    for directive in head.components.first().into_iter().flatten() {
        let name = directive.option.long;
        if OF_JOBC.contains(&name) {
            continue;
        }
        let value = &directive.value;
        let (name, value) = match name {
            "gres" => match value.strip_prefix("gpu").map(|rest| rest.trim_start_matches([':', '='])) {
                Some("") => ("gpus-per-node", "1".to_owned()),
                Some(rest) => ("gpus-per-node", cards(rest)),
                None => (name, value.clone()),
            },
            "gpus" | "gpus-per-node" | "gpus-per-task" => (name, cards(value)),
            "mem" | "mem-per-cpu" | "mem-per-gpu" | "tmp" => {
                (name, memory(value).map_or(value.clone(), |kib| format!("{}M", kib.div_ceil(1024))))
            }
            "time" => (name, time(value).map_or(value.clone(), |seconds| seconds.div_ceil(60).to_string())),
            _ => (name, value.clone()),
        };
        all.insert(name.to_owned(), value);
    }
    shape(&mut all);
    all
}

fn cards(value: &str) -> String {
    match gpus(value) {
        Some((count, Some(model))) => format!("{model}:{count}"),
        Some((count, None)) => count.to_string(),
        None => value.to_owned(),
    }
}

/// Writes nodes and the tasks of each, which Slurm derives from others.
fn shape(all: &mut BTreeMap<String, String>) {
    let number =
        |all: &BTreeMap<String, String>, name: &str| all.get(name).and_then(|text| text.parse::<u64>().ok());
    let per_node = number(all, "ntasks-per-node");
    let tasks = number(all, "ntasks");
    let nodes = number(all, "nodes").or_else(|| Some(tasks?.div_ceil(per_node?.max(1)))).unwrap_or(1).max(1);
    let per_node = per_node.or_else(|| tasks.map(|tasks| tasks.div_ceil(nodes))).unwrap_or(1);
    all.remove("ntasks");
    all.insert("nodes".to_owned(), nodes.to_string());
    all.insert("ntasks-per-node".to_owned(), per_node.to_string());
}

#[cfg(test)]
mod tests {
    use super::requested;

    #[test]
    fn one_form_for_each_option() {
        let of = |script: &str| requested(&format!("#!/bin/bash\n#SBATCH {script}\n"));
        assert_eq!(of("--gres=gpu:a100:4 -t 1:00:00 --mem=2G"), of("--gpus-per-node=a100:4 -t60 --mem=2048"));
        assert_eq!(of("-N2 -n8"), of("--nodes=2 --ntasks-per-node=4 -o x.out"));
        assert_ne!(of("-N2"), of("-N3"));
    }
}
