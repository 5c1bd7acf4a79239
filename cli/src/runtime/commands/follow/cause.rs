//! What to write for a program that was not found.

use jobc_compiler::suggest;

/// How shells end a line about a program that they do not find: bash; dash and BusyBox.
const NOT_FOUND: [&str; 2] = [": command not found", ": not found"];

/// The programs that jobs start most.
const PROGRAMS: [&str; 12] = [
    "python3",
    "python",
    "torchrun",
    "accelerate",
    "deepspeed",
    "horovodrun",
    "mpirun",
    "nvidia-smi",
    "pip",
    "conda",
    "bash",
    "uv",
];

/// What to write for a program that was not found, from the last lines of the task, the newest first.
pub(super) fn of<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> Option<String> {
    lines.rev().find_map(absent_program)
}

/// The same of one line of a shell, if another program was meant.
fn absent_program(line: &str) -> Option<String> {
    let before = NOT_FOUND.iter().find_map(|end| line.trim_end().strip_suffix(end))?;
    let name = before.rsplit([' ', ':']).next()?;
    if name == "python" {
        return Some("no program is named `python` here; write `python3`, or use an image or environment that has `python`".to_owned());
    }
    let near = suggest::nearest(name, PROGRAMS.iter().copied()).filter(|_| !PROGRAMS.contains(&name))?;
    Some(format!("no program is named `{name}` here; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn another_program_is_named_for_one_that_is_not_there() {
        let check = |text: &str, expected: Option<&str>| {
            let found = of(text.lines());
            assert_eq!(found.as_deref().and_then(|sentence| sentence.split(';').next()), expected, "{text}");
        };
        check("bash: line 1: python: command not found", Some("no program is named `python` here"));
        check("sh: 1: torchrunn: not found", Some("no program is named `torchrunn` here"));
        check("bash: line 1: my-own-tool: command not found", None);
        // The supervisor has added the advice to its own error.
        check("main-0: exit 127, cannot execute `python`: no such file or directory (ENOENT)", None);
        check("loss 0.1", None);
    }
}
