//! J0359: a configuration file of accelerate that was made for other machines.
//!
//! `accelerate launch` takes from the file what is not a flag (accelerate 16cb6eb8, `commands/launch.py`), and
//! `framework: accelerate` adds the flags; how processes are started is in the file alone.

use camino::Utf8Path;
use jobc_schema::Pointer;

use crate::check::command::{Command, Launcher};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Node};
use crate::parse;
use crate::source::{Source, Sources};

/// Flags that choose how processes are started, before the file.
const WAYS: [&str; 6] =
    ["--multi_gpu", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--cpu", "--tpu"];

/// Warns of keys of the file that differ from the job, where it is next to the job file.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        for command in role.commands.iter().filter(|c| c.launcher() == Some(Launcher::Accelerate)) {
            let Some(path) = command.flag("--config_file").and_then(|word| role.value(word)) else {
                continue;
            };
            let Some(document) = read(view, path) else { continue };
            for (key, message, note) in findings(view, role, command, &document.root, path) {
                let mut found = Diagnostic::warning(codes::ACCELERATE_CONFIG, message).at(&role.run_at(), "");
                if key != "distributed_type" && role.member.is_some() {
                    found = found.set(&Pointer::ROOT.keys(["distributed", "framework"]), "accelerate");
                }
                sink.push(found.note(note));
            }
        }
    }
}

/// The file, if it is there and can be read: YAML, of which JSON is a part.
fn read(view: &View<'_>, path: &str) -> Option<Document> {
    let text = String::from_utf8(view.files.read(Utf8Path::new(path)).ok()?).ok()?;
    let (mut sources, mut quiet) = (Sources::new(), Sink::new());
    let id = sources.add(Source::new(path, text));
    parse::parse(&sources, id, &mut quiet)
}

type Finding = (&'static str, String, String);

fn findings(
    view: &View<'_>,
    role: &RoleView<'_>,
    command: &Command,
    root: &Node,
    path: &str,
) -> Vec<Finding> {
    let instances = role.peers(view);
    let processes = match &view.plan.distributed {
        Some(distributed) if role.member.is_some() => distributed.world_size,
        _ => role.gpus().max(1).saturating_mul(instances),
    };
    let written = |key: &str| root.get(key).and_then(Node::to_scalar).map(|value| value.text);
    let (name, mut found) = (&role.plan.name, vec![]);
    let complete = "write `framework: accelerate` under `distributed`, which adds the flag to the command";
    let numbers = [("num_machines", instances, "instances"), ("num_processes", processes, "processes")];
    for (key, has, what) in numbers {
        let number = written(key).and_then(|text| text.parse::<u32>().ok());
        if let Some(number) = number.filter(|n| *n != has && command.flag(&format!("--{key}")).is_none()) {
            let message = format!("`{key}` of `{path}` is {number}, and role `{name}` has {has} {what}");
            found.push((key, message, complete.to_owned()));
        }
    }
    if instances > 1 && command.flag("--machine_rank").is_none() {
        let rank = written("machine_rank").unwrap_or_else(|| "0".to_owned());
        let message = format!(
            "`machine_rank` of `{path}` is {rank} in all {instances} instances of role `{name}`, which read the same file"
        );
        found.push(("machine_rank", message, complete.to_owned()));
    }
    let kind = written("distributed_type");
    let is_chosen = WAYS.iter().any(|way| command.has(way) || command.has(&way.replace('_', "-")));
    if processes > 1 && kind.as_deref() == Some("NO") && !is_chosen {
        let message = format!(
            "with `distributed_type: NO` of `{path}` each instance of role `{name}` starts one process alone"
        );
        let note = "write `distributed_type: MULTI_GPU` there, or `--multi_gpu` in the command";
        found.push(("distributed_type", message, note.to_owned()));
    }
    found
}
