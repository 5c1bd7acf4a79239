//! `jobc oci exec`: runs a command in a running container.

use jobc_container::cgroup::SubGroups;
use jobc_container::container;
use jobc_container::container::wait::{SignalPolicy, wait};
use jobc_container::exec::{self, ExecRequest, ProcessOverrides};
use jobc_container::options::Options;
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_container::terminal::Relay;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::own_program::{Environment, ensure_read_only};
use jobc_sys::signals::Signals;

use crate::args::ExecArgs;
use crate::log::Log;

/// Starts it and, unless it is detached, stays until its end; returns its exit code.
pub(crate) fn run(store: &Store, args: &ExecArgs, log: &mut Log) -> Result<u8> {
    ensure_read_only(Environment::Minimal)?;
    let id = Id::new(&args.id)?;
    let (process, warning) = match &args.process {
        Some(path) => {
            let text = std::fs::read(path).map_err(|error| {
                let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
                Error::system(format!("read `{}`", path.display()), errno)
            })?;
            exec::read_process(&text)?
        }
        None if args.command.is_empty() => {
            return Err(Error::new(Kind::State, "no program to start")
                .help("write it after the container name, or pass `--process FILE`"));
        }
        None => {
            store.read(&id)?;
            let changes = ProcessOverrides {
                arguments: args.command.clone(),
                directory: args.cwd.clone(),
                variables: args.env.clone(),
                user: args.user,
                groups: args.additional_gids.clone(),
                capabilities: args.cap.clone(),
                no_new_privileges: args.no_new_privs,
                profile: args.apparmor.clone(),
                label: args.process_label.clone(),
                terminal: args.tty,
            };
            changes.apply(&container::config(&store.directory(&id))?)?
        }
    };
    if let Some(warning) = warning {
        log.warn(&warning);
    }
    let request = ExecRequest {
        process,
        options: Options { preserve_fds: args.preserve_fds, give_files: true, ..Options::default() },
        console_socket: args.console_socket.clone(),
        pid_file: args.pid_file.clone(),
        detached: args.detach,
        ignore_paused: args.ignore_paused,
        sub_groups: SubGroups::parse(&args.cgroup)?,
    };
    let signals = Signals::block_forwarded()?;
    let (process, terminal) = exec::exec(store, &id, request)?;
    log.debug(&format!("process {} runs in `{id}`", process.pid));
    if args.detach {
        process.detach();
        return Ok(0);
    }
    let mut relay = terminal.map(Relay::new).transpose()?;
    Ok(wait(&process, &signals, relay.as_mut(), SignalPolicy::Forward)?.code())
}
