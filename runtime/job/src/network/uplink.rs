//! The uplink of a job's network: pasta or slirp4netns, which carry packets from an interface in the bridge's namespace
//! to sockets of the host, as the calling user and without privileges.
//!
//! An uplink program that exits while the job runs is [restarted](watch), and both are reported.
//!
//! They must not outlive the job, whichever process ends first. An unprivileged user's program loses its parent-death
//! signal when it enters a user namespace (prctl(2), PR_SET_PDEATHSIG), so they run in a PID namespace whose first
//! process is this program and exits when its standard input does.

mod watch;

use std::ffi::{CString, OsString};
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use linux_raw_sys::general::MS_PRIVATE;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::address::Subnet;
use super::messages::UplinkRequest;
use super::program::helper_command;
use super::{bridge, namespace, nat};
use jobc_container::namespaces::Namespace;
use jobc_sys::error::{Error, Result, describe, errno_of};
use jobc_sys::syscall::Kernel as _;
use jobc_sys::syscall::linux::Linux;

pub(super) use watch::Uplink;

/// The interface's name in the bridge's namespace.
const INTERFACE: &str = "uplink0";

/// The word that follows [`super::COMMAND`] for [`run_keeper`].
pub(super) const KEEP_COMMAND: &str = "keep-uplink";

/// How long a program may take until its interface is up.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The addresses of the range: those that slirp4netns assigns, and that pasta gets as options.
const GATEWAY: u32 = 2;
const RESOLVER: u32 = 3;
const BRIDGE: u32 = 100;

/// A program that carries packets, and its keeper. Dropping it ends both.
#[derive(Debug)]
struct UplinkProcess {
    process: Child,
    output: Receiver<String>,
}

/// A program whose interface is up, or why none is.
type StartResult = std::result::Result<(Tool, UplinkProcess), String>;

/// The programs that provide an uplink, preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Pasta,
    Slirp4netns,
}

/// The name server behind an uplink.
pub(super) fn resolver(range: Subnet) -> std::net::Ipv4Addr {
    range.address(RESOLVER)
}

/// Where tasks reach the host behind an uplink that leads to it.
pub(super) fn gateway(range: Subnet) -> std::net::Ipv4Addr {
    range.address(GATEWAY)
}

/// Creates an uplink of a namespace.
///
/// # Errors
///
/// Why there is none, as a text that follows "no uplink: ".
pub(super) fn connect(
    bridge: &Arc<OwnedFd>,
    request: &UplinkRequest,
    range: Subnet,
) -> std::result::Result<Uplink, String> {
    const TUN: &str = "/dev/net/tun";
    if installed().is_empty() {
        return Err("neither pasta nor slirp4netns is installed".to_owned());
    }
    // pasta waits forever if it cannot open the file.
    rustix::fs::open(TUN, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| format!("`{TUN}` cannot be opened: {}", describe(errno)))?;
    namespace::in_new_thread(|| namespace::enter(bridge).and_then(|()| nat::masquerade(INTERFACE)))
        .map_err(|error| error.to_string())?;
    let start = {
        let (bridge, place, leads_to_host) =
            (Arc::clone(bridge), request.place.clone(), request.leads_to_host);
        move || start_first_working(&bridge, &place, range, leads_to_host)
    };
    Ok(Uplink::new(start()?, start))
}

/// The installed programs, preferred first.
fn installed() -> Vec<(Tool, PathBuf)> {
    let tools = [Tool::Pasta, Tool::Slirp4netns];
    tools.into_iter().filter_map(|tool| Some((tool, jobc_sys::program_path::find(tool.name())?))).collect()
}

/// Tries the installed programs in order until the interface of one is up.
fn start_first_working(bridge: &OwnedFd, place: &Path, range: Subnet, leads_to_host: bool) -> StartResult {
    let mut why = String::new();
    for (tool, path) in installed() {
        match tool.start(&path, bridge, place, (range, leads_to_host)) {
            Ok(keeper) => return Ok((tool, keeper)),
            Err(error) => {
                let separator = if why.is_empty() { "" } else { "; " };
                let _ = write!(why, "{separator}{}: {error}", tool.name());
            }
        }
    }
    Err(why)
}

impl UplinkProcess {
    /// The first line of the program's output before it exited.
    fn error_line(&self) -> Option<String> {
        let output = self.output.recv().ok()?;
        let line = output.lines().map(str::trim).find(|line| !line.is_empty() && !line.contains("syslog"))?;
        Some(line.to_owned())
    }
}

