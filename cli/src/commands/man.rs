//! `jobc man`: manual pages, in roff.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;

use crate::outcome::Outcome;
use crate::terminal;

/// Prints the page of one command, or of `jobc` itself.
pub(crate) fn run(command: Option<&str>, all: Command) -> Outcome {
    let all = with_forms(all);
    let page = match command {
        None => clap_mangen::Man::new(all),
        Some(name) => {
            if let Some(found) = all.find_subcommand(name) {
                clap_mangen::Man::new(found.clone())
            } else {
                terminal::eprint(&format!(
                    "jobc: unknown command `{name}`; `jobc --help` lists the commands\n"
                ));
                return Outcome::UsageError;
            }
        }
    };
    let mut text = Vec::new();
    if let Err(error) = page.render(&mut text) {
        terminal::eprint(&format!("jobc: cannot make the page: {error}\n"));
        return Outcome::SystemError;
    }
    terminal::print(&String::from_utf8_lossy(&text));
    Outcome::Success
}

/// Writes the pages of all commands and their subcommands into a directory, as `jobc-image-build.1`. Hidden commands have
/// none.
pub(crate) fn run_all(directory: &Path, all: Command) -> Outcome {
    if let Err(error) = write_all(directory, all) {
        terminal::eprint(&format!("jobc: cannot write manual pages to `{}`: {error}\n", directory.display()));
        return Outcome::SystemError;
    }
    Outcome::Success
}

fn write_all(directory: &Path, all: Command) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(with_forms(all), directory)
}

/// Commands whose SYNOPSIS has the forms that their help has, instead of every option.
fn with_forms(all: Command) -> Command {
    fn set_usage(mut command: Command) -> Command {
        let usage = command.render_usage().to_string();
        for subcommand in command.get_subcommands_mut() {
            *subcommand = set_usage(std::mem::take(subcommand));
        }
        command.override_usage(usage.trim_start_matches("Usage:").trim().to_owned())
    }
    let mut all = all.disable_help_subcommand(true);
    all.build();
    set_usage(all)
}
