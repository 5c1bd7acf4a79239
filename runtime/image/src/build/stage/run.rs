//! `RUN`.

use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Mutex, PoisonError};

use super::mounts::Mounts;
use super::trust;
use super::{Stage, StepError, StepOutcome, canceled};
use crate::build::container::{CommandConfig, CommandMount, MountSource};
use crate::build::foreign;
use crate::build::network::{CommandNetwork, NetworkLease, check_command, effective};
use crate::build::run::{CommandContext, create_stubs, run};
use crate::build::work::StepDirectory;
use crate::progress::Progress;
use jobc_container::process::Exit;
use jobc_container::root::layers::Layers;
use jobc_container::user::{self, Account};
use jobc_dockerfile::{Network, Run, Runs, Span};
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// How many of a command's last lines are reported if it fails.
const MAX_REPORTED_LINES: usize = 20;

/// The path of a heredoc's file that begins with `#!`, as with BuildKit.
const SCRIPT_DIRECTORY: &str = "/dev/pipes";

/// The mounts of every container, as [`create_stubs`] takes it.
const COVERED_PATHS: [&str; 5] = ["/proc/", "/sys/", "/dev/", "/etc/hosts", "/etc/resolv.conf"];

impl Stage<'_> {
    /// Carries it out.
    pub(super) fn run(&mut self, written: &Run, span: &Span, text: &str) -> StepOutcome<()> {
        let access = &self.builder.request.access;
        // A trigger of a base image was not in the file.
        check_command(written, span, access)?;
        let network = effective(written, access);
        let settings = &self.result.settings;
        let (user, cwd) = (settings.execution.user.clone(), settings.current_directory());
        let arguments = match &written.command {
            Runs::Shell(text) => self.result.settings.shell_form(text),
            Runs::Exec(arguments) => arguments.clone(),
            Runs::Script { name, .. } => vec![format!("{SCRIPT_DIRECTORY}/{name}")],
        };
        let mounts = Mounts::of(self, &written.mounts)?;
        let mut key = self.key("run").with(&user).with(&cwd).with(format!("{network:?}"));
        key.add_all(&arguments);
        if let Runs::Script { content, .. } = &written.command {
            key.add(content);
        }
        // Not the proxies: they define how content is fetched, not which.
        for variables in [self.variables.args(), self.variables.env()] {
            key.add_all(variables.iter().map(|(name, value)| format!("{name}={value}")));
        }
        mounts.add_to_key(&mut key);
        let extras = &self.builder.request.extras;
        if !extras.hosts.is_empty() {
            key.add_all(extras.hosts.iter().map(|(name, address)| format!("{name}={address}")));
        }
        let environment: Vec<String> =
            self.variables.of_command().iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.layer(key.finish(), text, |stage, step, lowers| {
            foreign::require_emulator(&stage.result.platform)?;
            let account = account(&lowers, &user)?;
            if let Some(help) = single_id_hint().filter(|_| (account.uid, account.gid) != (0, 0)) {
                return Err(Error::new(Kind::Unenforceable, format!("the command cannot run as `{user}`"))
                    .help(help)
                    .into());
            }
            let made = mounts.create(stage, step)?;
            let lease = if network == Network::Default { stage.builder.lease_network()? } else { None };
            let mut environment = environment;
            environment.extend(made.variables);
            let certificates = &stage.builder.request.access.certificates;
            let trusted =
                certificates.map(|certificates| trust::mounts(step, certificates, &mut environment));
            let mut setting = CommandConfig {
                arguments,
                environment,
                cwd,
                account,
                network: match (network, &lease) {
                    (Network::Host, _) => CommandNetwork::Host,
                    (_, Some(lease)) => CommandNetwork::Joined(lease.namespace()?),
                    (_, None) => CommandNetwork::None,
                },
                mounts: made.mounts,
                shm_bytes: stage.builder.request.extras.shm_bytes,
                rlimits: stage.builder.request.extras.rlimits.clone(),
                memory_bytes: stage.builder.request.extras.memory_bytes,
            };
            let files = network_files(step, lease.as_ref(), &stage.builder.request.extras.hosts)?;
            setting.mounts.splice(0..0, files.into_iter().chain(trusted.transpose()?.into_iter().flatten()));
            if let Runs::Script { name, content } = &written.command {
                setting.mounts.push(script(step, name, content)?);
            }
            let covered = setting.mounts.iter().map(|bound| match &bound.source {
                MountSource::Path(path) if !path.is_dir() => bound.target.clone(),
                _ => format!("{}/", bound.target.trim_end_matches('/')),
            });
            let covered: Vec<String> = covered.collect();
            let below = step.path().join("stubs");
            std::fs::create_dir(&below).map_err(|error| failed(&below, &error))?;
            create_stubs(&below, COVERED_PATHS.into_iter().chain(covered.iter().map(String::as_str)))?;
            let stand = CommandContext {
                lowers: std::iter::once(below).chain(lowers).collect(),
                directory: step.path(),
                containers: &stage.builder.work()?.containers(),
                id: &step.id(),
            };
            let last = Mutex::new(VecDeque::new());
            let tell = |line: Vec<u8>| {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.len() == MAX_REPORTED_LINES {
                    last.pop_front();
                }
                last.push_back(line.clone());
                drop(last);
                (stage.builder.progress)(Progress::Output { stage: stage.name(), number: stage.step, line });
            };
            let exit = run(&stand, &setting, made.secrets, &tell, &stage.builder.canceled)?;
            // Locks are held until here.
            drop((made.locks, made.agents, lease));
            let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
            check_exit(exit, stage.builder.is_canceled(), single_id_hint(), last.into())
        })
    }
}

