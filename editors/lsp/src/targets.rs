//! The targets that a job can be shown for, and the one that the client selected.

use camino::Utf8PathBuf;
use jobc_compiler::built_in_targets;
use jobc_compiler::document::{Entry, Node};
use jobc_schema::BackendName;
use lsp_types::Uri;
use serde::Serialize;

use crate::analysis::{Choice, parse_alone};
use crate::uri;

/// The selection of all targets of a file, including those that are not in its `default`.
const ALL: &str = "*";

/// The targets of a job, and the result of `jobc/targets`.
#[derive(Debug, Serialize)]
pub(crate) struct TargetList {
    /// The URI of the targets file; `None` for the built-in targets.
    file: Option<Uri>,
    targets: Vec<Target>,
    /// The names that the command line uses by default; empty: all.
    default: Vec<String>,
    /// The names that the job is shown for.
    shown: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Target {
    name: String,
    description: String,
    backends: Vec<String>,
}

impl TargetList {
    /// Reads the targets of a job from its targets file, which may be invalid.
    pub(crate) fn of(file: Option<(Utf8PathBuf, String)>) -> Self {
        let read = file.and_then(|(path, text)| Some((parse_alone(Some(&path), &text)?, path)));
        let Some((document, path)) = read else {
            let built_in = built_in_targets::built_in_targets();
            let target = |(name, target): &(&str, jobc_schema::target::Target)| Target {
                name: (*name).to_owned(),
                description: String::new(),
                backends: target.backends.iter().map(|backend| backend.as_str().to_owned()).collect(),
            };
            let targets = built_in.iter().map(target).collect();
            let default = vec![built_in_targets::DEFAULT_TARGET.to_owned()];
            return Self { file: None, targets, default, shown: vec![] };
        };
        let entries = document.root.get("targets").map(Node::entries).unwrap_or_default();
        let target = |entry: &Entry| Target {
            name: entry.key.clone(),
            description: entry.value.get("description").and_then(Node::as_str).unwrap_or_default().to_owned(),
            backends: words(entry.value.get("backends")),
        };
        let targets: Vec<Target> = entries.iter().map(target).collect();
        let known = |name: &String| targets.iter().any(|target| target.name == *name);
        let default = words(document.root.get("default")).into_iter().filter(known).collect();
        Self { file: Some(uri::of(&path)), targets, default, shown: vec![] }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.targets.iter().map(|target| target.name.clone()).collect()
    }

    /// The same targets with the names that the job is shown for, by the client's selection.
    pub(crate) fn shown_for(mut self, choice: &str) -> Self {
        self.shown = self.chosen(choice, None);
        if self.shown.is_empty() {
            self.shown = if self.default.is_empty() { self.names() } else { self.default.clone() };
        }
        self
    }

    /// The targets that the job is shown for, by the client's selection. It applies to jobs that have such a target,
    /// and, if a backend is selected, a target with that backend.
    pub(crate) fn choice(&self, choice: &str, backend: Option<BackendName>) -> Choice {
        Choice { targets: self.chosen(choice, backend), backend }
    }

    /// The names that a selection means; `None` if the job has no such target.
    fn chosen(&self, choice: &str, backend: Option<BackendName>) -> Vec<String> {
        if choice == ALL && self.file.is_some() {
            return self.names();
        }
        let has = |target: &Target| backend.is_none_or(|it| target.backends.iter().any(|b| b == it.as_str()));
        let fits = |target: &&Target| target.name == choice && has(target);
        self.targets.iter().filter(fits).map(|target| target.name.clone()).collect()
    }
}

/// The strings of a list.
fn words(list: Option<&Node>) -> Vec<String> {
    let items = list.map(Node::items).unwrap_or_default();
    items.iter().filter_map(Node::as_str).map(str::to_owned).collect()
}
