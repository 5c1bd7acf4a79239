//! The programs that roles with `image: host` start first, looked up before the job starts.

use std::path::PathBuf;

use jobc_schema::plan::{CommandPlan, ImageSource, JobPlan, RolePlan, Text};
use jobc_sys::error::{Error, Kind};

use super::program_error::{advice, is_in_path};
use crate::host_environment::HostEnvironments;

/// Words of shells that are not programs (bash(1), "RESERVED WORDS" and "SHELL BUILTIN COMMANDS").
#[rustfmt::skip]
const SHELL_WORDS: [&str; 60] = [
    ".", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command", "compgen", "complete", "continue",
    "coproc", "declare", "dirs", "disown", "enable", "eval", "exec", "exit", "export", "fc", "fg", "for",
    "function", "getopts", "hash", "help", "history", "if", "jobs", "let", "local", "logout", "mapfile", "popd",
    "pushd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend", "time",
    "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// An error for each role whose program is in no directory of its `PATH`. Programs that only a shell or an image can find
/// are not among them.
pub fn missing_on_host(plan: &JobPlan, environments: &HostEnvironments) -> Vec<Error> {
    let root = [PathBuf::from("/")];
    let on_host = |role: &&RolePlan| {
        let image = plan.image_of(role).map(|image| &image.source);
        matches!(image, Some(ImageSource::Host { .. })) && !role.env.contains_key("PATH")
    };
    let missing = |role: &RolePlan| {
        let path = environments.search_path(plan, &role.name);
        let program = first_programs(&role.command)
            .into_iter()
            .find(|program| !program.contains('/') && !is_in_path(program, path, &root))?;
        let message =
            format!("cannot execute `{program}` of role `{}`: no such file or directory", role.name);
        Some(Error::new(Kind::ProgramNotFound, message).help(advice(program, path, &root)))
    };
    plan.roles.iter().filter(on_host).filter_map(missing).collect()
}

/// The programs that a command certainly starts: its first word, or its shell and the first word of its script.
fn first_programs(command: &CommandPlan) -> Vec<&str> {
    match command {
        CommandPlan::Argv { argv, setup: None } => {
            argv.first().and_then(Text::as_literal).into_iter().collect()
        }
        CommandPlan::Script { shell, setup, script } => {
            let script = setup.as_ref().unwrap_or(script).as_literal();
            // Without `-e` a script goes on after a program that is missing.
            let stops = shell.iter().any(|word| word.starts_with("-e"));
            let first = script.filter(|_| stops).and_then(first_word);
            shell.first().map(String::as_str).into_iter().chain(first).collect()
        }
        CommandPlan::Image {} | CommandPlan::Args(_) | CommandPlan::Argv { .. } => vec![],
    }
}

/// The first word of a script if it is the plain name of a program, which may not fail.
fn first_word(script: &str) -> Option<&str> {
    let line = script.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let word = line.split_whitespace().next()?;
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c));
    let may_fail = ["||", "()", "&&", "& "].iter().any(|sign| line.contains(sign)) || line.ends_with('&');
    (is_plain && !may_fail && !SHELL_WORDS.contains(&word)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::with_help;

    #[test]
    fn the_first_program_of_a_script_is_known_only_if_it_is_certain() {
        for script in ["nonesuch --x", "# comment\n\n  nonesuch >log 2>&1 | tee x\necho a || b"] {
            assert_eq!(first_word(script), Some("nonesuch"), "{script}");
        }
        for script in [
            "",
            "cd x",
            "if nonesuch; then",
            "! nonesuch",
            "A=1 nonesuch",
            "$program",
            "nonesuch || true",
            "nonesuch () { :; }",
            "nonesuch && echo",
            "source .venv/bin/activate",
            "while nonesuch",
            "(nonesuch)",
            "nonesuch &",
        ] {
            assert_eq!(first_word(script), None, "{script}");
        }
    }

    #[test]
    fn a_program_of_this_host_is_missing_before_the_job_starts() {
        let found = |command: &str, image: &str| {
            let plan = format!(
                r#"{{"images": {{"main": {{"source": {image}, "reference": "x", "declared_at": "/image"}}}},
                    "roles": [{{"name": "a", "image": "main", "command": {command}}}]}}"#
            );
            let plan = jobc_fake_gpus::plan::plan(&serde_json::from_str(&plan).unwrap());
            let environments = HostEnvironments::default();
            missing_on_host(&plan, &environments).iter().map(with_help).collect::<Vec<_>>()
        };
        let host = r#"{"kind": "host"}"#;
        let advice = "it is in no directory of `PATH`: install it, or name an image that has it";
        let missing = format!("cannot execute `nonesuch` of role `a`: no such file or directory; {advice}");
        assert_eq!(found(r#"{"argv": {"argv": ["nonesuch", "-x"]}}"#, host), [&*missing]);
        let script = |shell: &str| format!(r#"{{"script": {{"shell": {shell}, "script": "nonesuch -x"}}}}"#);
        assert_eq!(found(&script(r#"["sh", "-euc"]"#), host), [&*missing]);
        assert_eq!(found(&script(r#"["nonesuch", "-c"]"#), host), [&*missing]);
        let none: [&str; 0] = [];
        assert_eq!(found(&script(r#"["sh", "-c"]"#), host), none);
        assert_eq!(found(r#"{"argv": {"argv": ["sh"]}}"#, host), none);
        assert_eq!(found(r#"{"argv": {"argv": ["./nonesuch"]}}"#, host), none);
        assert_eq!(found(r#"{"argv": {"argv": ["nonesuch"]}}"#, r#"{"kind": "reference"}"#), none);
    }
}
