//! Installed builders: they get the same Dockerfile, and their image is imported.
//!
//! They have their own base images and cache.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;

use jobc_image::{Descriptor, Platform, Store, progress, source};
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signals;

use super::dockerfile_file::Dockerfile;
use super::options::BuildOptions;
use crate::input::reason;
use crate::outcome::Outcome;
use crate::runtime::args::build_access::{BuildNetworkArg, EntitlementArg};
use crate::runtime::args::image::{BuildArgs, ProgressArg};
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::interruptible;
use crate::runtime::message::interrupted_by;

/// The variable that selects Docker's builder.
const BUILDKIT: &str = "DOCKER_BUILDKIT";

/// A builder that is a separate program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExternalBuilder {
    Buildah,
    Docker,
}

impl ExternalBuilder {
    /// The default builder: buildah, which needs no daemon, or docker if its daemon responds.
    pub(super) fn installed() -> Option<Self> {
        let works = |command: &mut Command| {
            let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if works(Command::new("buildah").arg("--version")) {
            return Some(Self::Buildah);
        }
        works(Command::new("docker").args(["version", "--format", "{{.Server.Version}}"]))
            .then_some(Self::Docker)
    }

    /// The program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Buildah => "buildah",
            Self::Docker => "docker",
        }
    }

    /// Builds, and imports the image under the requested names; an exit code if there is none, whose reason was printed.
    pub(super) fn build(
        self,
        args: &BuildArgs,
        file: &Dockerfile,
        given: &BuildOptions,
        store: &Store,
    ) -> Result<std::result::Result<Descriptor, ExitCode>> {
        let directory = TemporaryDirectory::new()?;
        let id = directory.0.join("id");
        if let Some(code) = self.run(self.command(args, file, given, &id), file, args.quiet)? {
            return Ok(Err(code));
        }
        let id = std::fs::read_to_string(&id).map_err(|error| {
            let why = reason(&error);
            Error::new(Kind::System, format!("{} did not write the id of the image: {why}", self.name()))
        })?;
        let (export, from) = self.export(id.trim(), &directory.0);
        let nothing = Dockerfile { path: Some(PathBuf::new()), text: Vec::new() };
        if let Some(code) = self.run(export, &nothing, args.quiet)? {
            return Ok(Err(code));
        }
        let images = source::import(store, &from, &progress::ignore_progress, &AtomicBool::new(false))?;
        let [image] = images.as_slice() else {
            let error = format!("{} exported {} images instead of one", self.name(), images.len());
            return Err(Error::new(Kind::System, error).into());
        };
        for tag in &given.tags {
            store.tag(tag, &image.descriptor)?;
        }
        Ok(Ok(image.descriptor.clone()))
    }

    /// The command that builds.
    fn command(self, args: &BuildArgs, file: &Dockerfile, given: &BuildOptions, id: &Path) -> Command {
        let mut command = Command::new(self.name());
        command.arg("build").arg("--iidfile").arg(id);
        let written = file.path.as_deref().unwrap_or(Path::new("-"));
        command.arg("--file").arg(written);
        for (flag, values) in [
            ("--build-arg", &args.build_arg),
            ("--secret", &args.secret),
            ("--label", &args.label),
            ("--ssh", &args.access.ssh),
        ] {
            for value in values {
                command.arg(flag).arg(value);
            }
        }
        match args.access.network {
            BuildNetworkArg::Default => {}
            BuildNetworkArg::None => drop(command.arg("--network=none")),
            BuildNetworkArg::Host => drop(command.arg("--network=host")),
        }
        // Buildah allows it always.
        if self == Self::Docker && args.access.allow.contains(&EntitlementArg::NetworkHost) {
            command.arg("--allow=network.host");
        }
        for tag in &given.tags {
            command.arg("--tag").arg(tag.to_string());
        }
        if let Some(target) = &args.target {
            command.arg("--target").arg(target);
        }
        if let Some(platform) = given.platforms.first().filter(|platform| **platform != Platform::here()) {
            command.arg("--platform").arg(platform.to_string());
        }
        let more = &args.more;
        for (flag, values) in [
            ("--build-context", &more.build_context),
            ("--add-host", &more.add_host),
            ("--annotation", &more.annotation),
            ("--ulimit", &more.ulimit),
        ] {
            for value in values {
                command.arg(flag).arg(value);
            }
        }
        if let Some(size) = &more.shm_size {
            command.arg("--shm-size").arg(size);
        }
        if let Some(memory) = &more.memory {
            command.arg("--memory").arg(memory);
        }
        for (flag, is_set) in [("--no-cache", args.no_cache), ("--pull", args.pull), ("--quiet", args.quiet)]
        {
            if is_set {
                command.arg(flag);
            }
        }
        if args.progress == ProgressArg::Plain && self == Self::Docker {
            command.arg("--progress=plain");
        }
        match self {
            Self::Buildah => {
                // Without it buildah keeps nothing of a build for the next.
                if !args.no_cache {
                    command.arg("--layers");
                }
                if args.plain_http {
                    command.arg("--tls-verify=false");
                }
                if let Some(seconds) = args.timestamp {
                    command.arg("--timestamp").arg(seconds.to_string());
                }
            }
            Self::Docker => {
                if std::env::var_os(BUILDKIT).is_none() && needs_buildkit_variable() {
                    command.env(BUILDKIT, "1");
                }
                if let Some(seconds) = args.timestamp {
                    command.arg("--build-arg").arg(format!("SOURCE_DATE_EPOCH={seconds}"));
                }
            }
        }
        command.arg(&args.context);
        command
    }

    /// The command that exports an image, and its destination.
    fn export(self, id: &str, directory: &Path) -> (Command, PathBuf) {
        let mut command = Command::new(self.name());
        match self {
            Self::Buildah => {
                let layout = directory.join("layout");
                command.args(["push", "--quiet", id]).arg(format!("oci:{}:built", layout.display()));
                (command, layout)
            }
            Self::Docker => {
                let archive = directory.join("image.tar");
                command.arg("save").arg("--output").arg(&archive).arg(id);
                (command, archive)
            }
        }
    }

    /// Runs a command; an exit code if it failed, or a signal ended it. Its output goes to stderr, since stdout is ours,
    /// or nowhere with `quiet`.
    fn run(self, mut command: Command, file: &Dockerfile, quiet: bool) -> Result<Option<ExitCode>> {
        let failed = |error: std::io::Error| {
            let name = self.name();
            if error.kind() == std::io::ErrorKind::NotFound {
                let package = if self == Self::Docker { "docker.io" } else { name };
                return Failure::usage_error(
                    Error::new(Kind::Unsupported, format!("`{name}` is not installed")).help(format!(
                        "install it (Debian: `apt install {package}`), or use `--builder embedded`"
                    )),
                );
            }
            Error::new(Kind::System, format!("cannot run `{name}`: {}", reason(&error))).into()
        };
        let output = if quiet {
            Stdio::null()
        } else {
            std::io::stderr().as_fd().try_clone_to_owned().map_err(failed)?.into()
        };
        let input = if file.path.is_none() { Stdio::piped() } else { Stdio::null() };
        let mut child = command.stdin(input).stdout(output).spawn().map_err(failed)?;
        if let Some(mut input) = child.stdin.take() {
            // A builder that ends before it has read everything prints the reason itself.
            let _ = input.write_all(&file.text);
        }
        // Blocked only now, so that the program does not inherit it.
        let signals = Signals::block_forwarded()?;
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let mut ended_by = None;
        let status = interruptible::run(
            &signals,
            || child.wait(),
            |signal| {
                if ended_by.replace(signal).is_some() {
                    interruptible::exit_by_signal(signal);
                }
                if let Some((pid, signal)) = pid.zip(rustix::process::Signal::from_named_raw(signal.number()))
                {
                    let _ = rustix::process::kill_process(pid, signal);
                }
            },
        )?;
        let status = status.map_err(failed)?;
        if let Some(signal) = ended_by {
            return Ok(Some(interrupted_by(signal, "no image was built")));
        }
        Ok((!status.success()).then(|| ExitCode::from(Outcome::Errors as u8)))
    }
}

/// Whether docker uses its legacy builder by default, as before version 23. The legacy builder has no `RUN --mount`,
/// which the Dockerfiles of `jobc build` use. Later versions choose themselves.
fn needs_buildkit_variable() -> bool {
    let Ok(output) = Command::new("docker").arg("--version").stdin(Stdio::null()).output() else {
        return false;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let major = text.strip_prefix("Docker version ").and_then(|version| version.split('.').next());
    major.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major < 23)
}

/// A directory that is removed with this value.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("jobc-build-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            Error::new(Kind::System, format!("cannot make `{}`: {}", path.display(), reason(&error)))
        })?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // It is in the directory for temporary files: leftovers are removed with that.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
