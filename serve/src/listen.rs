//! Connections: TCP, with TLS or without, and Unix sockets.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use camino::Utf8PathBuf;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jobc_sys::error::{Error, Kind, Result, file_error};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::address::Listen;
use crate::guard;
use crate::limits::HEADER_TIMEOUT;
use crate::peer::Peer;
use crate::server::Server;

/// The buffer of a connection: 200 followers of a fast log fill theirs.
const BUFFER_BYTES: usize = 64 << 10;
/// Connections at a time; others wait in the kernel.
const MAX_CONNECTIONS: usize = 2000;
/// File descriptors that are left for files and processes.
const OTHER_DESCRIPTORS: u64 = 200;
/// How long a handshake may take.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);

/// A bound socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: Utf8PathBuf },
}

impl Listener {
    /// Binds an address. `is_shared` lets other users connect, of whom the server then knows who they are.
    ///
    /// # Errors
    /// The address is in use, or this user may not use it.
    pub(crate) fn bind(listen: &Listen, is_shared: bool) -> Result<Self> {
        match listen {
            Listen::Address(address) => {
                let bound = std::net::TcpListener::bind(address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    TcpListener::from_std(listener)
                });
                bound.map(Self::Tcp).map_err(|error| refused(listen, &error))
            }
            Listen::Socket(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path).map_err(|error| refused(listen, &error))?;
                let mode = if is_shared { 0o666 } else { 0o600 };
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
                    .map_err(|error| file_error("change the mode of", path.as_std_path(), &error))?;
                Ok(Self::Unix { listener, path: path.clone() })
            }
        }
    }

    /// The address, with the port that the kernel chose.
    pub(crate) fn address(&self) -> Listen {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Listen::Address).unwrap_or_default(),
            Self::Unix { path, .. } => Listen::Socket(path.clone()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { path, .. } = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes the socket of a server that was killed. One that answers stays, and the address is in use.
fn remove_stale(path: &Utf8PathBuf) -> Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let is_refused = || {
        std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    if is_socket && is_refused() {
        std::fs::remove_file(path).map_err(|error| file_error("remove", path.as_std_path(), &error))?;
    }
    Ok(())
}

fn refused(listen: &Listen, error: &io::Error) -> Error {
    let cannot = |what: String, help: &str| Error::new(Kind::System, what).help(help);
    match error.kind() {
        io::ErrorKind::AddrInUse => cannot(
            format!("`{listen}` is in use by another program"),
            "choose another port with `--listen PORT`; `--listen 0` takes a free one",
        ),
        io::ErrorKind::PermissionDenied => cannot(
            format!("permission denied for `{listen}`"),
            "choose a port from 1024, or a directory that you may write to",
        ),
        io::ErrorKind::AddrNotAvailable => {
            cannot(format!("`{listen}` is not an address of this host"), "`ip address` lists them")
        }
        _ => {
            cannot(format!("cannot listen on `{listen}`: {error}"), "choose another address with `--listen`")
        }
    }
}

/// Accepts connections until the future is dropped, which also ends them.
pub(crate) async fn accept(
    listener: &Listener,
    tls: Option<TlsAcceptor>,
    server: Arc<Server>,
    router: Router,
) {
    let slots = Arc::new(Semaphore::new(max_connections()));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let shared = (Arc::clone(&server), router.clone());
        let accepted = match listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, address)| {
                let _ = stream.set_nodelay(true);
                let peer = Peer::Address(address);
                match &tls {
                    None => connections.spawn(serve(stream, peer, shared, slot)),
                    Some(tls) => {
                        let handshake = tls.accept(stream);
                        connections.spawn(async move {
                            if let Ok(Ok(stream)) = tokio::time::timeout(TLS_TIMEOUT, handshake).await {
                                serve(stream, peer, shared, slot).await;
                            }
                        })
                    }
                };
            }),
            Listener::Unix { listener, .. } => listener.accept().await.and_then(|(stream, _)| {
                let peer = Peer::of_socket(&stream)?;
                connections.spawn(serve(stream, peer, shared, slot));
                Ok(())
            }),
        };
        // Out of file descriptors, or the caller is gone already.
        if accepted.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Serves one connection to its end.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    (server, router): (Arc<Server>, Router),
    slot: OwnedSemaphorePermit,
) {
    let service = service_fn(move |request| {
        let (server, router) = (Arc::clone(&server), router.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(&server, router, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(BUFFER_BYTES)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // A caller that is gone, or does not speak HTTP.
    let _ = connection.await;
    drop(slot);
}

/// Checks what holds for every request, and answers it.
async fn answer(server: &Server, router: Router, peer: Peer, request: hyper::Request<Incoming>) -> Response {
    let mut request: Request = request.map(Body::new);
    let checked = server
        .hosts
        .check(request.uri(), request.headers())
        .and_then(|host| server.hosts.check_origin(&host, request.method(), request.headers()));
    let origin = request.headers().get(hyper::header::ORIGIN).cloned();
    let mut response = if let Err(problem) = checked {
        problem.into_response()
    } else {
        request.extensions_mut().insert(peer);
        let answer = if *request.method() == hyper::Method::OPTIONS {
            server.hosts.preflight(origin.as_ref())
        } else {
            tower(router, request).await
        };
        server.hosts.share(origin.as_ref(), answer)
    };
    guard::protect(&mut response, server.is_tls);
    response
}

async fn tower(router: Router, request: Request) -> Response {
    match TowerToHyperService::new(router).call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// How many connections there may be, by the file descriptors that this process may have.
fn max_connections() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    let all = limit.current.unwrap_or(u64::MAX).saturating_sub(OTHER_DESCRIPTORS).max(16);
    usize::try_from(all).unwrap_or(MAX_CONNECTIONS).min(MAX_CONNECTIONS)
}
