//! The hooks of a container that run outside of it, each with the state as it is then.

use std::os::fd::AsFd;

use oci_spec::runtime::Spec;

use crate::hooks::{self, HookContext, Stage};
use crate::oci_state::{State, Status};
use crate::state::Record;
use jobc_sys::error::{Error, Result};
use jobc_sys::signals::Signals;

/// Runs the hooks of a stage, up to the first that fails. `pid` is the container's first process, 0 where it is gone.
///
/// A signal of `given_up` ends the hook that runs, and with it the stage.
pub(super) fn run(
    stage: Stage,
    spec: &Spec,
    record: &Record,
    (status, pid): (Status, u32),
    given_up: Option<&Signals>,
) -> Result<()> {
    if !has_hooks(stage, spec) {
        return Ok(());
    }
    with_state(spec, record, status, pid, |given| {
        let given = HookContext { cancel_fd: given_up.map(AsFd::as_fd), ..given };
        hooks::run(stage, spec.hooks().as_ref(), given)
    })
}

/// Whether a bundle has hooks of a stage.
pub(super) fn has_hooks(stage: Stage, spec: &Spec) -> bool {
    spec.hooks().as_ref().is_some_and(|hooks| !stage.hooks_of(hooks).is_empty())
}

/// Runs all hooks of the last stage; returns what went wrong with each.
pub(super) fn run_poststop(spec: &Spec, record: &Record) -> Vec<Error> {
    with_state(spec, record, Status::Stopped, 0, |given| {
        Ok(hooks::run_all(Stage::Poststop, spec.hooks().as_ref(), given))
    })
    .unwrap_or_else(|error| vec![error])
}

fn with_state<T>(
    spec: &Spec,
    record: &Record,
    status: Status,
    pid: u32,
    run: impl FnOnce(HookContext<'_>) -> Result<T>,
) -> Result<T> {
    let state = serde_json::to_vec(&State { pid, ..record.state(spec, status) }).unwrap_or_default();
    let inherits_environment = record.hooks_inherit_environment;
    run(HookContext { state: &state, bundle: &record.bundle, inherits_environment, cancel_fd: None })
}
