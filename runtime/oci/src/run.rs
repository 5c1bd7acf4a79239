//! Carries the commands out.

use std::mem::ManuallyDrop;
use std::os::fd::AsFd as _;

use jobc_container::bundle::Bundle;
use jobc_container::container::create::{self, CreateRequest, CreatedContainer, StartMode};
use jobc_container::container::wait::{SignalPolicy, wait};
use jobc_container::container::{self, Container};
use jobc_container::namespaces::Namespace;
use jobc_container::oci_state::OCI_VERSION;
use jobc_container::options::Options;
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_container::terminal::Relay;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::own_program::{Environment, ensure_read_only};
use jobc_sys::signals::{Signal, Signals};
use rustix::io::Errno;

use crate::activation::{Readiness, pass_listen_fds};
use crate::args::{CgroupManager, CreateArgs, OciArgs, OciCommand};
use crate::exit_code::{EXEC_FAILURE_EXIT_CODE, FAILURE_EXIT_CODE};
use crate::json::print_json;
use crate::log::Log;
use crate::{delete, exec, gpu, list, message, spec, update};

/// What callers of crun look for in the output of `--version`.
const FEATURES: &str = "+SYSTEMD +SELINUX +APPARMOR +CAP +SECCOMP +EBPF";

/// Carries a command out; returns the exit code.
pub(crate) fn run(args: &OciArgs) -> u8 {
    if args.version {
        let version = env!("CARGO_PKG_VERSION");
        jobc_terminal::print(&format!("jobc version {version}\nspec: {OCI_VERSION}\n{FEATURES}\n"));
        return 0;
    }
    let mut log = match Log::open(args.log.as_deref(), args.log_format, args.debug) {
        Ok(log) => log,
        Err(error) => {
            jobc_terminal::eprint(&message::error(&error));
            return exit_code(args.command.as_ref(), &error);
        }
    };
    match command(args, &mut log) {
        Ok(code) => code,
        Err(error) => {
            log.error(&error);
            exit_code(args.command.as_ref(), &error)
        }
    }
}

/// The exit code of a command that failed, as with runc; only `run` distinguishes more, for people at a terminal.
fn exit_code(command: Option<&OciCommand>, error: &Error) -> u8 {
    match (command, error.kind) {
        (Some(OciCommand::Exec(_)), _) => EXEC_FAILURE_EXIT_CODE,
        (Some(OciCommand::Run { .. }), Kind::ProgramNotFound | Kind::NotExecutable) => error.exit_code(),
        _ => FAILURE_EXIT_CODE,
    }
}

fn command(args: &OciArgs, log: &mut Log) -> Result<u8> {
    let Some(command) = &args.command else {
        return Err(Error::new(Kind::State, "no command given").help("`jobc oci --help` lists the commands"));
    };
    let store = match &args.root {
        Some(root) => Store::new(root),
        None => Store::standard()?,
    };
    let groups = if args.systemd_cgroup { CgroupManager::Systemd } else { args.cgroup_manager };
    match command {
        OciCommand::Create { create, id } => {
            create_container(&store, id, create, groups, StartMode::Hold, None, log)?.detach();
        }
        OciCommand::Start { id } => start(&store, &Id::new(id)?)?,
        OciCommand::Run { create, detach: true, id, .. } => {
            create_container(&store, id, create, groups, StartMode::Detach, None, log)?.detach();
        }
        OciCommand::Run { create, detach: false, keep, id, .. } => {
            // This process ends with the container: no signal need be let through again.
            let signals = ManuallyDrop::new(Signals::block_forwarded()?);
            let made = create_container(&store, id, create, groups, StartMode::Attach, Some(&signals), log)?;
            return wait_and_delete(made, &signals, SignalPolicy::Forward, *keep, &mut |text| log.warn(text));
        }
        OciCommand::State { id } => {
            let id = Id::new(id)?;
            let record = store.read(&id)?;
            let directory = store.directory(&id);
            let config = container::config(&directory)?;
            print_json(&record.state(&config, container::status(&directory, &record)))?;
        }
        OciCommand::Kill { all, id, signal } => {
            container::kill(&store, &Id::new(id)?, Signal::parse_or_probe(signal)?, *all)?;
        }
        OciCommand::Delete { force, regex: true, id } => delete::matching(&store, id, *force, log)?,
        OciCommand::Delete { force, regex: false, id } => {
            for error in container::delete(&store, &Id::new(id)?, *force)? {
                log.warn(&error.to_string());
            }
        }
        OciCommand::Exec(exec) => return exec::run(&store, exec, log),
        OciCommand::Ps { format, id, options } => list::processes(&store, &Id::new(id)?, *format, options)?,
        OciCommand::List { format, quiet } => list::containers(&store, *format, *quiet)?,
        OciCommand::Pause { id } => Container::open(&store, &Id::new(id)?)?.pause()?,
        OciCommand::Resume { id } => Container::open(&store, &Id::new(id)?)?.resume()?,
        OciCommand::Update(update) => update::run(&store, update)?,
        OciCommand::Events { stats: true, id, .. } => update::print_stats(&store, &Id::new(id)?)?,
        OciCommand::Events { stats: false, interval, id } => {
            update::follow(&store, &Id::new(id)?, *interval)?;
        }
        OciCommand::Features => print_json(&jobc_container::features::features())?,
        OciCommand::Spec { bundle, rootless } => spec::write(bundle, *rootless)?,
        OciCommand::Checkpoint(_) | OciCommand::Restore(_) => {
            return Err(Error::new(
                Kind::Unsupported,
                "checkpoint and restore of containers are not supported",
            )
            .help("have the program save its own state, and stop the container"));
        }
    }
    Ok(0)
}

