//! The way out of a job's network: pasta or slirp4netns, which carry packets from an interface in the bridge's namespace to
//! sockets of the machine, as the user who runs them and without rights.
//!
//! Nothing may be left of them, whatever ends first. A normal user's program forgets whose end should be its own when it
//! enters a user namespace (prctl(2), PR_SET_PDEATHSIG), so they run in a pid namespace whose first process is ours and ends
//! when its standard input does.

use std::fmt::Write as _;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use super::address::Range;
use super::namespace;
use crate::error::{Error, Result, describe};
use crate::namespaces::Namespace;
use crate::syscall::Kernel as _;
use crate::syscall::linux::Linux;

/// The interface's name in the bridge's namespace.
pub(super) const INTERFACE: &str = "uplink0";

/// How long a program may take until its interface is up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which addresses of the range are whose: those that slirp4netns gives out, and pasta is told to.
const GATEWAY: u32 = 2;
const RESOLVER: u32 = 3;
const BRIDGE: u32 = 100;

/// A way out that works. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Uplink {
    keeper: Child,
}

/// The programs that can make one, the better first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Pasta,
    Slirp4netns,
}

/// Where names are asked for, behind a way out.
pub(super) fn resolver(range: Range) -> std::net::Ipv4Addr {
    range.address(RESOLVER)
}

/// Makes a way out of a namespace.
///
/// # Errors
///
/// Why there is none, in words that follow "no way out: ".
pub(super) fn connect(bridge: &OwnedFd, range: Range) -> std::result::Result<Uplink, String> {
    const TUN: &str = "/dev/net/tun";
    let installed: Vec<(Tool, PathBuf)> = [Tool::Pasta, Tool::Slirp4netns]
        .into_iter()
        .filter_map(|tool| Some((tool, crate::id_map::program(tool.name())?)))
        .collect();
    if installed.is_empty() {
        return Err("neither pasta nor slirp4netns is installed".to_owned());
    }
    // Where it may not be opened pasta waits for ever.
    rustix::fs::open(TUN, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| format!("`{TUN}` cannot be opened: {}", describe(errno)))?;
    namespace::apart(|| namespace::enter(bridge).and_then(|()| super::nat::masquerade()))
        .map_err(|error| error.to_string())?;
    let mut why = String::new();
    for (tool, path) in installed {
        match tool.start(&path, bridge, range) {
            Ok(uplink) => return Ok(uplink),
            Err(error) => {
                let separator = if why.is_empty() { "" } else { "; " };
                let _ = write!(why, "{separator}{}: {error}", tool.name());
            }
        }
    }
    Err(why)
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
        }
    }

    /// The arguments that connect a namespace, named by a path, and nothing more: no port of the machine is forwarded, and
    /// what listens on its loopback addresses is not reached.
    fn arguments(self, namespace: &str, range: Range) -> Vec<String> {
        let address = |number| range.address(number).to_string();
        let words: Vec<String> = match self {
            Self::Pasta => {
                let root = if rustix::process::geteuid().is_root() { "--runas 0:0 " } else { "" };
                let fixed = "--quiet --foreground --ipv4-only --config-net --no-map-gw --no-dhcp --no-ndp \
                    --no-dhcpv6 --no-ra --mtu 1500 -t none -u none -T none -U none";
                format!(
                    "{root}{fixed} --ns-ifname {INTERFACE} --address {} --netmask {} --gateway {} \
                    --dns-forward {} --netns {namespace}",
                    address(BRIDGE),
                    range.length(),
                    address(GATEWAY),
                    address(RESOLVER),
                )
            }
            Self::Slirp4netns => format!(
                "--configure --mtu=1500 --disable-host-loopback --enable-sandbox --cidr={range} \
                --netns-type=path {namespace} {INTERFACE}"
            ),
        }
        .split_whitespace()
        .map(str::to_owned)
        .collect();
        words
    }

    /// Starts it and waits until its interface is up.
    fn start(self, path: &Path, bridge: &OwnedFd, range: Range) -> std::result::Result<Uplink, String> {
        let namespace = format!("/proc/{}/fd/{}", std::process::id(), bridge.as_raw_fd());
        let arguments = self.arguments(&namespace, range);
        let spawn = || -> Result<Child> {
            // Its first child will be the first process of a pid namespace, so it is a thread that has only this one.
            Linux
                .unshare(Namespace::Pid.flag())
                .map_err(|errno| Error::machine("make a pid namespace", errno))?;
            super::own_program("keep-uplink")
                .arg(path)
                .args(&arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| Error::machine("start this program again", super::errno(&error)))
        };
        let mut keeper = namespace::apart(spawn).map_err(|error| error.to_string())?;
        let said = keeper.stderr.take().map(first_words);
        let mut uplink = Uplink { keeper };
        let began = Instant::now();
        let ended = loop {
            if is_connected(bridge) {
                return Ok(uplink);
            }
            if uplink.keeper.try_wait().is_ok_and(|status| status.is_some()) {
                break true;
            }
            if began.elapsed() > PATIENCE {
                break false;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        drop(uplink);
        let said = said.and_then(|said| said.recv().ok()).unwrap_or_default();
        let said = said.lines().map(str::trim).find(|line| !line.is_empty() && !line.contains("syslog"));
        Err(match (said, ended) {
            (Some(said), _) => format!("`{said}`"),
            (None, true) => "it ended and does not say why".to_owned(),
            (None, false) => format!("its interface is not up after {} s", PATIENCE.as_secs()),
        })
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Reads to the end what a program says, lest it wait for a reader, and keeps the beginning; told once it has ended.
fn first_words(mut from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = from.by_ref().take(4096).read_to_end(&mut kept);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receiver
}

/// Whether the namespace has a default route by the interface, which is the last that the programs set up.
fn is_connected(bridge: &OwnedFd) -> bool {
    namespace::apart(|| {
        namespace::enter(bridge).is_ok()
            && std::fs::read_to_string("/proc/thread-self/net/route").is_ok_and(|table| {
                let mut rows = table.lines().map(|row| row.split_whitespace().take(2).collect::<Vec<_>>());
                rows.any(|row| row == [INTERFACE, "00000000"])
            })
    })
}

/// The first process of the programs' pid namespace: starts one, and ends with it or when its own standard input does.
pub(super) fn keep(mut words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let Some(program) = words.next() else { return ExitCode::FAILURE };
    let tool = Command::new(program).args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    match tool.and_then(|mut tool| tool.wait()) {
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot be executed: {error}");
            ExitCode::FAILURE
        }
    }
}
