//! Scripts that jobc wrote: what it writes around a command is left out, as it writes it again.

use crate::source::Span;

use super::super::command::{Command, command};
use super::super::draft::Draft;
use super::super::nodes::{sequence, string};
use super::super::words::{Word, split_plain};
use super::body::Body;
use super::layout::ROLE;

/// What jobc writes above the commands: `# Job NAME: ROLE. Submit it …`.
const ABOUT: &str = "# Job ";

/// Lines that are the same in every script.
const LINES: [&str; 5] = [
    "export SLURM_EXPORT_ENV=ALL PATH",
    "cd \"$SLURM_SUBMIT_DIR\" || exit 125",
    "command -v module >/dev/null || . /etc/profile",
    "code=$?",
    "exit \"$code\"",
];

/// Variables of frameworks, which jobc sets.
const SET: [&str; 14] = [
    "PET_",
    "MASTER_",
    "JOBC_",
    "WORLD_SIZE=",
    "RANK=",
    "LOCAL_",
    "JAX_",
    "COORDINATOR_",
    "NUM_PROCESSES=",
    "PROCESS_ID=",
    "OMP_NUM_THREADS=",
    "CUDA_VISIBLE_DEVICES=",
    "NVIDIA_VISIBLE_DEVICES=",
    "ROCR_VISIBLE_DEVICES=",
];

/// Who sets up the processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sets {
    /// No framework.
    Nothing,
    /// PyTorch, by its launcher or for plain processes.
    Torch,
    /// JAX.
    Jax,
}

/// What jobc writes into the script that starts the jobs of a sweep: `# All 5 jobs of NAME. Submit it …`.
const ABOUT_ALL: &str = "# All ";

/// Whether a line says what a script of jobc's is.
fn is_about(line: &str) -> bool {
    [ABOUT, ABOUT_ALL].iter().any(|start| line.starts_with(start))
        && line.contains(". Submit it in this directory: ")
}

/// The role of a script that jobc wrote, where its name is a line of it.
pub(super) fn role(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| is_about(line))?;
    let (_, roles) = line.split_once(": ")?;
    Some(roles.split_once('.').map_or(ROLE, |(roles, _)| roles))
        .filter(|role| !role.contains(' '))
        .or(Some(ROLE))
}

/// Writes the framework whose variables the script sets, and returns whether there is one.
pub(super) fn distributed(sets: Sets, command: &str, at: Span, draft: &mut Draft<'_>) -> bool {
    match sets {
        Sets::Nothing => return false,
        Sets::Jax => {
            super::script::set("jax", at, draft);
            return true;
        }
        Sets::Torch => {}
    }
    let names = [("torchrun", "torchrun"), ("accelerate launch", "accelerate"), ("deepspeed", "deepspeed")];
    let found = names.iter().find(|(name, _)| command.contains(name));
    super::script::set(found.map_or("ddp", |(_, framework)| framework), at, draft);
    true
}

/// Whether a command of the script needs files beside it.
fn has_files(text: &str) -> bool {
    let is_sweep = text.lines().any(|line| is_about(line) && line.starts_with(ABOUT_ALL));
    let parts = [
        "# jobc runs its tasks: ",
        "bundles=${PWD%/slurm}",
        "code.tar.gz",
        "#JOBC --after=",
        "secrets=${jobc_secrets",
    ];
    is_sweep || parts.iter().any(|part| text.contains(part))
}

/// Leaves out what jobc wrote; returns what sets up its processes.
pub(super) fn take(body: &mut Body<'_>, text: &str, draft: &mut Draft<'_>) -> Sets {
    let mut sets = Sets::Nothing;
    // Where the command begins, whose script is the user's.
    let command = text.find("srun --job-name=").unwrap_or(text.len());
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let content = line.trim_end();
        let part = body.span(range.start..range.start + content.len());
        if is_about(content) && has_files(text) {
            draft.refuse(
                part,
                "jobc wrote the script, and what its tasks run is in files beside it",
                "import is not needed: `jobc build` and `jobc submit` take the job file that it was built from",
            );
            return Sets::Nothing;
        }
        if content.starts_with("export JAX_") {
            sets = Sets::Jax;
        } else if content.starts_with("export PET_") || content.starts_with("export MASTER_") {
            sets = Sets::Torch;
        }
        let is_own = LINES.contains(&content)
            || is_about(content)
            || content.starts_with("mapfile -t nodes < <(scontrol show hostnames")
            || content.starts_with("mkdir -p ") && content.ends_with(" || exit 125")
            || content.starts_with("# Slurm starts the job again");
        if content.starts_with("[ \"$code\" = 0 ] || [ \"${SLURM_RESTART_COUNT:-0}\" -ge ") {
            let count = content.split("-ge ").nth(1).and_then(|rest| rest.split(' ').next());
            if let Some(count) = count.and_then(|count| count.parse().ok()) {
                draft.field(&["retry", "max"], part, super::super::nodes::number(part, count));
            }
            body.remove(range);
        } else if is_own {
            draft.note(part, "jobc writes it");
            body.remove(range);
        } else if range.start < command
            && let Some(words) = content.strip_prefix("export ").and_then(|rest| split_plain(rest).ok())
        {
            for word in &words {
                let text = word.text();
                let is_set = SET.iter().any(|name| text.starts_with(name));
                match text.split_once('=').filter(|_| !is_set) {
                    Some((name, value)) => {
                        draft.field(&["roles", ROLE, "env", name], part, string(part, value));
                    }
                    None => draft.note(part, "jobc sets it"),
                }
            }
            body.remove(range);
        } else if line.starts_with("exec srun ") {
            body.remove(range.start..range.start + "exec ".len());
        }
    }
    if let Some(at) = text.find("\"$@\" ") {
        body.remove(at..at + "\"$@\" ".len());
    }
    sets
}

/// Writes the command: a script of a shell as such, another as its words.
pub(super) fn write(run: &str, at: Span, draft: &mut Draft<'_>) {
    let words = split_plain(run).unwrap_or_default();
    let words: Vec<String> = words.iter().map(Word::text).collect();
    let Command::Script(shell, script) = command(&words) else {
        let words = words.iter().map(|word| string(at, word)).collect();
        return draft.set(&["roles", ROLE, "run"], at, sequence(at, words));
    };
    // What a task sets for itself.
    let is_set = |line: &&str| SET.iter().any(|name| line.starts_with(&format!("export {name}")));
    let lines: Vec<&str> = script.trim_matches('\n').lines().filter(|line| !is_set(line)).collect();
    let script = lines.join("\n");
    let script = if script.contains('\n') { script + "\n" } else { script };
    if shell != ["bash", "-euo", "pipefail", "-c"] {
        let shell = shell.iter().map(|word| string(at, word)).collect();
        draft.set(&["roles", ROLE, "shell"], at, sequence(at, shell));
    }
    draft.set(&["roles", ROLE, "run"], at, string(at, script));
}
