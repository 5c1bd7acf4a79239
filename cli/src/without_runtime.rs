//! A build without the runtime: macOS, Windows, or Linux without the feature `runtime`.
//!
//! The commands of the runtime are accepted with any arguments, but hidden. Each prints what to use instead.

use std::convert::Infallible;
use std::env::consts;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use camino::Utf8Path;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use jobc_compiler::compile::Request;
use jobc_compiler::source::Sources;
use jobc_schema::plan::JobPlan;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::terminal;

/// The commands that run jobs and containers: none.
pub(crate) type RuntimeCommand = Infallible;

/// Adds commands whose options are defined in other crates: none. The description does not promise to run jobs.
pub(crate) fn add_commands(jobc: Command) -> Command {
    jobc.about(
        "Compile a job file into Dockerfiles, OCI bundles, cgroup files, Kubernetes, Slurm and OpenPAI jobs",
    )
}

/// Commands that come before all others: none.
pub(crate) fn run_early_command() -> Option<ExitCode> {
    None
}

/// Ends the raw mode of the terminal, which only the runtime uses.
pub(crate) fn restore_terminal() {}

/// Runs a command of [`RuntimeCommand`].
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "with the runtime, the type has the options of commands"
)]
pub(crate) fn run_command(command: &RuntimeCommand, _format: FormatArg) -> ExitCode {
    match *command {}
}

/// Bills of materials need an image store, which this platform lacks.
pub(crate) fn write_sboms(_: &[&JobPlan], _: &Utf8Path) -> Outcome {
    terminal::eprint("jobc: `--sbom` needs the image store of Linux; leave it out\n");
    Outcome::UsageError
}

/// Notes on what this host lacks to run a job: this build runs none.
pub(crate) fn host_notes(_: Sources, _: Request<'_>, _: Vec<JobPlan>, _: &Path) -> Vec<String> {
    vec![]
}

/// The number of GPUs of this host that jobs can use: none.
pub(crate) fn gpu_count() -> usize {
    0
}

/// Whether a command needs settings.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "with the runtime, the type has the options of commands"
)]
pub(crate) fn needs_settings(command: &RuntimeCommand) -> bool {
    match *command {}
}

/// Adds those of the named commands that this build does not have.
pub(crate) fn with_hidden_commands(jobc: Command, names: impl Iterator<Item = &'static str>) -> Command {
    names.fold(jobc, |jobc, name| {
        if jobc.find_subcommand(name).is_some() {
            return jobc;
        }
        let words = Arg::new("words")
            .value_parser(value_parser!(OsString))
            .action(ArgAction::Append)
            .num_args(0..)
            .allow_hyphen_values(true)
            .trailing_var_arg(true);
        let hidden = Command::new(name).hide(true).disable_help_flag(true).about("Needs Linux").arg(words);
        jobc.subcommand(hidden)
    })
}

/// Reports what to use instead of a command that is not one of `all()`.
pub(crate) fn run_hidden_command(matches: &ArgMatches, all: fn() -> Command) -> Option<ExitCode> {
    let name = matches.subcommand_name()?;
    if all().find_subcommand(name).is_some() {
        return None;
    }
    terminal::eprint(&message(name, consts::OS));
    Some(ExitCode::from(Outcome::UsageError as u8))
}

/// `jobc why JOB`: this build has no jobs.
pub(crate) fn why_job(_word: &str, _format: FormatArg) -> Option<ExitCode> {
    None
}

/// Why a command is not there, and what to do.
fn message(name: &str, system: &str) -> String {
    let why = if system == "linux" {
        format!("this build of jobc has no `jobc {name}`")
    } else {
        format!("`jobc {name}` needs Linux, and this is {}", display_name(system))
    };
    let mut helps = vec![match system {
        "linux" => "install a release, or build jobc with the feature `runtime`, which is on by default",
        "macos" => "install jobc in a Linux virtual machine, such as one of Lima, and run the command there",
        "windows" => "install jobc in WSL 2 (`wsl --install`), and run the command there",
        _ => "install jobc on a Linux host or in a Linux virtual machine, and run the command there",
    }];
    if name == "run" {
        helps.push("`jobc check` checks the job here");
        helps.push(
            "`jobc build --target kubernetes` and `--target openpai` write what a cluster needs to run it",
        );
    }
    jobc_terminal::error(&why, &helps)
}

fn display_name(system: &str) -> &str {
    match system {
        "macos" => "macOS",
        "windows" => "Windows",
        "freebsd" => "FreeBSD",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_gets_its_advice() {
        for (system, why, advice) in [
            ("macos", "`jobc run` needs Linux, and this is macOS", "Lima"),
            ("windows", "`jobc run` needs Linux, and this is Windows", "WSL 2"),
            ("freebsd", "`jobc run` needs Linux, and this is FreeBSD", "Linux virtual machine"),
            ("linux", "this build of jobc has no `jobc run`", "feature `runtime`"),
        ] {
            let text = message("run", system);
            assert!(text.contains(why) && text.contains(advice), "{system}: {text}");
            assert!(text.contains("jobc build --target kubernetes"), "{system}: {text}");
        }
        assert!(!message("ps", "macos").contains("jobc build"));
    }

    #[test]
    fn hidden_commands_accept_everything() {
        for words in
            [&["run"][..], &["run", "--help"], &["image", "build", "-t", "x", "."], &["ps", "--", "-x"]]
        {
            let line = std::iter::once("jobc").chain(words.iter().copied());
            let jobc = with_hidden_commands(Command::new("jobc"), ["run", "ps", "image"].into_iter());
            let matches = jobc.try_get_matches_from(line);
            assert_eq!(matches.expect("accepted").subcommand_name(), Some(words[0]));
        }
    }
}
