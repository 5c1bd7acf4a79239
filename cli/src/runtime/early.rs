//! The commands that come before all others, since a container must start in milliseconds: only their own options are
//! built, and nothing of the compiler is used.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use jobc_job::supervisor::{on_nodes, start};
use jobc_oci::RUNTIME_FAILURE_EXIT_CODE;
use jobc_remote::slurm::login;
use jobc_terminal::{eprint, report_panic};

use super::args::RunCommand;
use super::commands;
use super::message::container_error;
use crate::color::color_setting;
use crate::settings;

/// A hidden command by which this program starts itself, and its function.
type InternalCommand = (&'static str, fn(std::env::ArgsOs) -> ExitCode);

const INTERNAL_COMMANDS: &[InternalCommand] = &[
    (jobc_container::probe::COMMAND, jobc_container::probe::main),
    (jobc_job::network::COMMAND, jobc_job::network::hold),
    (jobc_image::unpack::COMMAND, jobc_image::unpack::become_worker),
    (jobc_image::build::worker::COMMAND, jobc_image::build::worker::main),
    (jobc_gpu::hook::COMMAND, jobc_gpu::hook::main),
    (jobc_gpu::mps::COMMAND, jobc_gpu::mps::holder::main),
    (jobc_gpu::nvml::COMMAND, jobc_gpu::nvml::run_query_process),
    (start::COMMAND, supervise),
    (jobc_job::notice::COMMAND, |words| jobc_job::notice::main(words)),
    (jobc_job::node::front::COMMAND, jobc_job::node::front::main),
    (jobc_job::node::agent::COMMAND, jobc_job::node::agent::main),
    (jobc_job::node::events::COMMAND, jobc_job::node::events::main),
    (jobc_job::node::SUPERVISE, on_nodes::main),
    (login::COMMAND, login::main),
    (super::plugin_sandbox::COMMAND, super::plugin_sandbox::main),
];

/// `jobc run`, `jobc oci` and the internal commands, selected by the first word, or by the name `jobc-oci` as which podman
/// may call this file.
pub(crate) fn run_early_command() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let renamed = Path::new(&name).file_name().is_some_and(|name| name == "jobc-oci");
    let word = if renamed { Some("oci".into()) } else { words.next() };
    if let Some((_, command)) =
        INTERNAL_COMMANDS.iter().find(|(name, _)| word.as_deref() == Some(name.as_ref()))
    {
        return Some(command(words));
    }
    let words = std::iter::once(name).chain(words);
    if word.as_deref() == Some("oci".as_ref()) {
        return Some(jobc_oci::main(words).into());
    }
    if word.as_deref() != Some("run".as_ref()) {
        return None;
    }
    std::panic::set_hook(Box::new(|panic| {
        jobc_container::terminal::raw_mode::restore();
        report_panic(panic);
        std::process::exit(i32::from(RUNTIME_FAILURE_EXIT_CODE));
    }));
    Some(ExitCode::from(match RunCommand::try_parse_from(words) {
        Ok(only) => {
            if let Err(error) = settings::load() {
                eprint(&error.to_string());
                return Some(RUNTIME_FAILURE_EXIT_CODE.into());
            }
            only.color.unwrap_or_else(color_setting).write_global();
            commands::run::run(&only.run, only.format)
        }
        Err(error) => {
            let words: Vec<_> =
                std::env::args_os().skip(2).map(|word| word.to_string_lossy().into_owned()).collect();
            match missing_dashes(&error, &words).or_else(|| option_of_job(&error, &words)) {
                Some(message) => {
                    eprint(&message);
                    RUNTIME_FAILURE_EXIT_CODE
                }
                None => jobc_oci::report_usage_error(&error),
            }
        }
    }))
}

/// The message for `jobc run python3 train.py`; `words` follow `run`.
fn missing_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    let [program, second, ..] = words else { return None };
    let is_second =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word == second);
    if error.kind() != ErrorKind::UnknownArgument
        || !is_second
        || program.starts_with('-')
        || second.starts_with('-')
    {
        return None;
    }
    let command = jobc_schema::shell::join(words.iter().map(String::as_str));
    Some(jobc_terminal::error(
        &format!("unexpected argument `{second}` after `{program}`"),
        &[&format!("to run a command, write `--` before it: `jobc run -- {command}`")],
    ))
}

/// The message for `jobc run job.yaml --lr 0.1`: the job has parameters, and no program gets options.
fn option_of_job(error: &clap::Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let file = words.iter().find(|word| !word.starts_with('-'))?;
    let is_job = [".yaml", ".yml", ".json"].iter().any(|end| file.ends_with(end));
    let name = option.strip_prefix("--").filter(|_| is_job && error.kind() == ErrorKind::UnknownArgument)?;
    let at = words.iter().position(|word| word.split('=').next() == Some(option))?;
    let value = words[at].split_once('=').map(|(_, value)| value).or(words.get(at + 1).map(String::as_str));
    let value = value.filter(|value| !value.starts_with('-')).unwrap_or("VALUE");
    Some(jobc_terminal::error(
        &format!("unexpected argument `{option}` after `{file}`"),
        &[&format!(
            "to set a parameter of the job, write `--set {name}={value}`; `jobc run --help` has the options"
        )],
    ))
}

/// The supervisor of a job, which `jobc run` starts. It runs as long as the job, and uses nothing of the compiler.
fn supervise(words: std::env::ArgsOs) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        report_panic(panic);
        std::process::exit(i32::from(RUNTIME_FAILURE_EXIT_CODE));
    }));
    let words: Vec<_> = words.collect();
    let code = start::become_supervisor(&words).unwrap_or_else(|error| {
        eprint(&container_error(&error));
        error.exit_code()
    });
    code.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_dashes_is_recognized() {
        let check = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = RunCommand::try_parse_from(std::iter::once("run".to_owned()).chain(words.clone()));
            missing_dashes(&error.expect_err("an invalid command line"), &words)
        };
        let found = check("python3 train.py --lr 1").expect("a message");
        assert!(found.contains("write `--` before it: `jobc run -- python3 train.py --lr 1`"), "{found}");
        assert_eq!(check("job.yaml --nope"), None);
        assert_eq!(check("--nope"), None);
        let of_job = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = RunCommand::try_parse_from(std::iter::once("run".to_owned()).chain(words.clone()));
            option_of_job(&error.expect_err("an invalid command line"), &words).unwrap_or_default()
        };
        assert!(of_job("job.yaml --seed 3").contains("`--set seed=3`"));
        assert!(of_job("a/b.yml --lr=0.2 -d").contains("`--set lr=0.2`"));
        assert!(of_job("-d job.yaml --flag").contains("`--set flag=VALUE`"));
        assert_eq!(of_job("--nope"), "");
    }
}
