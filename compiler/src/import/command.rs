//! What a command line is: a script for a shell, or a program.

/// What a command line is.
pub(super) enum Command {
    /// A script for a shell, with the words before it.
    Script(Vec<String>, String),
    /// A program with its arguments.
    Words,
}

/// A script of `bash -c SCRIPT`, or a program.
pub(super) fn command(words: &[String]) -> Command {
    let [shell, flags @ .., script] = words else { return Command::Words };
    let name = shell.rsplit('/').next().unwrap_or(shell);
    let is_shell = ["bash", "sh", "zsh", "dash", "ash"].contains(&name);
    let ends = |flag: &String| flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
    let Some((last, before)) = flags.split_last() else { return Command::Words };
    let are_flags =
        before.iter().all(|flag| flag.starts_with(['-', '+']) && !ends(flag) || flag == "pipefail");
    if is_shell && ends(last) && are_flags {
        Command::Script(words[..words.len() - 1].to_vec(), script.clone())
    } else {
        Command::Words
    }
}
