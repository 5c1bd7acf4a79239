//! The start and the end of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::write_atomic::{Durability, write_atomic};
use tokio::signal::unix::{SignalKind, signal};

use crate::address::Listen;
use crate::audit::Audit;
use crate::guard::Hosts;
use crate::listen::{self, Listener};
use crate::local_jobs::LocalJobs;
use crate::options::{Directories, Options, Share, create_private};
use crate::owners::Owners;
use crate::server::Server;
use crate::tokens::{Access, Tokens};
use crate::uploads::Uploads;
use crate::workspace::Workspace;
use crate::{router, tls};

/// Threads that answer.
const WORKERS: usize = 2;
/// How often old uploads are removed.
const CLEAN_EVERY: Duration = Duration::from_hours(1);

/// Serves until SIGINT or SIGTERM. `ready` gets each line for the user.
///
/// # Errors
/// The server cannot start.
pub fn run(options: Options, ready: &dyn Fn(&str)) -> Result<()> {
    // Signals and new connections are taken by this thread, however much the answers keep the others busy.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .max_blocking_threads(16)
        .build()
        .map_err(|error| Error::new(Kind::System, format!("cannot start the server: {error}")))?;
    let result = runtime.block_on(serve(options, ready));
    // What still runs, such as followed logs, ends with the process.
    runtime.shutdown_background();
    result
}

