//! All that is done to run a container, in order and in words: what `jobc run --dry-run` prints.
//!
//! The steps of the first process are most of it. Around them stand what its maker does (cgroups, the process
//! itself, hooks of the host's side) and what its trampoline does last.

use std::fmt;

use oci_spec::runtime::{Hook, LinuxSeccomp, Spec};

use crate::child::report::Gate;
use crate::hooks::Stage;
use crate::namespaces;
use crate::operation::{Operation, Step};
use crate::seccomp::Program as Filter;
use crate::start::Prepared;

/// Something that is done, and the field of config.json that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What is done.
    pub words: String,
    /// A JSON Pointer into config.json; nothing for what is always done.
    pub place: Option<String>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, "  [{place}]"))
    }
}

/// Lists what is done to run a container; `before` is what comes before there is a process, such as its cgroups.
pub fn listing(before: Vec<String>, prepared: &Prepared, spec: &Spec) -> Vec<Line> {
    let linux = spec.linux().as_ref();
    let profile = linux.and_then(|linux| linux.seccomp().as_ref());
    let mut list = Listing(before.into_iter().map(|words| Line { words, place: None }).collect());
    for join in &prepared.joined_before {
        list.at("/linux/namespaces", join.to_string());
    }
    list.at(
        "/linux/namespaces",
        match prepared.namespaces {
            0 => "make the process".to_owned(),
            new => format!("make the process in new namespaces: {}", namespaces::names(new)),
        },
    );
    for Step { operation, place } in &prepared.steps {
        let words = match operation {
            Operation::LoadFilter(filter) => {
                filter_words(filter, profile, "while it still has the capabilities for it")
            }
            other => other.to_string(),
        };
        list.0.push(Line { words, place: place.clone() });
        if matches!(operation, Operation::Wait(Gate::Hooks)) {
            list.hooks(Stage::Prestart, spec);
            list.hooks(Stage::CreateRuntime, spec);
        }
    }
    list.0.push(Line { words: "execute the trampoline, a sealed file in memory".to_owned(), place: None });
    if let Some(filter) = &prepared.program.filter {
        list.at("/linux/seccomp", filter_words(filter, profile, "right before the program"));
    }
    let arguments = prepared.program.arguments.iter().map(|word| quoted(&word.to_string_lossy()));
    list.at("/process/args", format!("execute {}", arguments.collect::<Vec<_>>().join(" ")));
    list.hooks(Stage::Poststart, spec);
    list.hooks(Stage::Poststop, spec);
    list.0
}

/// The lines so far.
struct Listing(Vec<Line>);

impl Listing {
    fn at(&mut self, place: &str, words: String) {
        self.0.push(Line { words, place: Some(place.to_owned()) });
    }

    /// The hooks that the maker runs at a stage.
    fn hooks(&mut self, stage: Stage, spec: &Spec) {
        let when = match stage {
            Stage::Prestart | Stage::CreateRuntime => "",
            Stage::Poststart => "as it runs, ",
            Stage::Poststop => "after it exits, ",
        };
        let hooks = spec.hooks().as_ref().map_or(&[][..], |hooks| stage.of(hooks));
        for (index, hook) in hooks.iter().enumerate() {
            self.at(
                &format!("/hooks/{stage}/{index}"),
                format!("{when}run the {stage} hook {}", program(hook)),
            );
        }
    }
}

/// A hook's program, as the hooks that are steps have it.
fn program(hook: &Hook) -> String {
    format!("`{}`", hook.path().display())
}

fn filter_words(filter: &Filter, profile: Option<&LinuxSeccomp>, when: &str) -> String {
    let mut words = format!("load a seccomp filter of {} instructions", filter.instructions.len());
    if let Some(profile) = profile {
        let rules = profile.syscalls().as_deref().unwrap_or_default();
        let calls: usize = rules.iter().map(|rule| rule.names().len()).sum();
        words += &format!(
            ", {} for {}, else {}",
            counted(rules.len(), "rule"),
            counted(calls, "call"),
            profile.default_action()
        );
    }
    if filter.notifies() {
        words += ", with a listener";
    }
    format!("{words}, {when}")
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
