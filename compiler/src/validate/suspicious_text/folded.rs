//! J0152: a block after `>`, whose lines are one line to the shell.

use super::text_node::TextNode;
use crate::diagnostic::{Diagnostic, Edit, Fix, Location, Safety, Sink, codes};
use crate::source::Span;

/// Programs that a line begins with where it is a command of its own, besides the program of the first line.
const PROGRAMS: [&str; 22] = [
    "accelerate",
    "bash",
    "cat",
    "cd",
    "conda",
    "cp",
    "deepspeed",
    "echo",
    "export",
    "ls",
    "mkdir",
    "mpirun",
    "nvidia-smi",
    "pip",
    "pip3",
    "python",
    "python3",
    "rm",
    "sh",
    "source",
    "torchrun",
    "wget",
];

/// Programs that start the program in their arguments, which may stand on a line of its own.
const WRAPPERS: [&str; 20] = [
    "accelerate",
    "conda",
    "deepspeed",
    "env",
    "exec",
    "horovodrun",
    "mpiexec",
    "mpirun",
    "ncu",
    "nice",
    "nohup",
    "nsys",
    "numactl",
    "poetry",
    "srun",
    "sudo",
    "time",
    "timeout",
    "torchrun",
    "uv",
];

/// Reports a folded block with a second command.
pub(super) fn check(written: &TextNode<'_>, sink: &mut Sink) {
    if !written.is_command() || !written.raw.starts_with('>') {
        return;
    }
    let Some(second) = second_command(written.raw) else { return };
    let start = written.node.span.start as usize;
    let source = written.node.span.source;
    let line = Span::new(source, start + second.start, start + second.end);
    let mark = Location::Span(Span::new(source, start, start + 1));
    let found = Diagnostic::warning(
        codes::FOLDED_COMMANDS,
        "this line is a word of the command before it: `>` joins the lines of a block",
    );
    let fix = Fix {
        message: "write `|`, which keeps them".to_owned(),
        edits: vec![Edit { place: mark, text: "|".to_owned() }],
        safety: Safety::Unsafe,
    };
    sink.push(Diagnostic { fixes: vec![fix], ..found.at_place(Location::Span(line), "") });
}

/// The first line of a folded block that looks like a command of its own: no deeper than the first line, after a line that
/// does not say that it goes on.
fn second_command(raw: &str) -> Option<std::ops::Range<usize>> {
    let mut first: Option<(usize, &str)> = None;
    let mut goes_on = true;
    let mut at = raw.find('\n')? + 1;
    for line in raw[at..].split_inclusive('\n') {
        let code = line.trim();
        let depth = line.len() - line.trim_start().len();
        let program = code.split(' ').next().unwrap_or_default();
        let begin = at + depth;
        at += line.len();
        let Some((base, of_first)) = first else {
            first = (!code.is_empty()).then_some((depth, program));
            goes_on = code.is_empty() || continues(code);
            continue;
        };
        // Lines after an empty one, and deeper ones, are not joined.
        let wraps = WRAPPERS.contains(&of_first) || of_first.contains('=');
        let is_command = program == of_first || PROGRAMS.contains(&program) && !wraps;
        if !goes_on && depth == base && is_command {
            return Some(begin..begin + code.len());
        }
        goes_on = code.is_empty() || depth > base || continues(code);
    }
    None
}

/// Whether a line says that its command goes on, or that another one may follow.
fn continues(code: &str) -> bool {
    ["\\", "&&", "||", "|", ";", "&", "then", "do", "else", "(", "{"].iter().any(|end| code.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_command_of_a_folded_block_is_found() {
        let check = |block: &str, expected: Option<&str>| {
            assert_eq!(second_command(block).map(|range| &block[range]), expected, "{block}");
        };
        check(">\n  pip install x\n  python t.py\n", Some("python t.py"));
        check(">-\n  ./a.sh one\n  ./a.sh two\n", Some("./a.sh two"));
        check(">\n  python t.py\n  --lr 0.1\n  data\n", None);
        check(">\n  pip install x &&\n  python t.py\n", None);
        check(">\n  pip install x\n\n  python t.py\n", None);
        check(">\n  horovodrun -np 4\n  -H hosts\n  python t.py\n", None);
        check(">\n  LR=1\n  python t.py\n", None);
        check(">\n  torchrun\n    --nnodes 2\n    python\n", None);
    }
}
