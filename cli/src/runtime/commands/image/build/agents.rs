//! `--ssh`: agents of the user, and temporary ones for private keys.

use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use jobc_sys::error::{Error, Kind, Result};

use crate::input::reason;

/// How long `ssh-agent` may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The command that determines the lifetime of an agent (ssh-agent(1)): it exits at the end of its standard input, and
/// so with this program, however that exits.
const KEEP: &str = "cat >/dev/null; kill \"$SSH_AGENT_PID\"; rm -rf -- \"$1\"";

/// The agents of a build. Dropping it ends the temporary ones.
#[derive(Default)]
pub(super) struct Agents {
    /// Sockets by id.
    pub(super) sockets: IndexMap<String, PathBuf>,
    started: Vec<StartedAgent>,
}

/// An agent for private keys.
struct StartedAgent {
    process: Child,
    directory: PathBuf,
}

impl Agents {
    /// Reads `ID[=SOCKET|KEY[,KEY...]]`, and starts agents for keys.
    pub(super) fn read(written: &[String]) -> Result<Self> {
        let mut agents = Self::default();
        for text in written {
            let (id, paths) =
                text.split_once('=').map_or((text.as_str(), None), |(id, paths)| (id, Some(paths)));
            let wrong = |message: String| Error::new(Kind::Config, message);
            if id.is_empty() {
                return Err(
                    wrong(format!("the SSH agent `{text}` has no id")).help("such as `--ssh default`")
                );
            }
            let paths: Vec<PathBuf> = paths
                .unwrap_or_default()
                .split(',')
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
                .collect();
            let socket = match paths.as_slice() {
                [] => std::env::var_os("SSH_AUTH_SOCK")
                    .filter(|path| !path.is_empty())
                    .map(PathBuf::from)
                    .ok_or_else(|| {
                        wrong(format!("the SSH agent `{id}` has no socket: `SSH_AUTH_SOCK` is not set"))
                            .help("start one with `ssh-agent`, or name a key: `--ssh default=KEY`")
                    })?,
                [path] if is_socket(path)? => path.clone(),
                keys => agents.start(keys)?,
            };
            if agents.sockets.insert(id.to_owned(), socket).is_some() {
                return Err(
                    wrong(format!("there are two SSH agents `{id}`")).help("give each an id of its own")
                );
            }
        }
        Ok(agents)
    }

    /// Starts an agent with keys; returns its socket.
    fn start(&mut self, keys: &[PathBuf]) -> Result<PathBuf> {
        let number = self.started.len();
        let directory = std::env::temp_dir().join(format!("jobc-agent-{}-{number}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&directory).map_err(|error| {
            Error::new(Kind::System, format!("cannot make `{}`: {}", directory.display(), reason(&error)))
        })?;
        let socket = directory.join("socket");
        let process = Command::new("ssh-agent")
            .arg("-a")
            .arg(&socket)
            .args(["sh", "-c", KEEP, "sh"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C goes to this program, which then stops the agent.
            .process_group(0)
            .spawn();
        let process = process.map_err(|error| {
            let _ = std::fs::remove_dir_all(&directory);
            not_runnable("ssh-agent", &error)
        })?;
        self.started.push(StartedAgent { process, directory });
        let began = Instant::now();
        while !socket.exists() {
            if began.elapsed() > START_TIMEOUT {
                return Err(Error::new(Kind::System, "timed out waiting for `ssh-agent`"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        for key in keys {
            add_key(&socket, key)?;
        }
        Ok(socket)
    }
}

/// Whether a path is a socket; else it is a key.
fn is_socket(path: &Path) -> Result<bool> {
    let data = std::fs::metadata(path).map_err(|error| {
        Error::new(
            Kind::Config,
            format!("the SSH agent or key `{}` cannot be read: {}", path.display(), reason(&error)),
        )
    })?;
    Ok(data.file_type().is_socket())
}

fn add_key(socket: &Path, key: &Path) -> Result<()> {
    let output = Command::new("ssh-add")
        .arg("-q")
        .arg("--")
        .arg(key)
        .env("SSH_AUTH_SOCK", socket)
        // A passphrase is not asked for.
        .env("SSH_ASKPASS", "false")
        .env("SSH_ASKPASS_REQUIRE", "force")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_runnable("ssh-add", &error))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line: String = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    let why = if line.is_empty() { String::new() } else { format!(": {line}") };
    Err(Error::new(Kind::Config, format!("`ssh-add` refuses the key `{}`{why}", key.display()))
        .help("a key with a passphrase must be in an agent: `ssh-add KEY`, then `--ssh default`"))
}

fn not_runnable(program: &str, error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::new(Kind::Unsupported, format!("`{program}` is not installed"))
            .help("install it (Debian: `apt install openssh-client`), or name the socket of an agent");
    }
    Error::new(Kind::System, format!("cannot run `{program}`: {}", reason(error)))
}

impl Drop for StartedAgent {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_a_socket_with_an_id() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let read = |texts: &[String]| Agents::read(texts).map(|agents| agents.sockets.clone());
        let one = format!("deploy={}", path.display());
        assert_eq!(read(std::slice::from_ref(&one)).unwrap()["deploy"], path);
        assert!(read(&[one.clone(), one]).unwrap_err().message().contains("two SSH agents"));
        assert!(read(&["=x".to_owned()]).unwrap_err().message().contains("no id"));
        assert!(read(&["a=/nowhere/x".to_owned()]).unwrap_err().message().contains("no such file"));
    }
}
