//! Turns a bundle into a list of operations, with every string and descriptor ready.
//!
//! The order is the kernel's: who one is (user namespace, ids), where one is counted (control groups), what one sees
//! (namespaces, mounts, devices), then what one may do (limits, capabilities, filter), and last the program. Nothing is
//! decided here that config.json decides.

mod files;
mod identity;
pub mod join;
mod program;
mod rights;

use std::ffi::CString;

pub use join::prepare_further;

use self::rights::Rights;
use crate::bundle::Bundle;
use crate::cgroup::{self, Layout};
use crate::container::Options;
use crate::error::{Error, Kind, Result};
use crate::hooks::inside::{HookInside, StateText};
use crate::id_map::IdMaps;
use crate::labels::{Field, Label};
use crate::machine::Machine;
use crate::namespaces::{Join, Namespace};
use crate::operation::{Operation, Step};
use crate::root::Root;
use crate::seccomp::Program as Filter;
use crate::seccomp::listener::Agent;
use crate::secrets::Variables;

/// A container that could be started: its steps, and what its parent has to do.
#[derive(Debug)]
pub struct Prepared {
    /// The new process's steps, in order.
    pub steps: Vec<Step>,
    /// The new namespaces that clone3(2) makes, as `CLONE_NEW*` bits.
    pub namespaces: u32,
    /// Namespaces that must be joined before the process is made.
    pub joined_before: Vec<Join>,
    /// Id maps that newuidmap and newgidmap, or this process, must write for the new one.
    pub id_maps: Option<IdMaps>,
    /// Whether the parent runs hooks before the root is entered.
    pub hooks: bool,
    /// Whether this process forbids others to look into it before the new one is made, rather than as a step.
    pub hidden: bool,
    /// Whether the container is in a user namespace of its own.
    pub in_user_namespace: bool,
    /// Who gets the listener of its filter, where it has one ([`Prepared::notifies`]); set by who asks for the process.
    pub agent: Option<Agent>,
    /// What is executed.
    pub program: Program,
    /// Descriptors that steps name.
    pub descriptors: Vec<std::os::fd::OwnedFd>,
    /// Where the program's failure goes; to who makes the process unless given.
    pub report: Option<std::os::fd::OwnedFd>,
    /// What a person should know of it, a line each: nothing is refused, and something is not as it was written.
    pub said: Vec<String>,
}

impl Prepared {
    /// Whether calls of the program are decided by an agent: nothing where not, else when the filter is loaded.
    pub fn notifies(&self) -> Option<Loaded> {
        let early =
            |step: &Step| matches!(&step.operation, Operation::LoadFilter(filter) if filter.notifies());
        match &self.program.filter {
            Some(filter) if filter.notifies() => Some(Loaded::Last),
            _ => self.steps.iter().any(early).then_some(Loaded::Early),
        }
    }
}

/// When a filter is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// By the trampoline, right before the program.
    Last,
    /// As a step, while there is the right to.
    Early,
}

/// Where control groups are, and which the container gets.
#[derive(Clone, Copy, Debug)]
pub struct ControlGroups<'a> {
    /// The machine's.
    pub layout: &'a Layout,
    /// The container's.
    pub plan: &'a cgroup::Plan,
}

/// The user's program, before its trampoline is made.
#[derive(Debug)]
pub struct Program {
    /// The paths that are tried, in order.
    pub candidates: Vec<CString>,
    /// The arguments.
    pub arguments: Vec<CString>,
    /// The environment.
    pub environment: Vec<CString>,
    /// What belongs to the environment and is shown nowhere.
    pub secret_environment: Variables,
    /// The filter that the trampoline loads; nothing where there is none, or it is a step.
    pub filter: Option<Filter>,
    /// What a security module is to make of it; set by the trampoline.
    pub label: Option<Label>,
}

/// The steps while they are listed.
#[derive(Debug, Default)]
struct Steps {
    list: Vec<Step>,
    /// What a person should know of them.
    said: Vec<String>,
}

impl Steps {
    /// A step that is always made.
    fn always(&mut self, operation: Operation) {
        self.list.push(Step { operation, place: None });
    }

    /// What a person should know of a field of config.json, though nothing is refused.
    fn say(&mut self, place: &str, text: impl std::fmt::Display) {
        self.said.push(format!("config.json: {place}: {text}"));
    }

    /// A step that a field of config.json asks for.
    fn at(&mut self, place: impl Into<String>, operation: Operation) {
        self.list.push(Step { operation, place: Some(place.into()) });
    }
}

