//! Completions from the current job file and the schemas.
//!
//! The script that `jobc completions` prints runs `jobc` at each Tab, with the words so far and a variable that says
//! so. Unreadable files give no completions; errors are not reported.

pub(crate) mod job_file;
mod shells;
pub(crate) mod words;

use std::ffi::OsStr;

use camino::Utf8Path;
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter};
use jobc_schema::BackendName;

use crate::examples::{self, EXAMPLES};
use crate::{fields, plugins};
pub(crate) use job_file::{parameters, targets};
pub(crate) use shells::script;

/// The environment variable by which a completion script asks for completions; its value is the shell.
const VARIABLE: &str = "JOBC_COMPLETE";

/// Answers a completion script, and ends the process; does nothing without its variable.
pub(crate) fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).shells(shells::all()).complete();
}

/// Files that may hold a job, and directories.
pub(crate) fn job_files() -> ArgValueCompleter {
    let is_job = |path: &std::path::Path| {
        path.is_dir()
            || path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|it| end == *it))
    };
    ArgValueCompleter::new(PathCompleter::any().filter(is_job))
}

/// Directories.
pub(crate) fn directories() -> ArgValueCompleter {
    ArgValueCompleter::new(PathCompleter::dir())
}

/// Any files.
pub(crate) fn files() -> ArgValueCompleter {
    ArgValueCompleter::new(PathCompleter::any())
}

/// The diagnostic codes, and fields: those below the part before the last dot, or by their keys. The names that a file
/// chooses are completed as they are written, or left out.
pub(crate) fn topics() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let mut fields: Vec<(String, String)> = match current.rsplit_once('.') {
            Some((above, _)) => {
                let below = fields::find(above).into_iter().flat_map(fields::below);
                let key = |field: &fields::Field| field.path.last().cloned().unwrap_or_default();
                below.map(|(_, field)| (format!("{above}.{}", key(field)), field.summary())).collect()
            }
            None => fields::keys(current.is_empty()),
        };
        fields.sort();
        fields.dedup_by(|a, b| a.0 == b.0);
        let codes = jobc_compiler::diagnostic::Code::all();
        let codes = codes.map(|(code, title)| described(code.as_str(), title));
        let fields = fields.iter().map(|(name, summary)| described(name, summary));
        beginning_with(fields.chain(codes).collect(), OsStr::new(&*current))
    })
}

/// The backends that this program has, and plug-ins.
pub(crate) fn backends() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let installed = plugins::installed(Utf8Path::new(".")).into_iter();
        let installed = installed.map(|plugin| described(plugin.name.as_str(), &plugin.place));
        BackendName::ALL.iter().map(|name| name.as_str().into()).chain(installed).collect()
    })
}

/// The built-in templates, by the name that `uses` has.
pub(crate) fn templates() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let is_full = current.to_string_lossy().starts_with("std/") || current.is_empty();
        let candidates = examples::templates().map(|template| {
            let prefix = if is_full { "std/" } else { "" };
            described(&format!("{prefix}{}", template.name), &template.describe().description)
        });
        beginning_with(candidates.collect(), current)
    })
}

/// The examples, and the built-in templates.
pub(crate) fn starters() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let examples = EXAMPLES.iter().map(|example| described(example.name, example.about));
        let templates = examples::templates()
            .map(|template| described(&format!("std/{}", template.name), &template.describe().description));
        examples.chain(templates).collect()
    })
}

/// A candidate with its description.
pub(crate) fn described(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.to_owned().into()))
}

/// Keeps the candidates that begin with a word.
pub(crate) fn beginning_with(
    mut candidates: Vec<CompletionCandidate>,
    current: &OsStr,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    candidates.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(&*current));
    candidates
}
