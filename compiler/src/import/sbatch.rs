//! Batch scripts of Slurm.
//!
//! A script without a container becomes a job on the files of the host (`image: host`), since that is where it ran. One
//! task that `srun` starts is one instance. What no `srun` starts runs in each instance, so the lines before it do too: what
//! must be the same in all is replaced, and what changes something is a warning.

mod body;
mod component;
mod directives;
mod environment;
mod het;
mod image;
mod layout;
mod options;
mod outside;
mod own;
mod request;
mod scan;
mod script;
mod settings;
mod steps;
mod unused;
mod values;
mod variables;

use std::ops::Range;

use camino::Utf8Path;

use crate::diagnostic::Sink;
use crate::source::{SourceId, Sources, Span};

use super::draft::Draft;
use super::read::{Comments, Read};
use super::selection::Selection;

pub(super) use environment::option as option_of_variable;
pub(super) use options::OPTIONS;
pub use request::requested;

/// Whether a text is a batch script of Slurm.
pub(super) fn is_script(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let is_option = |line: &str| line.starts_with("#SBATCH ") || line.starts_with("#SBATCH\t");
    let is_yaml = |line: &str| {
        ["version:", "roles:", "services:", "apiVersion:"].iter().any(|key| line.starts_with(key))
    };
    text.lines().any(is_option) && (text.starts_with("#!") || !text.lines().any(is_yaml))
}

/// A script whose options are read.
struct Script<'t> {
    id: SourceId,
    path: &'t Utf8Path,
    text: &'t str,
    /// Where the commands begin.
    start: usize,
    /// The first line.
    first: Span,
    /// Options behind the first command.
    late: Vec<Range<usize>>,
}

/// Reads a batch script.
pub(super) fn read(sources: &Sources, id: SourceId, selection: &Selection, sink: &mut Sink) -> Read {
    let source = sources.get(id);
    let text = source.text();
    let first = Span::new(id, 0, text.find('\n').unwrap_or(text.len()));
    let errors = sink.error_count();
    let mut draft = Draft::new(first, sink);
    if text.contains("\r\n") {
        draft.invalid(
            first,
            "the lines end as on Windows (CRLF), which sbatch refuses",
            "save the script with Unix line ends",
        );
    }
    let mut head = directives::read(text, id, &mut draft);
    if let (Some(variables), Some(first)) = (selection.environment, head.components.first_mut()) {
        environment::read(sources, variables, first, &mut draft);
    }
    if !text.trim_start_matches('\u{feff}').starts_with("#!") {
        draft.invalid(
            first,
            "the first line is not `#!`: sbatch refuses the script",
            "begin the script with `#!/bin/bash`",
        );
    }
    let late = directives::late(text, head.body, id, &mut draft);
    let script = Script { id, path: source.path(), text, start: head.body, first, late };
    let (document, targets, account) = if let [component] = &head.components[..] {
        component::read(&script, component, None, &mut draft);
        let (document, targets, account) = draft.finish();
        match own::role(text) {
            Some(role) => (het::renamed(document, role), targets, account),
            None => (document, targets, account),
        }
    } else {
        let (.., account) = draft.finish();
        het::read(&script, &head.components, account, sink)
    };
    let has_errors = sink.error_count() > errors;
    let comments: Comments =
        head.comments.into_iter().map(|(line, text, alone)| (line, (text, alone))).collect();
    Read { document: (!has_errors).then_some(document), targets, account, comments: vec![(id, comments)] }
}
