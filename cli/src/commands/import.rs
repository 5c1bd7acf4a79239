//! `jobc import`: rewrites a file of another tool as a job file.

mod account;
mod directory;

use std::collections::BTreeMap;
use std::{env, fs};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::import::{Format, Selection, is_option_of_sbatch, text_format};
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, Sources};
use jobc_schema::shell;

use super::schema::modeline;
use crate::args::{FormatArg, ImportArgs, SchemaArg};
use crate::disk::DiskFiles;
use crate::input::{InputError, absolute, directory_of, read_source, reason, selection};
use crate::outcome::Outcome;
use crate::{report, terminal};

/// The name of a command line in findings.
const COMMAND: &str = "<command>";

pub(crate) fn run(import: &ImportArgs, format: FormatArg) -> Outcome {
    if let Some(name) = &import.list {
        return account::list(name, format);
    }
    if let Some(path) = import.job.as_ref().filter(|path| path.is_dir()) {
        return directory::run(import, path, format);
    }
    let (source, directory) = match source(import) {
        Ok(found) => found,
        Err(why) => return super::report_input_error(&why),
    };
    let mut sources = Sources::new();
    let id = sources.add(source);
    let mut named = import.selection.clone();
    if import.job.is_none() && !named.file.is_empty() {
        named.file.remove(0);
    }
    let environment = variables(import, sources.get(id)).map(|source| sources.add(source));
    let selection = match selection(&named, &mut sources) {
        Ok(selection) => {
            let only_named = !import.selection.file.is_empty();
            Selection { only_named, environment, is_sketch: true, ..selection }
        }
        Err(why) => return super::report_input_error(&why),
    };
    let mut sink = Sink::new();
    let (rewritten, account) = rewrite(&mut sources, id, &DiskFiles::new(directory), &selection, &mut sink);
    if import.explain {
        return account::explain(&account, &rewritten, &sources, sink, format);
    }
    let outcome = report::findings(&sources, sink, format, import.output.is_none());
    let (text, targets) = match rewritten {
        RewriteResult::Job(text, targets) => match modeline(SchemaArg::Job) {
            Some(line) => (format!("{line}\n{text}"), targets),
            None => (text, targets),
        },
        RewriteResult::Refused => return outcome,
        RewriteResult::Own => {
            let name = sources.get(id).path();
            terminal::eprint(&format!("jobc: `{name}` is already a job file of jobc\n"));
            return Outcome::UsageError;
        }
    };
    match (&import.targets, &targets) {
        (Some(path), Some(targets)) => {
            if let Err(outcome) = write(path, targets, import.force) {
                return outcome;
            }
            terminal::eprint(&format!("wrote {path}\n"));
        }
        (Some(path), None) => {
            terminal::eprint(&format!(
                "jobc: `{path}` is not written: no part of the file is a setting of a cluster\n"
            ));
        }
        (None, _) => {}
    }
    let Some(path) = &import.output else {
        terminal::print(&text);
        return outcome;
    };
    if let Err(outcome) = write(path, &text, import.force) {
        return outcome;
    }
    terminal::eprint(&format!("wrote {path}; next: jobc build {path}\n"));
    outcome
}

/// What to import, and the directory that its paths are relative to.
fn source(import: &ImportArgs) -> Result<(Source, Utf8PathBuf), InputError> {
    match import.job.as_ref().or(import.selection.file.first()) {
        Some(path) if path != "-" => Ok((read_source(path)?, directory_of(path)?)),
        Some(path) => Ok((read_source(path)?, absolute(Utf8Path::new("."))?)),
        None => {
            let line = shell::join(import.command.iter().map(String::as_str));
            Ok((Source::new(COMMAND, line + "\n"), absolute(Utf8Path::new("."))?))
        }
    }
}

/// The variables of the caller that `sbatch` would read of a batch script, where the user asks for them. Otherwise a job
/// file would depend on who writes it, so they are only named.
fn variables(import: &ImportArgs, script: &Source) -> Option<Source> {
    if text_format(script) != Some(Format::Sbatch) {
        return None;
    }
    let set: BTreeMap<String, String> = env::vars().filter(|(name, _)| is_option_of_sbatch(name)).collect();
    if set.is_empty() {
        return None;
    }
    if import.sbatch_env {
        let lines = set.iter().map(|(name, value)| format!("{name}={}\n", value.replace('\n', " ")));
        return Some(Source::new("<environment>", lines.collect::<String>()));
    }
    let names: Vec<String> = set.keys().map(|name| format!("`{name}`")).collect();
    terminal::eprint(&format!(
        "jobc: sbatch would read {} of the environment; `--sbatch-env` reads them too\n",
        names.join(", ")
    ));
    None
}

fn write(path: &Utf8Path, text: &str, force: bool) -> Result<(), Outcome> {
    if path.exists() && !force {
        terminal::eprint(&format!("jobc: `{path}` exists; use `--force` to overwrite it\n"));
        return Err(Outcome::UsageError);
    }
    fs::write(path, text).map_err(|error| {
        terminal::eprint(&format!("jobc: cannot write `{path}`: {}\n", reason(&error)));
        Outcome::SystemError
    })
}