/// Lists the steps from a bundle to its running program.
///
/// `groups` are where the container's control groups will be; nothing where it gets none.
///
/// # Errors
///
/// What cannot be kept, at its place in config.json. Nothing is changed on the machine.
pub fn prepare(
    bundle: &Bundle,
    root: &Root,
    options: &mut Options,
    machine: &Machine,
    groups: Option<&ControlGroups<'_>>,
) -> Result<Prepared> {
    let spec = &bundle.config.spec;
    let process = spec.process().as_ref().ok_or_else(|| {
        Error::new(Kind::Config, "there is no `process`, so there is nothing to start").at("/process")
    })?;
    let label = Label::of(process, Field::is_kept_here)?;
    let mut steps = Steps::default();
    steps.always(Operation::EndWithParent(true));
    steps.always(Operation::SetUmask(0));
    let identity = identity::list(&mut steps, spec, options, machine)?;
    if let Some(streams) = &options.streams {
        let streams = streams.each_ref().map(std::os::fd::AsRawFd::as_raw_fd);
        steps.always(Operation::SetStreams { streams, owner: process.user().uid() });
    }
    files::list(&mut steps, bundle, root, options, groups, &identity, label.as_ref())?;
    // Only now: with a supervisor's descriptors of many tasks, those that the steps above open have higher numbers.
    if let Some((soft, hard)) = options.open_files {
        let resource = linux_raw_sys::general::RLIMIT_NOFILE;
        steps.always(Operation::SetLimit { name: "RLIMIT_NOFILE", resource, soft, hard });
    }
    let Rights { filter, becomes } = rights::list(&mut steps, spec, process, &identity, machine)?;
    let environment = std::mem::take(&mut options.secret_environment);
    let program = program::of(process, filter, label, root.folders(), environment)?;
    if becomes || !options.end_with_parent {
        // A change of the user forgets it (prctl(2), PR_SET_PDEATHSIG).
        steps.always(Operation::EndWithParent(options.end_with_parent));
    }
    // Before a hold: what other processes of a gang are told by the end of a pipe must not stay open in this one.
    let first = 3 + i32::try_from(options.preserve_fds).unwrap_or(i32::MAX - 3);
    steps.always(Operation::CloseFrom { first, except: Vec::new() });
    if let Some(hold) = &options.hold {
        steps.at("/process/args/0", Operation::FindProgram(program.candidates.clone()));
        steps.always(Operation::Hold(std::os::fd::AsRawFd::as_raw_fd(hold)));
    }
    list_hooks(&mut steps, bundle, options, "startContainer")?;
    steps.always(Operation::DefaultSignals(machine.ignored));
    let mut descriptors = identity.descriptors;
    descriptors.extend(options.hold.take());
    descriptors.extend(options.console.take());
    descriptors.extend(options.streams.take().into_iter().flatten());
    Ok(Prepared {
        steps: steps.list,
        namespaces: identity.new,
        // Whose pid namespace is joined sees the new process from its first moment on, when no step is made yet. Only
        // root's files below /proc can still be written then.
        hidden: identity.joined_before.iter().any(|join| join.kind == Namespace::Pid)
            && rustix::process::geteuid().is_root(),
        joined_before: identity.joined_before,
        id_maps: identity.id_maps,
        hooks: parent_hooks(spec),
        in_user_namespace: identity.in_user_namespace,
        agent: None,
        program,
        descriptors,
        report: options.report.take(),
        said: steps.said,
    })
}

/// Whether there are hooks that the parent runs between the mounts and the entering of the root.
fn parent_hooks(spec: &oci_spec::runtime::Spec) -> bool {
    spec.hooks().as_ref().is_some_and(|hooks| {
        #[allow(deprecated)]
        let prestart = hooks.prestart();
        [prestart, hooks.create_runtime()]
            .into_iter()
            .any(|stage| stage.as_ref().is_some_and(|list| !list.is_empty()))
    })
}

/// Lists the hooks of a stage that run inside the container's namespaces.
fn list_hooks(steps: &mut Steps, bundle: &Bundle, options: &Options, stage: &'static str) -> Result<()> {
    let Some(hooks) = bundle.config.spec.hooks() else { return Ok(()) };
    let (list, status) = if stage == "createContainer" {
        (hooks.create_container(), "creating")
    } else {
        (hooks.start_container(), "created")
    };
    let spec = &bundle.config.spec;
    let annotations =
        serde_json::json!(spec.annotations().iter().flatten().collect::<std::collections::BTreeMap<_, _>>());
    let state = StateText::new(spec.version(), &options.id, status, &bundle.dir, &annotations);
    for (index, hook) in list.iter().flatten().enumerate() {
        let place = format!("/hooks/{stage}/{index}");
        let inside = HookInside::new(stage, hook, &state).map_err(|error| error.at(&place))?;
        steps.at(place, Operation::Hook(inside));
    }
    Ok(())
}

/// A C string from config.json, which must not hold a NUL byte.
fn c_string(text: impl Into<Vec<u8>>, place: &str) -> Result<CString> {
    CString::new(text).map_err(|_| {
        Error::new(Kind::Config, "a NUL byte cannot stand here").at(place).help("remove `\\u0000`")
    })
}
