//! Hooks of every stage, with the container's state on their standard input.
//!
//! Four stages run in this process's namespaces, and are here; [`container_namespace`] has the two that run in the container's. The
//! order of stages and what their failure means is in the OCI runtime specification (runtime.md, "Lifecycle").
//!
//! A hook runs with the privileges of the user who starts the container, so no other user may be able to change it
//! ([`program`]), and it gets nothing but what config.json gives it: its arguments, its environment, and the bundle as its
//! working directory, as with runc. Only for callers of runc, a hook without an environment of its own has theirs.

pub mod container_namespace;
pub mod program;
pub mod runtime_namespace;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use oci_spec::runtime::{Hook, Hooks};

use jobc_sys::error::{Error, Kind, Result};
use runtime_namespace::RuntimeHook;

#[cfg(test)]
mod tests;

/// The stages whose hooks run in this process's namespaces, in the order of a container's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The old form of [`Self::CreateRuntime`], which runs first; the container toolkit of NVIDIA uses it.
    Prestart,
    /// The namespaces and mounts are made, the root is not entered.
    CreateRuntime,
    /// The program runs. A failure ends the container.
    Poststart,
    /// The container is deleted. A failure is a warning.
    Poststop,
}

impl Stage {
    /// The name of the stage's list in config.json.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prestart => "prestart",
            Self::CreateRuntime => "createRuntime",
            Self::Poststart => "poststart",
            Self::Poststop => "poststop",
        }
    }

    /// The stage's hooks, in order.
    pub fn hooks_of(self, hooks: &Hooks) -> &[Hook] {
        let list = match self {
            #[allow(deprecated)]
            Self::Prestart => hooks.prestart(),
            Self::CreateRuntime => hooks.create_runtime(),
            Self::Poststart => hooks.poststart(),
            Self::Poststop => hooks.poststop(),
        };
        list.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The arguments of the hooks of a stage.
#[derive(Clone, Copy, Debug)]
pub struct HookContext<'a> {
    /// The container's state as JSON. Its `pid` is the container's first process wherever there is one, in the stages
    /// where its `status` is `creating` too: hooks enter its namespaces by it.
    pub state: &'a [u8],
    /// The bundle's directory.
    pub bundle: &'a Path,
    /// Whether a hook without `env` gets this process's environment, as with runc and crun.
    pub inherits_environment: bool,
    /// When this becomes readable (for example a signalfd) the hook that runs is killed, and the stage fails. Nothing
    /// is read from it.
    pub cancel_fd: Option<BorrowedFd<'a>>,
}

/// Runs the hooks of a stage one after another, up to the first that fails.
///
/// # Errors
/// The failing hook's, at its place in config.json: [`Kind::Hook`] with its stage, path, exit code and last words.
pub fn run(stage: Stage, hooks: Option<&Hooks>, given: HookContext<'_>) -> Result<()> {
    run_each(stage, hooks, given).collect()
}

/// Runs all hooks of a stage, and returns the errors of those that failed: for [`Stage::Poststop`], where a failure
/// must not keep the others from cleaning up.
pub fn run_all(stage: Stage, hooks: Option<&Hooks>, given: HookContext<'_>) -> Vec<Error> {
    run_each(stage, hooks, given).filter_map(Result::err).collect()
}

/// Runs a hook with each step.
fn run_each<'a>(
    stage: Stage,
    hooks: Option<&'a Hooks>,
    given: HookContext<'a>,
) -> impl Iterator<Item = Result<()>> + 'a {
    let list = hooks.map(|hooks| stage.hooks_of(hooks)).unwrap_or_default();
    list.iter().enumerate().map(move |(index, hook)| {
        RuntimeHook::of(stage, hook).and_then(|run| run.carry_out(given)).map_err(|error| {
            let inner = error.pointer().unwrap_or_default().to_owned();
            error.at(format!("/hooks/{stage}/{index}{inner}"))
        })
    })
}

/// How long a hook may run: its `timeout`, or [`container_namespace::DEFAULT_TIMEOUT_SECS`].
fn timeout(hook: &Hook) -> Result<Duration> {
    let seconds = hook.timeout().unwrap_or(container_namespace::DEFAULT_TIMEOUT_SECS);
    match u64::try_from(seconds) {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        _ => Err(Error::new(Kind::Config, format!("invalid hook timeout: {seconds} seconds"))
            .at("/timeout")
            .help("write a number above zero, or omit it")),
    }
}
