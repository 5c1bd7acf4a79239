//! Executes a `RUN` instruction: a container over the layers so far, whose upper layer stays on the disk.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::container::{CommandConfig, spec};
use super::work::CGROUP;
use jobc_container::bundle::Bundle;
use jobc_container::config::Config;
use jobc_container::container::create::{self, CreateRequest, CreatedContainer, StartMode};
use jobc_container::options::Options;
use jobc_container::process::{Exit, Process};
use jobc_container::root::{Root, UpperLayer};
use jobc_container::secret::SecretEnvironment;
use jobc_container::state::Id;
use jobc_container::state::store::Store as Containers;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::signals::Signal;

/// How often it is checked whether the build was canceled, in milliseconds.
const CANCEL_POLL_MILLISECONDS: i64 = 50;

/// The maximum length of a reported line.
const MAX_LINE_LENGTH: u64 = 1 << 16;

/// Where a command runs.
#[derive(Debug)]
pub(super) struct CommandContext<'a> {
    /// The layers so far, lowest first.
    pub(super) lowers: Vec<PathBuf>,
    /// The step's own directory: what the command changes is in its `upper`.
    pub(super) directory: &'a Path,
    /// The containers of this build.
    pub(super) containers: &'a Containers,
    /// The container's name.
    pub(super) id: &'a str,
}

/// Runs a command, and reports each line that it writes. Returns its exit status.
pub(super) fn run(
    stand: &CommandContext<'_>,
    setting: &CommandConfig,
    secrets: SecretEnvironment,
    tell: &(dyn Fn(Vec<u8>) + Sync),
    stopped: &AtomicBool,
) -> Result<Exit> {
    let (output, input) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(|errno| Error::system("create a pipe for a command's output", errno))?;
    std::thread::scope(|scope| {
        scope.spawn(move || forward_lines(output, tell));
        let mut made = create_container(stand, setting, secrets, input)?;
        let exit = wait_or_kill(&made.process, stopped);
        if exit.is_ok() {
            made.container.mark_reaped();
        }
        let removed = made.container.delete(true);
        let exit = exit?;
        removed?;
        Ok(exit)
    })
}

fn create_container(
    stand: &CommandContext<'_>,
    setting: &CommandConfig,
    secrets: SecretEnvironment,
    input: OwnedFd,
) -> Result<CreatedContainer> {
    let again =
        || input.try_clone().map_err(|error| Error::system("duplicate a file descriptor", errno(&error)));
    let attempt = |devices: bool, secrets: SecretEnvironment| {
        let begun = create::reserve(stand.containers, &Id::new(stand.id)?)?;
        let root = Root::over(stand.lowers.clone(), UpperLayer::Directory(stand.directory.to_owned()));
        let root = root.with_state_dir(begun.directory())?;
        let Root::Overlay { on, .. } = &root else { return Err(Error::new(Kind::State, "no overlay")) };
        let mut spec = spec(setting, on, devices)?;
        if let Some(linux) = spec.linux_mut() {
            linux.set_cgroups_path(Some(PathBuf::from(format!("/jobc/{CGROUP}/{}", stand.id))));
        }
        let text = serde_json::to_vec(&spec)
            .map_err(|error| Error::new(Kind::State, format!("cannot write config.json: {error}")))?;
        let bundle = Bundle {
            dir: stand.directory.to_owned(),
            config: Config::read(&text)?,
            text,
            linkless: std::collections::BTreeSet::new(),
        };
        let null =
            File::open("/dev/null").map_err(|error| Error::system("open `/dev/null`", errno(&error)))?;
        let request = CreateRequest {
            options: Options {
                streams: Some([null.into(), again()?, again()?]),
                without_cgroup: !devices,
                skip_io_accounting: true,
                secret_environment: secrets,
                ..Options::default()
            },
            root: Some(root),
            ..CreateRequest::default()
        };
        begun.create(&bundle, request, StartMode::Attach, None)
    };
    // A cgroup keeps root from the host's devices. In a user namespace the kernel itself does.
    let root = !jobc_sys::host::needs_user_namespace() && !jobc_sys::host::in_user_namespace();
    let made = match attempt(root, secrets.clone()) {
        Err(error) if root && error.kind == Kind::Unenforceable => attempt(false, secrets),
        other => other,
    };
    // The output ends when no other process has its write end.
    drop(input);
    made
}

/// Waits until a process has ended; kills it when the build is canceled.
fn wait_or_kill(process: &Process, stopped: &AtomicBool) -> Result<Exit> {
    let time = Timespec { tv_sec: 0, tv_nsec: CANCEL_POLL_MILLISECONDS * 1_000_000 };
    let mut killed = false;
    loop {
        if stopped.load(Ordering::Relaxed) && !killed {
            Signal::KILL.send(&process.pidfd)?;
            killed = true;
        }
        let mut polled = [PollFd::new(&process.pidfd, PollFlags::IN)];
        match poll(&mut polled, Some(&time)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return process.wait(),
            Err(errno) => return Err(Error::system("wait for a command", errno)),
        }
    }
}

/// Reports the data of a pipe, line by line, until the pipe has no writers.
fn forward_lines(output: OwnedFd, tell: &(dyn Fn(Vec<u8>) + Sync)) {
    use std::io::Read as _;
    let mut reader = BufReader::new(File::from(output));
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MAX_LINE_LENGTH).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        tell(line);
    }
}

/// The empty files and directories that mounts cover, as the lowest layer, so that none is created in the image.
///
/// A path ends with a slash if it is a directory.
pub(super) fn create_stubs<'a>(directory: &Path, paths: impl IntoIterator<Item = &'a str>) -> Result<()> {
    for path in paths {
        let whole = directory.join(path.trim_start_matches('/'));
        let made = if path.ends_with('/') {
            std::fs::create_dir_all(&whole)
        } else {
            let parent = whole.parent().unwrap_or(directory);
            std::fs::create_dir_all(parent).and_then(|()| match File::create_new(&whole) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            })
        };
        made.map_err(|error| {
            Error::new(Kind::System, format!("cannot create `{}`", whole.display())).because(error)
        })?;
    }
    Ok(())
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
