//! The name, the shell and the launcher of a script, and how its commands are written.

use camino::Utf8Path;

use crate::openpai::{MAX_JOB_NAME, converted};
use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::{sequence, string};
use super::layout::{Layout, ROLE};
use super::settings::Settings;
use super::steps::Step;

/// Marks of a command that a shell must read.
const SHELL_MARKS: [char; 18] =
    ['$', '|', ';', '&', '<', '>', '(', ')', '`', '"', '\'', '\\', '*', '?', '~', '{', '#', '='];

/// Writes the name of the job: that of the options, else of the file.
pub(super) fn name(settings: &Settings, path: &Utf8Path, first: Span, draft: &mut Draft<'_>) {
    let given = settings.name.as_ref().map(|(name, span)| (name.as_str(), *span));
    let (name, span) = given.unwrap_or((path.file_stem().unwrap_or("job"), first));
    match converted(name, MAX_JOB_NAME, false) {
        Some(ours) if given.is_some() => draft.field(&["name"], span, string(span, ours)),
        Some(ours) => draft.set(&["name"], span, string(span, ours)),
        None if given.is_some() => {
            draft.invalid(span, format!("`{name}` has no letter or digit of ASCII"), "write another name");
        }
        None => draft.set(&["name"], span, string(span, "job")),
    }
}

/// The words of `#!`, if the script is one of a shell; another interpreter is refused.
pub(super) fn shell(text: &str, first: Span, draft: &mut Draft<'_>) -> Option<Vec<String>> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or_default().trim();
    let words: Vec<&str> =
        line.split_whitespace().filter(|word| *word != "/usr/bin/env" && *word != "-S").collect();
    let program = words.first().map_or("bash", |word| word.rsplit('/').next().unwrap_or(word));
    if !["bash", "sh", "dash", "zsh", "ksh"].contains(&program) {
        draft.refuse(
            first,
            format!("the commands are read by `{program}`, not by a shell"),
            format!("put them into a file of their own, and write `run: {program} FILE` in a job file"),
        );
        return None;
    }
    let mut shell = vec![program.to_owned()];
    shell.extend(words.iter().skip(1).map(|word| (*word).to_owned()));
    Some(shell)
}

/// Writes `distributed` where a launcher needs it, and returns whether it sets `JOBC_RANK`.
pub(super) fn distributed(
    body: &str,
    steps: &[Step],
    layout: &Layout,
    at: Span,
    draft: &mut Draft<'_>,
) -> bool {
    let code: String = body
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    let has = |names: &[&str]| names.iter().any(|name| code.contains(name));
    let at = Span { end: at.start + 1, ..at };
    if layout.instances == 1 {
        let framework = match () {
            () if layout.nodes == 1 => return false,
            () if has(&["horovodrun"]) => "horovod",
            () if has(&["mpirun", "mpiexec"]) || steps.iter().any(Step::is_mpi) => "mpi",
            () if has(&["deepspeed "]) => "deepspeed",
            () => return false,
        };
        // One instance a node; the first one starts the others.
        draft.set(&["roles", ROLE, "instances"], at, super::super::nodes::number(at, layout.nodes));
        set(framework, at, draft);
        return true;
    }
    let framework = match () {
        () if has(&[
            "rdzv",
            "master_addr",
            "master-addr",
            "MASTER_ADDR",
            "machine_rank",
            "num_machines",
            "main_process_ip",
        ]) =>
        {
            return false;
        }
        () if has(&["torchrun", "torch.distributed.run", "torch.distributed.launch"]) => "torchrun",
        () if has(&["accelerate launch"]) => "accelerate",
        () if steps.iter().any(|step| step.command.contains("python")) => "ddp",
        () => return false,
    };
    set(framework, at, draft);
    true
}

/// Writes the framework of the role.
pub(super) fn set(framework: &str, at: Span, draft: &mut Draft<'_>) {
    draft.set(&["distributed", "framework"], at, string(at, framework));
    draft.set(&["distributed", "roles"], at, sequence(at, vec![string(at, ROLE)]));
}

/// Writes `run`, with the script's own shell where that of jobc would read it otherwise.
pub(super) fn write(run: &str, shell: Option<Vec<String>>, at: Span, draft: &mut Draft<'_>) {
    const STRICT: [&str; 4] =
        ["set -euo pipefail", "set -eu -o pipefail", "set -euxo pipefail", "set -e -u -o pipefail"];
    let Some(mut shell) = shell else { return };
    let own = shell == ["bash"];
    let mut run = run.to_owned();
    let strict = STRICT.iter().find(|line| run.lines().next() == Some(**line)).filter(|_| own);
    let is_simple = !run.contains('\n') && !run.contains("${{") && !run.contains(SHELL_MARKS);
    if let Some(line) = strict {
        let rest = run[line.len()..].trim_start_matches('\n');
        run = if line.contains('x') { format!("set -x\n{rest}") } else { rest.to_owned() };
    } else if !(is_simple && shell.len() == 1) {
        shell.push("-c".to_owned());
        draft.set(
            &["roles", ROLE, "shell"],
            at,
            sequence(at, shell.iter().map(|word| string(at, word)).collect()),
        );
    }
    let run = if run.contains('\n') { format!("{run}\n") } else { run };
    draft.set(&["roles", ROLE, "run"], at, string(at, run));
}
