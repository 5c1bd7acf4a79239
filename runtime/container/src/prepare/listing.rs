//! The steps to run a container, in order, as text: what `jobc run --dry-run` prints.
//!
//! The steps of the first process are most of it. Around them stand what its maker does (cgroups, the process
//! itself, hooks of the host's side) and what its trampoline does last.

use std::fmt;

use jobc_schema::plural;
use jobc_schema::shell;
use oci_spec::runtime::{Hook, LinuxSeccomp, Spec};

use crate::child::report::Gate;
use crate::hooks::Stage;
use crate::namespaces;
use crate::operation::{Operation, Step};
use crate::seccomp::Program as Filter;
use crate::start::PreparedProcess;

/// Something that is done, and the field of config.json that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The step.
    pub text: String,
    /// A JSON Pointer into config.json; nothing for what is always done.
    pub pointer: Option<String>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.pointer.as_ref().map_or(Ok(()), |place| write!(f, "  [{place}]"))
    }
}

/// Lists what is done to run a container; `before` is what comes before there is a process, such as its cgroups.
pub fn listing(before: Vec<String>, prepared: &PreparedProcess, spec: &Spec) -> Vec<Line> {
    let linux = spec.linux().as_ref();
    let profile = linux.and_then(|linux| linux.seccomp().as_ref());
    let mut list = Listing(before.into_iter().map(|words| Line { text: words, pointer: None }).collect());
    for join in &prepared.join_before_clone {
        list.push("/linux/namespaces", join.to_string());
    }
    list.push(
        "/linux/namespaces",
        match prepared.namespaces {
            0 => "make the process".to_owned(),
            new => format!("make the process in new namespaces: {}", namespaces::flag_names(new)),
        },
    );
    for Step { operation, pointer: place } in &prepared.steps {
        list.0.push(Line { text: operation.to_string(), pointer: place.clone() });
        if matches!(operation, Operation::Wait(Gate::Hooks)) {
            list.hooks(Stage::Prestart, spec);
            list.hooks(Stage::CreateRuntime, spec);
        }
    }
    list.0.push(Line { text: "execute the trampoline, a sealed file in memory".to_owned(), pointer: None });
    if let Some(filter) = &prepared.program.filter {
        list.push("/linux/seccomp", describe_filter(filter, profile));
    }
    let arguments: Vec<_> = prepared.program.arguments.iter().map(|word| word.to_string_lossy()).collect();
    list.push("/process/args", format!("execute {}", shell::join(arguments.iter().map(|word| &**word))));
    list.hooks(Stage::Poststart, spec);
    list.hooks(Stage::Poststop, spec);
    list.0
}

/// The lines so far.
struct Listing(Vec<Line>);

impl Listing {
    fn push(&mut self, place: &str, words: String) {
        self.0.push(Line { text: words, pointer: Some(place.to_owned()) });
    }

    /// The hooks that the maker runs at a stage.
    fn hooks(&mut self, stage: Stage, spec: &Spec) {
        let when = match stage {
            Stage::Prestart | Stage::CreateRuntime => "",
            Stage::Poststart => "as it runs, ",
            Stage::Poststop => "after it exits, ",
        };
        let hooks = spec.hooks().as_ref().map_or(&[][..], |hooks| stage.hooks_of(hooks));
        for (index, hook) in hooks.iter().enumerate() {
            self.push(
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

fn describe_filter(filter: &Filter, profile: Option<&LinuxSeccomp>) -> String {
    let mut words = format!("load a seccomp filter of {} instructions", filter.instructions.len());
    if let Some(profile) = profile {
        let rules = profile.syscalls().as_deref().unwrap_or_default();
        let calls: usize = rules.iter().map(|rule| rule.names().len()).sum();
        words += &format!(
            ", {} for {}, else {}",
            plural(rules.len(), "rule"),
            plural(calls, "call"),
            profile.default_action()
        );
    }
    if filter.notifies() {
        words += ", with a listener";
    }
    words + ", right before the program"
}