/// The hint for a failure if this user has only one id.
fn single_id_hint() -> Option<&'static str> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if !jobc_sys::host::needs_user_namespace() {
        return None;
    }
    let maps = jobc_sys::id_map::IdMaps::rootless(uid.as_raw(), gid.as_raw()).ok()?;
    maps.single().map(|_| {
        "the build has one user and one group, so programs that change ids fail: install `uidmap` and let root grant ids in /etc/subuid and /etc/subgid; for apt alone `-o APT::Sandbox::User=root` is enough"
    })
}

fn check_exit(exit: Exit, stopped: bool, one_id: Option<&str>, last: Vec<Vec<u8>>) -> StepOutcome<()> {
    if stopped {
        return Err(canceled().into());
    }
    let message = match exit {
        Exit::Code(0) => return Ok(()),
        Exit::Code(code) => format!("the command failed with exit code {code}"),
        Exit::Signal(signal) => format!("the command was killed by signal {signal}"),
    };
    let mut error = Error::new(Kind::System, message);
    // A command that is not found has changed no ids.
    if let Some(help) = one_id.filter(|_| !matches!(exit, Exit::Code(126 | 127))) {
        error = error.help(help);
    }
    Err(StepError::Command(error, last))
}

/// The user of a command; root if none is named.
fn account(lowers: &[std::path::PathBuf], user: &str) -> Result<Account> {
    if user.is_empty() {
        return Ok(Account::default());
    }
    let layers = Layers::open(lowers).map_err(|errno| Error::system("open the layers", errno))?;
    user::lookup(&layers, user)
        .map_err(|error| Error { what: error.what.replace("the container", "the image"), ..error })
}

/// /etc/hosts and /etc/resolv.conf: copies of the host's, so that a program that writes to them changes nothing. On a
/// network of its own, a command has that network's name server. `hosts` are additional names with their addresses.
fn network_files(
    step: &StepDirectory,
    lease: Option<&NetworkLease<'_>>,
    hosts: &[(String, String)],
) -> Result<Vec<CommandMount>> {
    ["hosts", "resolv.conf"]
        .map(|name| {
            let mut text = std::fs::read(format!("/etc/{name}")).unwrap_or_default();
            if name == "hosts" {
                // Before the host's own lines: the first address of a name is used.
                let own: String =
                    hosts.iter().map(|(name, address)| format!("{address}\t{name}\n")).collect();
                text.splice(0..0, own.into_bytes());
            } else if let Some(lease) = lease {
                text = lease.resolv_conf(&String::from_utf8_lossy(&text)).into_bytes();
            }
            let path = step.path().join(name);
            write(&path, &text, 0o644)?;
            Ok(CommandMount {
                target: format!("/etc/{name}"),
                source: MountSource::Path(path),
                read_only: false,
            })
        })
        .into_iter()
        .collect()
}

/// The file of a heredoc, to be executed.
fn script(step: &StepDirectory, name: &str, content: &str) -> Result<CommandMount> {
    let path = step.path().join("script");
    write(&path, content.as_bytes(), 0o755)?;
    Ok(CommandMount {
        target: format!("{SCRIPT_DIRECTORY}/{name}"),
        source: MountSource::Path(path),
        read_only: true,
    })
}

pub(super) fn write(path: &std::path::Path, content: &[u8], mode: u32) -> Result<()> {
    std::fs::write(path, content)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)))
        .map_err(|error| failed(path, &error))
}

fn failed(path: &std::path::Path, error: &std::io::Error) -> Error {
    Error::new(Kind::System, format!("cannot write `{}`: {}", path.display(), describe_io(error)))
}
