//! Turns a bundle into a list of operations, with every string and file descriptor ready.
//!
//! The kernel dictates the order: identity (user namespace, ids), accounting (cgroups), view (namespaces, mounts,
//! devices), rights (limits, capabilities, filter), and last the program. Everything else follows from config.json.

mod cgroups;
mod files;
mod hooks;
mod identity;
pub mod join;
pub mod listing;
mod program;
mod rights;
mod steps;

pub use cgroups::CgroupView;
pub use join::prepare_exec;
pub(crate) use rights::KEEP_GROUPS;

use self::hooks::{list_hooks, parent_hooks};
use self::rights::Rights;
use self::steps::Steps;
use crate::bundle::Bundle;
use crate::config::complete::unknown_capabilities;
use crate::labels::{Field, Label};
use crate::namespaces::Namespace;
use crate::network_devices;
use crate::operation::Operation;
use crate::options::Options;
use crate::root::Root;
use crate::start::PreparedProcess;
use crate::trampoline::birth::ProgramProcess;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::Host;

/// Lists the steps from a bundle to its running program.
///
/// `groups` are where the container's cgroups will be; nothing where it gets none.
///
/// # Errors
///
/// An unsupported setting, at its path in config.json. Nothing is changed on the host.
pub fn prepare(
    bundle: &Bundle,
    root: &Root,
    options: &mut Options,
    machine: &Host,
    groups: Option<&CgroupView<'_>>,
) -> Result<PreparedProcess> {
    let spec = &bundle.config.spec;
    let process = spec.process().as_ref().ok_or_else(|| {
        Error::new(Kind::Config, "`process` is missing, so no program can be started").at("/process")
    })?;
    let label = Label::of(process, Field::is_module_enabled)?;
    let mut steps = Steps::default();
    if let Some(warning) = unknown_capabilities(&bundle.config.unknown_capabilities) {
        steps.warn("/process/capabilities", warning);
    }
    steps.push(Operation::SetParentDeathSignal(true));
    steps.push(Operation::SetUmask(0));
    let identity = identity::list(&mut steps, spec, options, machine)?;
    if let Some(streams) = &options.streams {
        let streams = streams.each_ref().map(std::os::fd::AsRawFd::as_raw_fd);
        steps.push(Operation::SetStreams { streams, owner: process.user().uid() });
    } else if process.user().uid() != 0 && !process.terminal().unwrap_or(false) {
        steps.push_at(
            "/process/user/uid",
            Operation::GiveStreams { owner: process.user().uid(), files: options.give_files },
        );
    }
    files::list(&mut steps, bundle, root, options, groups, &identity, label.as_ref())?;
    // Only now: with a supervisor's file descriptors of many tasks, those that the steps above open have higher
    // numbers.
    if let Some((soft, hard)) = options.open_files {
        let resource = linux_raw_sys::general::RLIMIT_NOFILE;
        steps.push(Operation::SetLimit { name: "RLIMIT_NOFILE", resource, soft, hard });
    }
    let Rights { filter, changes_user: becomes } =
        rights::list(&mut steps, spec, process, &identity, machine)?;
    let environment = std::mem::take(&mut options.secret_environment);
    let mut program = program::prepare_program(process, filter, label, root.directories(), environment)?;
    if options.init {
        program.process = ProgramProcess::BelowInit { terminal: process.terminal().unwrap_or(false) };
    }
    if becomes || !options.end_with_parent {
        // A change of the user forgets it (prctl(2), PR_SET_PDEATHSIG).
        steps.push(Operation::SetParentDeathSignal(options.end_with_parent));
    }
    // Before a hold: this process must close pipes whose end of file other processes of a gang wait for.
    let first = 3 + i32::try_from(options.preserve_fds).unwrap_or(i32::MAX - 3);
    steps.push(Operation::CloseFrom { first, except: Vec::new() });
    if let Some(hold) = &options.hold {
        steps.push_at("/process/args/0", Operation::FindProgram(program.candidates.clone()));
        steps.push(Operation::Hold(std::os::fd::AsRawFd::as_raw_fd(hold)));
    }
    list_hooks(&mut steps, bundle, options, "startContainer", Some(&program))?;
    steps.push(Operation::ResetSignals(machine.ignored_signals));
    let network_devices = network_devices::from_config(spec)?;
    let mut descriptors = identity.descriptors;
    descriptors.extend(options.hold.take());
    descriptors.extend(options.console.take());
    descriptors.extend(options.layers.take());
    descriptors.extend(options.streams.take().into_iter().flatten());
    Ok(PreparedProcess {
        steps: steps.list,
        namespaces: identity.new_namespaces,
        // Processes of a joined pid namespace see the new process before its first step. Only root's files below /proc
        // can still be written then.
        set_not_dumpable: identity.joined_before.iter().any(|join| join.kind == Namespace::Pid)
            && rustix::process::geteuid().is_root(),
        join_before_clone: identity.joined_before,
        id_maps: identity.id_maps,
        network_devices,
        classes: Vec::new(),
        hooks: parent_hooks(spec),
        in_user_namespace: identity.in_user_namespace,
        agent: None,
        program,
        descriptors,
        report: options.report.take(),
        warnings: steps.warnings,
    })
}