impl Drop for UplinkProcess {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
        }
    }

    /// The arguments that connect the namespace at a path, and nothing more: no port of the host is forwarded, and
    /// what listens on its loopback addresses is reached at the [`gateway`] only if the job asks for it.
    fn arguments(self, place: &Path, range: Subnet, leads_to_host: bool) -> Vec<OsString> {
        let address = |number| range.address(number).to_string();
        let words = match self {
            Self::Pasta => {
                // Without it root becomes `nobody`, who may not enter root's namespace. It drops the privileges that it
                // does not need.
                let root = if rustix::process::geteuid().is_root() { "--runas 0:0" } else { "" };
                let host = if leads_to_host { "" } else { "--no-map-gw" };
                format!(
                    "{root} --quiet --foreground --ipv4-only --config-net {host} --no-dhcp --no-ndp \
                    --no-dhcpv6 --no-ra --mtu 1500 -t none -u none -T none -U none --ns-ifname {INTERFACE} \
                    --address {} --netmask {} --gateway {} --dns-forward {} --netns",
                    address(BRIDGE),
                    range.length(),
                    address(GATEWAY),
                    address(RESOLVER),
                )
            }
            Self::Slirp4netns => {
                let sandbox = if has_group_0() { "--enable-sandbox" } else { "" };
                let host = if leads_to_host { "" } else { "--disable-host-loopback" };
                format!("--configure --mtu=1500 {host} {sandbox} --cidr={range} --netns-type=path")
            }
        };
        let mut words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        words.push(place.into());
        if self == Self::Slirp4netns {
            words.push(INTERFACE.into());
        }
        words
    }

    /// Starts it and waits until its interface is up.
    fn start(
        self,
        program: &Path,
        bridge: &OwnedFd,
        place: &Path,
        (range, leads_to_host): (Subnet, bool),
    ) -> std::result::Result<UplinkProcess, String> {
        let spawn = || -> Result<Child> {
            mount_namespace(bridge, place)?;
            // The first child of a thread that asks for this is the first process of a pid namespace.
            Linux
                .unshare(Namespace::Pid.flag())
                .map_err(|errno| Error::system("create a PID namespace", errno))?;
            helper_command()
                .arg(KEEP_COMMAND)
                .arg(program)
                .args(self.arguments(place, range, leads_to_host))
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| Error::system("re-execute this program", errno_of(&error)))
        };
        let mut process = namespace::in_new_thread(spawn).map_err(|error| error.to_string())?;
        let output = collect_output(process.stderr.take());
        let mut keeper = UplinkProcess { process, output };
        let began = Instant::now();
        let ended = loop {
            if is_connected(bridge) {
                forward_answers(bridge).map_err(|error| error.to_string())?;
                return Ok(keeper);
            }
            if keeper.process.try_wait().is_ok_and(|status| status.is_some()) {
                break true;
            }
            if began.elapsed() > START_TIMEOUT {
                break false;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        drop(keeper.process.stdin.take());
        let _ = keeper.process.wait();
        Err(match (keeper.error_line(), ended) {
            (Some(output), _) => format!("`{output}`"),
            (None, true) => "it exited without an error message".to_owned(),
            (None, false) => {
                format!("timed out after {} s: its interface is not up", START_TIMEOUT.as_secs())
            }
        })
    }
}

/// Whether this user namespace has the group 0, which slirp4netns becomes for its sandbox.
fn has_group_0() -> bool {
    let map = std::fs::read_to_string("/proc/self/gid_map").unwrap_or_default();
    map.lines().any(|line| line.split_whitespace().next() == Some("0"))
}

/// Gives a namespace a path that only this thread and its children see, in a mount namespace of theirs.
///
/// pasta has dropped the privileges that /proc/PID/fd requires by the time it reads it.
fn mount_namespace(bridge: &OwnedFd, place: &Path) -> Result<()> {
    let show = || {
        Linux.unshare(Namespace::Mount.flag())?;
        Linux.set_propagation(MS_PRIVATE.into())?;
        let target = rustix::fs::open(place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let from = format!("/proc/self/fd/{}", bridge.as_raw_fd());
        let mount = open_tree(CWD, from, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&mount, c"", &target, c"", flags)
    };
    show().map_err(|errno| {
        Error::system(format!("show the bridge's namespace at `{}`", place.display()), errno)
    })
}

/// Reads a program's output to the end, so that it never blocks, and keeps the beginning; sent once the program has
/// exited.
fn collect_output(from: Option<impl std::io::Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(mut from) = from {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let _ = from.by_ref().take(4096).read_to_end(&mut kept);
            let _ = std::io::copy(&mut from, &mut std::io::sink());
            let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
        });
    }
    receiver
}

/// Whether the namespace has a default route by the interface, which is the last that the programs set up.
fn is_connected(bridge: &OwnedFd) -> bool {
    namespace::in_new_thread(|| {
        namespace::enter(bridge).is_ok()
            && std::fs::read_to_string("/proc/thread-self/net/route").is_ok_and(|table| {
                let mut rows = table.lines().map(|row| row.split_whitespace().take(2).collect::<Vec<_>>());
                rows.any(|row| row == [INTERFACE, "00000000"])
            })
    })
}

/// Passes answers on that come in by the uplink, where the namespace does not do so for all of its interfaces.
fn forward_answers(bridge: &OwnedFd) -> Result<()> {
    namespace::in_new_thread(|| {
        namespace::enter(bridge)?;
        let name = CString::new(INTERFACE).unwrap_or_default();
        bridge::forward_from(&name)
    })
}

/// The first process of the programs' pid namespace: starts one, and ends with it or when its own standard input does.
pub(super) fn run_keeper(mut words: impl Iterator<Item = OsString>) -> ExitCode {
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