async fn serve(options: Options, ready: &dyn Fn(&str)) -> Result<()> {
    check(&options)?;
    let acceptor =
        options.tls.as_ref().map(|(certificate, key)| tls::acceptor(certificate, key)).transpose()?;
    let wrong =
        |error: &std::io::Error| Error::new(Kind::System, format!("cannot wait for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| wrong(&error))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| wrong(&error))?;
    let listener = Listener::bind(&options.listen, options.proxy.is_some())?;
    let is_open = options.open;
    let shares = options.shares.clone();
    let server = Arc::new(server(options)?);
    let token = server.tokens.add(&server.user, Access::Submit, None)?;
    let base = base(&listener.address(), &server);
    let link = format!("{base}#token={token}");
    show(&listener.address(), &link, &server, ready)?;
    for (number, Share { access, lasts }) in shares.into_iter().enumerate() {
        let user = format!("{}-{}", access.as_str(), number + 1);
        let token = server.tokens.add(&user, access, Some(lasts))?;
        ready(&format!("to {} for {}: {base}#token={token}", access.as_str(), text(lasts)));
    }
    if is_open
        && matches!(listener.address(), Listen::Address(_))
        && !open_browser(&link, &server.options.directories.state)
    {
        ready("no browser was found; open the link");
    }
    let router = router::router(&server);
    let cleaned = Arc::clone(&server);
    tokio::spawn(async move {
        loop {
            let server = Arc::clone(&cleaned);
            let _ = tokio::task::spawn_blocking(move || clean(&server)).await;
            tokio::time::sleep(CLEAN_EVERY).await;
        }
    });
    tokio::select! {
        () = listen::accept(&listener, acceptor, Arc::clone(&server), router) => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    server.followed.end();
    Ok(())
}

/// Removes uploads that are not needed. Without a list of the jobs none is.
fn clean(server: &Server) {
    if let Ok(used) = server.jobs.base_directories()
        && let Err(error) = server.uploads.clean(&used)
    {
        eprintln!("jobc serve: cannot remove old uploads: {error}");
    }
}

/// Refuses options that would open the server to others.
fn check(options: &Options) -> Result<()> {
    let wrong = |what: &str, help: &str| Err(Error::new(Kind::Config, what).help(help));
    match &options.listen {
        Listen::Address(address) if !address.ip().is_loopback() && options.tls.is_none() => wrong(
            "an address of the network needs TLS",
            "give `--tls-cert` and `--tls-key`, or listen on loopback and connect with `ssh -L`",
        ),
        Listen::Address(_) if options.proxy.is_some() => wrong(
            "`--trust-proxy-user` needs a Unix socket, since any user of this host could send the header to a port",
            "listen on `unix:PATH`, and name the user of the proxy with `--proxy-account`",
        ),
        Listen::Socket(_) if options.tls.is_some() => {
            wrong("a Unix socket has no TLS", "let the proxy in front of it do that")
        }
        _ => Ok(()),
    }
}

fn server(options: Options) -> Result<Server> {
    let Directories { state, cache } = &options.directories;
    for directory in [state, cache] {
        create_private(directory)?;
    }
    let owners = Owners::default();
    let audit_file = options.audit.clone().unwrap_or_else(|| state.join("audit.jsonl"));
    let audit = Audit::open(&audit_file, &mut |line| owners.note(&line))?;
    Ok(Server {
        user: user(),
        is_tls: options.tls.is_some(),
        hosts: Hosts { names: options.hosts.clone(), origins: options.origins.clone() },
        tokens: Tokens::open(state)?,
        audit,
        owners,
        limits: Arc::default(),
        followed: crate::follow::Followed::default(),
        backlogs: crate::follow::backlog::Backlogs::default(),
        jobs: LocalJobs::open()?,
        clusters: Arc::default(),
        uploads: Uploads::open(&cache.join("uploads"))?,
        workspace: Workspace::open(&options.roots)?,
        submitting: tokio::sync::Mutex::default(),
        options,
    })
}

/// The name of the user who runs the server.
fn user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let accounts = accounts::read_file("/etc/passwd").unwrap_or_default();
    accounts::name_of(&accounts, uid).unwrap_or_else(|| format!("uid-{uid}"))
}

/// The address of the page.
fn base(listen: &Listen, server: &Server) -> String {
    let scheme = if server.is_tls { "https" } else { "http" };
    match listen {
        Listen::Socket(_) => server
            .hosts
            .names
            .first()
            .map_or_else(|| "http://localhost/".to_owned(), |name| format!("https://{name}/")),
        Listen::Address(address) => {
            let named = server.hosts.names.first().filter(|_| !address.ip().is_loopback());
            let host = named.map_or_else(|| host_of(*address), |name| format!("{name}:{}", address.port()));
            format!("{scheme}://{host}/")
        }
    }
}

fn host_of(address: SocketAddr) -> String {
    // Of all addresses, the one of this host.
    if address.ip().is_unspecified() { format!("localhost:{}", address.port()) } else { address.to_string() }
}

/// Shows the link. A log, such as that of systemd, does not get its token, but where it is.
fn show(listen: &Listen, link: &str, server: &Server, ready: &dyn Fn(&str)) -> Result<()> {
    use std::io::IsTerminal as _;
    if let Listen::Socket(path) = listen {
        ready(&format!("listening on `{path}`"));
        return Ok(());
    }
    if std::io::stdout().is_terminal() || std::io::stderr().is_terminal() {
        ready(link);
        return Ok(());
    }
    let file = server.options.directories.state.join("link");
    let text = format!("{link}\n");
    write_atomic(file.as_std_path(), text.as_bytes(), 0o600, Durability::Rename)
        .map_err(|error| file_error("write", file.as_std_path(), &error))?;
    ready(&format!("listening on {listen}; the link is in `{file}`"));
    Ok(())
}

/// Opens a browser, if there is a display and the program that knows one.
///
/// It gets a file of this user that leads to the link: other users can read the words of a program, and so the token.
fn open_browser(link: &str, state: &Utf8Path) -> bool {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let file = state.join("open.html");
    let text = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={link}\">\n");
    has_display
        && write_atomic(file.as_std_path(), text.as_bytes(), 0o600, Durability::Rename).is_ok()
        && std::process::Command::new("xdg-open")
            .arg(file)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .is_ok()
}

fn text(lasts: Duration) -> String {
    jobc_place::time::format_duration(lasts)
}
