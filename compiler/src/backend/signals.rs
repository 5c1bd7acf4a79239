//! SIGTERM for the program behind a shell.
//!
//! A shell waits for a program in the foreground: as the first process of a container it ignores the signal, elsewhere it
//! ends at once, and the program gets nothing.

use jobc_schema::plan::{CommandPlan, RolePlan};

/// Programs before the last one that end soon. A file that is read into the shell may define the last one as a function.
const SHORT: [&str; 22] = [
    "cd",
    "export",
    "set",
    "unset",
    "mkdir",
    "echo",
    "printf",
    "ulimit",
    "umask",
    "pip",
    "pip3",
    "uv",
    "conda",
    "cp",
    "ln",
    "chmod",
    "hostname",
    "nvidia-smi",
    "env",
    "date",
    "ls",
    "pwd",
];

/// What prepares the shell itself, and may define functions: before a program that no function hides.
const PREPARES: [&str; 8] = ["source", ".", "module", "ml", "eval", "spack", "mamba", "micromamba"];

/// Programs that start training, whose names no function has.
const PROGRAMS: [&str; 12] = [
    "python",
    "python3",
    "torchrun",
    "accelerate",
    "deepspeed",
    "mpirun",
    "mpiexec",
    "ray",
    "jupyter",
    "vllm",
    "horovodrun",
    "composer",
];

/// What a shell does itself in no time, and `exec` does not find.
const OF_SHELL: [&str; 29] = [
    "cd", "export", "set", "unset", "exit", "true", "false", "test", "echo", "printf", ":", "[", "[[",
    "ulimit", "umask", "let", "shift", "return", "declare", "local", "readonly", "typeset", "alias", "hash",
    "shopt", "pushd", "popd", "type", "kill",
];

/// What begins more than a command, or starts programs in the shell itself.
const KEYWORDS: [&str; 18] = [
    "if", "for", "while", "until", "case", "select", "function", "{", "!", "time", "eval", "source", ".",
    "wait", "read", "command", "builtin", "coproc",
];

/// How a script gets a signal that its shell alone is sent.
#[derive(Debug, PartialEq)]
pub enum Way {
    /// As it is.
    Itself,
    /// With `exec` before the command that begins at this byte.
    Exec(usize),
    /// By another process, or if the shell lives on.
    PassOn,
}

/// The shell of the role's script.
pub fn shell(role: &RolePlan) -> Option<&str> {
    let CommandPlan::Script { shell, .. } = &role.command else { return None };
    shell.first().map(String::as_str).filter(|program| is_shell(program))
}

fn is_shell(program: &str) -> bool {
    ["sh", "bash", "dash", "ash", "ksh", "zsh"].contains(&program.rsplit('/').next().unwrap_or(program))
}

/// How the program that a script waits for gets a signal, by its name without `SIG`.
pub fn way(shell: &str, script: &str, signal: &str) -> Way {
    let lines = commands(script);
    let Some(((at, last), before)) = lines.split_last() else { return Way::Itself };
    // Whoever handles the signal has thought of it.
    if script.contains("trap ") && script.contains(signal) {
        return Way::Itself;
    }
    let first_word = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let word = first_word(last);
    let is_single = is_simple(last, true) && !KEYWORDS.contains(&word.as_str());
    // Earlier commands of such a script prepare the last one.
    if is_single && word == "exec" {
        return Way::Itself;
    }
    let is_program = word.contains('/') || PROGRAMS.contains(&word.as_str());
    let is_short = |line: &str| {
        let word = first_word(line);
        SHORT.contains(&word.as_str())
            || is_program && PREPARES.contains(&word.as_str())
            || is_assignment(line)
    };
    if !is_single || before.iter().any(|(_, line)| !is_simple(line, false) || !is_short(line)) {
        return Way::PassOn;
    }
    // bash becomes a program without redirections by itself, where it is all of the script.
    let by_itself = shell.ends_with("bash") && before.is_empty() && !last.contains(['<', '>']);
    match word.contains('=') {
        _ if by_itself || OF_SHELL.contains(&word.as_str()) => Way::Itself,
        true => Way::PassOn,
        false => Way::Exec(*at),
    }
}

/// Whether a line sets a variable and starts no program but in its value.
fn is_assignment(line: &str) -> bool {
    let Some((name, value)) = line.trim().split_once('=') else { return false };
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let is_whole =
        |open: &str, close: char| value.starts_with(open) && value.find(close) == Some(value.len() - 1);
    let in_parts = is_whole("$(", ')')
        || value.strip_prefix('"').is_some_and(|rest| rest.find('"') == Some(rest.len() - 1));
    is_name && (!value.contains(char::is_whitespace) || in_parts)
}

