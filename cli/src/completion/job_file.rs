//! Names in the job file and in the targets file of the command line, or else of the current directory.

use std::ffi::OsStr;

use camino::{Utf8Path, Utf8PathBuf};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::document::{Document, Node};
use jobc_compiler::source::{Source, Sources};
use jobc_compiler::{files, parse};

use super::{beginning_with, words};
use crate::boundary;

/// The names that a job file may have without being named.
const JOB_FILES: [&str; 3] = ["job.yaml", "job.yml", "job.json"];

/// Targets of the targets file, or the built-in ones.
pub(crate) fn targets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let words = words::before_cursor();
        let file = words::option(&words, "--targets").map(Utf8PathBuf::from).or_else(|| {
            let job = job_path(&words);
            let directory = job.as_deref().and_then(Utf8Path::parent).unwrap_or(Utf8Path::new(""));
            let directory = Utf8Path::new(".").join(directory).canonicalize_utf8().ok()?;
            let exists = |path: &Utf8Path| {
                if path.file_name() == Some(".git") { path.exists() } else { path.is_file() }
            };
            files::find_targets(&directory, exists, |directory| boundary::is_last(directory.as_std_path()))
        });
        let names = file.and_then(|file| read(&file)).map(|document| keys(&document.root, "targets"));
        let built_in = || built_in_targets().iter().map(|(name, _)| (*name).to_owned()).collect();
        names.unwrap_or_else(built_in).into_iter().map(CompletionCandidate::new).collect()
    })
}

/// `NAME=` of each parameter of the job file.
pub(crate) fn parameters() -> ArgValueCompleter {
    with_job_file(|root| assignments(root, "params"))
}

/// `NAME=` of each key of a field.
pub(crate) fn assignments(root: &Node, field: &str) -> Vec<CompletionCandidate> {
    keys(root, field).into_iter().map(|name| CompletionCandidate::new(format!("{name}="))).collect()
}

/// Candidates from the job file at hand.
pub(crate) fn with_job_file(candidates: fn(&Node) -> Vec<CompletionCandidate>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let document = job_path(&words::before_cursor()).and_then(|path| read(&path));
        document.map(|document| beginning_with(candidates(&document.root), current)).unwrap_or_default()
    })
}

/// The first word after the command that is a job file or a directory with one, or else the one of this directory.
fn job_path(words: &[String]) -> Option<Utf8PathBuf> {
    let given = words.iter().skip(1).filter(|word| !word.starts_with('-')).map(Utf8PathBuf::from);
    let in_directory =
        |path: &Utf8Path| JOB_FILES.iter().map(|name| path.join(name)).find(|path| path.is_file());
    let known = given.filter_map(|path| {
        let is_job =
            path.is_file() && ["yaml", "yml", "json"].contains(&path.extension().unwrap_or_default());
        if is_job { Some(path) } else { in_directory(&path).filter(|_| path.is_dir()) }
    });
    known.into_iter().next().or_else(|| in_directory(Utf8Path::new("")))
}

fn read(path: &Utf8Path) -> Option<Document> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path, std::fs::read_to_string(path).ok()?));
    parse::parse(&sources, id, &mut Sink::new())
}

/// The keys of a map of the job file.
pub(crate) fn keys(root: &Node, map: &str) -> Vec<String> {
    let entries = root.get(map).map_or(&[][..], Node::entries);
    entries.iter().map(|entry| entry.key.clone()).collect()
}
