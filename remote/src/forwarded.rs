//! Ports of tasks on loopback here: what they are at every place.

use std::io::{ErrorKind, Read as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::readable;

use crate::host::Running;
use crate::place::{ForwardRequest, PortForward, PortForwardReport};

/// How often connections that have ended are looked for.
const INTERVAL: Duration = Duration::from_millis(500);

/// How long a socket is left alone that cannot accept connections.
const DELAY: Duration = Duration::from_millis(100);

/// What gets the events of forwarded ports.
pub(crate) type Report<'a> = &'a (dyn Fn(PortForwardReport) + Sync);

/// A port of a task, and the socket that accepts connections for it.
pub(crate) struct Forwarded<T> {
    pub(crate) task: String,
    pub(crate) port: u16,
    pub(crate) listener: TcpListener,
    /// What the place needs to reach it.
    pub(crate) to: T,
}

impl<T> Forwarded<T> {
    /// Takes the local port that was asked for, otherwise the same number, or a free one if that is taken.
    pub(crate) fn listen(forward: &PortForward, task: String, port: u16, to: T) -> Result<Self> {
        let bind = |local: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, local));
        let bound = match forward.local {
            Some(local) => bind(local),
            None => bind(port).or_else(|_| bind(0)),
        };
        let listener = bound.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        let listener = listener.map_err(|error| {
            Error::new(Kind::System, format!("cannot listen on 127.0.0.1:{}", forward.local.unwrap_or(port)))
                .because(error)
                .help("name another local port, as in `8081:TASK:PORT`")
        })?;
        Ok(Self { task, port, listener, to })
    }

    /// Says where connections are accepted.
    pub(crate) fn announce(&self, report: Report<'_>) {
        let local = self.listener.local_addr().map_or(0, |address| address.port());
        report(PortForwardReport::Listening { local, task: self.task.clone(), port: self.port });
    }

    /// The next connection; none if none waits, or after a failure, which is reported.
    pub(crate) fn accept(&self, report: Report<'_>) -> Option<TcpStream> {
        match self.listener.accept() {
            Ok((socket, _)) => Some(socket),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            Err(error) => {
                self.fail(report, &format!("cannot accept a connection: {}", describe_io(&error)));
                std::thread::sleep(DELAY);
                None
            }
        }
    }

    /// Reports why a connection, or the way to the task, failed.
    pub(crate) fn fail(&self, report: Report<'_>, why: &str) {
        report(PortForwardReport::Failed(format!("{}: {why}", self.task)));
    }
}

/// The error for a label that no port of a task has.
pub(crate) fn unknown_label<'a>(task: &str, label: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<String> = known.filter(|name| !name.is_empty()).map(|name| format!("`{name}`")).collect();
    let help = if known.is_empty() {
        "name a port by its number; labels are those of `resources.ports`".to_owned()
    } else {
        format!("its ports are {}; a number works too", known.join(", "))
    };
    Error::new(Kind::Config, format!("task `{task}` has no port `{}`", label.escape_debug())).help(help)
}

/// Forwards ports until it is told to stop: `listen` finds their tasks, and each connection goes to a process of `start`.
pub(crate) fn by_processes<T>(
    ForwardRequest { forwards, stop, report }: ForwardRequest<'_>,
    listen: impl Fn(&PortForward) -> Result<Forwarded<T>>,
    start: impl Fn(&Forwarded<T>, TcpStream) -> Result<Running>,
) -> Result<()> {
    let all = forwards.iter().map(listen).collect::<Result<Vec<_>>>()?;
    for one in &all {
        one.announce(report);
    }
    let sockets = all.iter().map(|one| one.listener.as_fd());
    let waited_for: Vec<BorrowedFd<'_>> = std::iter::once(stop).chain(sockets).collect();
    let mut open: Vec<(&Forwarded<T>, Running)> = Vec::new();
    loop {
        let ready = readable::wait(&waited_for, Some(INTERVAL))
            .map_err(|errno| Error::system("wait for connections", errno))?;
        if ready[0] {
            return Ok(());
        }
        open.retain_mut(|(one, process)| {
            let has_ended = process.has_ended();
            if has_ended && let Some(why) = failure(process) {
                one.fail(report, &why);
            }
            !has_ended
        });
        for (one, _) in all.iter().zip(&ready[1..]).filter(|(_, is_ready)| **is_ready) {
            let Some(socket) = one.accept(report) else { continue };
            match start(one, socket) {
                Ok(process) => open.push((one, process)),
                Err(error) => one.fail(report, &error.message()),
            }
        }
    }
}

/// Why a process failed that says it; none if it did not.
fn failure(process: &mut Running) -> Option<String> {
    let mut text = String::new();
    let stderr = process.stderr.take();
    if process.wait().is_ok_and(|code| code == 0) {
        return None;
    }
    let _ = stderr?.take(4096).read_to_string(&mut text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let line = line.trim_start_matches("channel 0: ").trim_start_matches("stdio forwarding: ");
    Some(format!("the connection failed: {line}"))
}