/// Starts a container that was created, and waits until it is ready where a service manager wants to know.
fn start(store: &Store, id: &Id) -> Result<()> {
    let readiness = Readiness::open(&store.directory(id))?;
    let container = Container::open(store, id)?.start()?;
    let process = container.record.process;
    container.unlock();
    if let Some(readiness) = readiness
        && let Some(process) = process
        && let Some(first) = process.open()?
    {
        readiness.forward(first.as_fd(), process.pid)?;
    }
    Ok(())
}

/// Makes a container as `create` and `run` do.
fn create_container(
    store: &Store,
    id: &str,
    create: &CreateArgs,
    groups: CgroupManager,
    then: StartMode,
    given_up: Option<&Signals>,
    log: &mut Log,
) -> Result<CreatedContainer> {
    if create.no_pivot {
        return Err(Error::new(
            Kind::Unsupported,
            "`--no-pivot` is not supported: the root is always entered with pivot_root(2)",
        )
        .help("if the root is on the initial ramdisk, copy it to a tmpfs first"));
    }
    let id = Id::new(id)?;
    let mut bundle = open(create, log)?;
    // Engines use `create`, and add the devices that they want; `run` is for people.
    if let Some(text) = gpu::missing_devices(&bundle.config.spec).filter(|_| then != StartMode::Hold) {
        log.warn(&text);
    }
    let listen_fds = pass_listen_fds(&mut bundle);
    if joins_pid_namespace(&bundle) {
        ensure_read_only(Environment::Minimal)?;
    }
    let request = CreateRequest {
        options: Options {
            // Who wants no cgroups wants no limits of cgroups; each is warned about.
            allow_unenforced: create.allow_unenforced || groups == CgroupManager::Disabled,
            without_cgroup: groups == CgroupManager::Disabled,
            systemd_cgroup: groups == CgroupManager::Systemd,
            every_hierarchy: true,
            skip_io_accounting: true,
            hooks_inherit_environment: true,
            give_files: true,
            preserve_fds: create.preserve_fds + listen_fds,
            keep_keyring: create.no_new_keyring,
            ..Options::default()
        },
        root: None,
        console_socket: create.console_socket.clone(),
        pid_file: create.pid_file.clone(),
    };
    let reserved = create::reserve(store, &id)?;
    // The command that starts a held container waits for its readiness.
    let is_offered = Readiness::offer(reserved.directory(), &mut bundle)?;
    let readiness =
        if is_offered && then != StartMode::Hold { Readiness::open(reserved.directory())? } else { None };
    let made = reserved.create(&bundle, request, then, given_up)?;
    log.debug(&format!(
        "process {} is the first of `{id}`, whose bundle is `{}`",
        made.process.pid,
        bundle.dir.display()
    ));
    for text in made.container.warnings.iter().chain(&made.container.record.unenforced) {
        log.warn(text);
    }
    if let Some(readiness) = readiness {
        let first = made.process.pidfd.as_fd();
        if then == StartMode::Detach {
            readiness.forward(first, made.process.pid)?;
        } else {
            let first = first.try_clone_to_owned().map_err(|error| {
                Error::system("watch the container", Errno::from_io_error(&error).unwrap_or(Errno::IO))
            })?;
            // This process is the one to watch, and has more to wait for. A service without the notification fails.
            std::thread::spawn(move || readiness.forward(first.as_fd(), std::process::id()));
        }
    }
    Ok(made)
}

/// Whether a container's first process starts in an existing pid namespace, where others run.
pub(crate) fn joins_pid_namespace(bundle: &Bundle) -> bool {
    let linux = bundle.config.spec.linux().as_ref();
    let namespaces = linux.and_then(|linux| linux.namespaces().as_ref());
    namespaces
        .into_iter()
        .flatten()
        .any(|namespace| Namespace::of(namespace.typ()) == Namespace::Pid && namespace.path().is_some())
}

/// Opens a bundle; unknown properties cause a warning, as the specification requires (config.md, "Extensibility").
fn open(create: &CreateArgs, log: &mut Log) -> Result<Bundle> {
    let bundle = Bundle::open_with(&create.bundle, &create.config)?;
    for pointer in &bundle.config.unknown {
        log.warn(&format!("config.json: {pointer}: unknown property, ignored"));
    }
    Ok(bundle)
}

/// Stays with a container until its end, and deletes it; returns the exit code of its program, with which this process
/// ends.
pub fn wait_and_delete(
    made: CreatedContainer,
    signals: &Signals,
    manner: SignalPolicy,
    keep: bool,
    warn: &mut dyn FnMut(&str),
) -> Result<u8> {
    let CreatedContainer { mut container, process, terminal } = made;
    // As the signals': the end of this process closes it.
    let process = ManuallyDrop::new(process);
    container.unlock();
    let mut relay = terminal.map(Relay::new).transpose()?;
    let exit = wait(&process, signals, relay.as_mut(), manner);
    drop(relay);
    if exit.is_ok() {
        container.mark_reaped();
    }
    if !keep {
        container.lock()?;
        for error in container.delete(true)? {
            warn(&error.to_string());
        }
    }
    Ok(exit?.code())
}