/// The lines with commands, each with its first byte; those that a backslash joins are one.
fn commands(script: &str) -> Vec<(usize, &str)> {
    let (mut start, mut lines) = (0, Vec::<(usize, &str)>::new());
    for line in script.split_inclusive('\n') {
        let at = start;
        start += line.len();
        match lines.last_mut() {
            Some((from, before)) if before.trim_end_matches('\n').ends_with('\\') => {
                *before = &script[*from..start];
            }
            _ => lines.push((at, line)),
        }
    }
    lines.retain(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    lines
}

/// Whether a line is one command, without operators of the shell. Those in `$(…)` count for none but the last line, and
/// `$(NAME)` is a variable of the kubelet.
fn is_simple(line: &str, is_last: bool) -> bool {
    let line = line.trim();
    let (mut quote, mut depth) = (None, 0_u32);
    let mut before = ' ';
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        let next = line[at + c.len_utf8()..].chars().next().unwrap_or(' ');
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '`') => return false,
            (None | Some('"'), '(') if before == '$' => {
                let name = line[at + 1..].split(')').next().unwrap_or_default();
                let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
                if is_last && !is_name {
                    return false;
                }
                depth += 1;
            }
            (None | Some('"'), ')') if depth > 0 => depth -= 1,
            // A here-string is a word, a here-document more lines.
            (None, '<') if line[at..].starts_with("<<<") => drop((chars.next(), chars.next())),
            (None, '<') if ['<', '('].contains(&next) => return false,
            (None, '&') if before == '>' || next == '>' => {}
            (None, ';' | '|' | '&' | '(' | ')') if depth == 0 => return false,
            _ => {}
        }
        before = c;
    }
    quote.is_none() && depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gets_the_signal() {
        use Way::{Exec, Itself, PassOn};
        for (script, bash, sh) in [
            ("python train.py", Itself, Exec(0)),
            ("LR=1 python train.py", Itself, PassOn),
            ("python train.py > log 2>&1", Exec(0), Exec(0)),
            ("torchrun \\\n  train.py \\\n  --lr 1\n", Itself, Exec(0)),
            ("cd /src\npython train.py", Exec(8), Exec(8)),
            ("# install\npip install -r 'a b;c.txt'\n\ntorchrun \\\n  train.py\n", Exec(38), Exec(38)),
            ("export A=$(JOBC_INDEX)\npython train.py --rank \"$A\"", Exec(23), Exec(23)),
            ("until ready; do\n  sleep 1\ndone\nexec python train.py", Itself, Itself),
            ("python train.py\npython push.py", PassOn, PassOn),
            ("python train.py | tee log", PassOn, PassOn),
            ("cd /src && python train.py", PassOn, PassOn),
            ("A=$(date | cut -c1)\npython train.py", Exec(20), Exec(20)),
            ("python train.py $(date)", PassOn, PassOn),
            ("for x in 1 2; do\n  python train.py\ndone", PassOn, PassOn),
            ("cat <<EOF\na\nEOF", PassOn, PassOn),
            ("trap 'echo bye' EXIT\npython train.py", PassOn, PassOn),
            ("trap 'save; exit' TERM\npython train.py & wait", Itself, Itself),
            ("cd /src\nexit 3", Itself, Itself),
            ("cd /src\nulimit -n 4096", Itself, Itself),
            ("cd /src\ncommand python train.py", PassOn, PassOn),
            ("source env.sh\ntrain", PassOn, PassOn),
            ("source env.sh\npython train.py", Exec(14), Exec(14)),
            ("module load cuda\nconda activate x\ntorchrun train.py", Exec(34), Exec(34)),
            ("eval \"$(conda shell.bash hook)\"\n./train", Exec(32), Exec(32)),
            ("export A=$(head -n1 <<< \"$B\")\npython train.py", Exec(30), Exec(30)),
            ("export A=$(cat <<EOF\nx\nEOF\n)\npython train.py", PassOn, PassOn),
            ("A=\"x y\"\npython train.py", Exec(8), Exec(8)),
            ("LR=1 python train.py\npython push.py", PassOn, PassOn),
            ("source env.sh", PassOn, PassOn),
            ("cd /src\nLR=1 python train.py", PassOn, PassOn),
            ("cd /src\nwait", PassOn, PassOn),
        ] {
            assert_eq!(way("bash", script, "TERM"), bash, "bash: {script}");
            assert_eq!(way("/bin/sh", script, "TERM"), sh, "sh: {script}");
        }
    }
}
