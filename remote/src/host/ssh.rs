//! A host reached by the system's ssh, with the user's own configuration.

use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};

use super::marks::{Filter, Mark};
use super::output::{Input, Output};
use super::running::{Running, Stream, Streams};
use super::script::{self, Reads};
use super::{control, problems, process, quote};

/// The maximum length of one word of a command line in Linux.
const MAX_COMMAND: usize = 120 << 10;
/// How long an unused connection stays open, so that a site with a second factor asks once.
const PERSIST: &str = "ControlPersist=15m";

/// How to reach a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshSettings {
    /// The host: a name of ssh's configuration, `user@host`, or `ssh://user@host:port`.
    pub host: String,
    /// Machines to pass through, as in `ssh -J`.
    pub jump: Option<String>,
    /// Whether commands see what the profiles of login shells set, such as a `PATH` with the site's programs.
    pub login_profile: bool,
}

/// A host reached by ssh.
#[derive(Debug)]
pub struct Ssh {
    settings: SshSettings,
    sharing: OnceLock<Sharing>,
}

/// How commands share a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sharing {
    /// As the user configured it.
    Configured,
    /// By a socket of ours.
    Socket(PathBuf),
    /// They do not.
    None,
}

impl Ssh {
    pub(super) fn new(settings: SshSettings) -> Result<Self> {
        for (what, name) in [("host", Some(&settings.host)), ("jump", settings.jump.as_ref())] {
            let is_wrong = |name: &String| {
                name.is_empty()
                    || name.starts_with('-')
                    || name.chars().any(|c| c.is_whitespace() || c.is_control())
            };
            if let Some(name) = name.filter(|name| is_wrong(name)) {
                let message = format!("invalid `ssh.{what}`: `{}`", name.escape_debug());
                return Err(Error::new(Kind::Config, message)
                    .help("write a name of ssh's configuration, or `user@host`"));
            }
        }
        Ok(Self { settings, sharing: OnceLock::new() })
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.settings.host
    }

    /// Runs a command to its end.
    pub(super) fn run(
        &self,
        command: &[&str],
        stdin: Option<Input<'_>>,
        timeout: Duration,
    ) -> Result<Output> {
        let mark = Mark::random();
        let reads = if stdin.is_some() { Reads::Input } else { Reads::Nothing };
        let mut ssh = self.command(command, &mark, reads)?;
        let filters = [Some(Filter::new(&mark)), Some(Filter::new(&mark))];
        let ended = process::collect(&mut ssh, stdin, filters, timeout).map_err(missing)?;
        let host = self.name();
        if let Some(status) = ended.filters.iter().flatten().find_map(Filter::status) {
            return Ok(Output { status, stdout: ended.stdout, stderr: ended.stderr });
        }
        let [_, stderr] = &ended.filters;
        let has_begun = ended.filters.iter().flatten().any(Filter::has_begun);
        if ended.is_late {
            let what =
                if has_begun { format!("`{}` on `{host}`", command[0]) } else { format!("ssh to `{host}`") };
            return Err(process::late(&what, timeout));
        }
        let noise = stderr.as_ref().map(Filter::noise).unwrap_or_default();
        let said = if has_begun { &ended.stderr } else { noise };
        Err(problems::explain(host, has_begun, process::code_of(ended.status), said))
    }

    /// Starts a command whose streams are used while it runs.
    pub(super) fn start(&self, command: &[&str], streams: Streams, terminal: bool) -> Result<Running> {
        let mark = Mark::random();
        let reads = match streams.stdin {
            _ if terminal => Reads::Terminal,
            Stream::Null => Reads::Nothing,
            _ => Reads::Input,
        };
        let ssh = self.command(command, &mark, reads)?;
        Running::remote(ssh, streams, &mark, self.name()).map_err(missing)
    }

    /// Connects a local connection with a port that the host reaches.
    pub(super) fn tunnel(&self, socket: TcpStream, address: &str, port: u16) -> Result<Running> {
        let streams = Streams::of_socket(socket, Stream::Pipe)?;
        let mut ssh = self.ssh(Reads::Input);
        ssh.arg("-W").arg(format!("{address}:{port}")).args(["--", self.name()]);
        Running::local(ssh, streams).map_err(missing)
    }

    /// Ends the shared connection, if there is one.
    pub fn close(&self) {
        if let Sharing::Socket(path) = self.sharing() {
            let mut ssh = Command::new("ssh");
            ssh.arg("-S").arg(path).args(["-O", "exit", "--", self.name()]);
            let _ = ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }

    fn command(&self, command: &[&str], mark: &Mark, reads: Reads) -> Result<Command> {
        let text = quote::for_login_shell(&script::of(command, mark, reads), self.settings.login_profile);
        if text.len() > MAX_COMMAND {
            return Err(Error::new(Kind::Config, format!("the command for `{}` is too long", self.name())));
        }
        let mut ssh = self.ssh(reads);
        ssh.args(["--", self.name(), &text]);
        Ok(ssh)
    }

    /// ssh with its options, without the host.
    fn ssh(&self, reads: Reads) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(self.options(reads == Reads::Terminal, can_ask()));
        if let Sharing::Socket(path) = self.sharing() {
            ssh.args(["-o", "ControlMaster=auto", "-o", PERSIST, "-S"]).arg(path);
        }
        ssh
    }

    /// The options that every command has. They win over the user's configuration.
    fn options(&self, terminal: bool, can_ask: bool) -> Vec<&str> {
        let mut options = vec![if terminal { "-tt" } else { "-T" }, "-a", "-x"];
        for option in [
            "ForwardAgent=no",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "Tunnel=no",
            // Banners, and the names of keys that were learned.
            "LogLevel=ERROR",
            "ServerAliveInterval=20",
        ] {
            options.extend(["-o", option]);
        }
        if !can_ask {
            options.extend(["-o", "BatchMode=yes"]);
        }
        if let Some(jump) = &self.settings.jump {
            options.extend(["-J", jump]);
        }
        options
    }

    fn sharing(&self) -> &Sharing {
        self.sharing.get_or_init(|| {
            if self.has_configured_socket() {
                return Sharing::Configured;
            }
            let path = control::path(&self.settings.host, self.settings.jump.as_deref());
            path.map_or(Sharing::None, Sharing::Socket)
        })
    }

    /// Whether the user's configuration has a control socket for the host.
    fn has_configured_socket(&self) -> bool {
        let mut ssh = Command::new("ssh");
        ssh.args(["-G", "--", self.name()]).stdin(Stdio::null()).stderr(Stdio::null());
        let output = ssh.output().map(|output| output.stdout).unwrap_or_default();
        is_shared(&String::from_utf8_lossy(&output))
    }
}

/// Whether the configuration that `ssh -G` prints shares connections.
fn is_shared(text: &str) -> bool {
    let value =
        |name: &str| text.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name);
    let is_on = |name: &str, off: &[&str]| value(name).is_some_and(|(_, value)| !off.contains(&value.trim()));
    is_on("controlpath", &["none"]) && is_on("controlmaster", &["false", "no"])
}

/// Whether ssh can ask the user for a password, a second factor or the key of a host.
fn can_ask() -> bool {
    File::open("/dev/tty").is_ok()
        || std::env::var_os("SSH_ASKPASS").is_some_and(|program| !program.is_empty())
}

/// The error if ssh itself cannot start.
fn missing(error: Error) -> Error {
    if error.kind != Kind::ProgramNotFound {
        return error;
    }
    Error::new(Kind::System, "`ssh` is not installed on this host")
        .help("install OpenSSH's client, such as the package `openssh-client` or `openssh-clients`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(host: &str, jump: Option<&str>) -> Result<Ssh> {
        Ssh::new(SshSettings {
            host: host.to_owned(),
            jump: jump.map(str::to_owned),
            ..SshSettings::default()
        })
    }

    #[test]
    fn no_agent_is_forwarded_and_no_question_is_asked_without_a_terminal() {
        let machine = ssh("ann@box", Some("gate")).unwrap();
        let options = machine.options(false, false).join(" ");
        for option in
            ["-a -x", "-o ForwardAgent=no", "-o ClearAllForwardings=yes", "-o BatchMode=yes", "-J gate"]
        {
            assert!(options.contains(option), "{option} in {options}");
        }
        let options = machine.options(true, true).join(" ");
        assert!(options.starts_with("-tt ") && !options.contains("BatchMode"), "{options}");
    }

    #[test]
    fn a_name_cannot_be_an_option() {
        for (host, jump) in
            [("", None), ("-oProxyCommand=x", None), ("a b", None), ("a\n", None), ("a", Some("-x"))]
        {
            assert_eq!(ssh(host, jump).unwrap_err().kind, Kind::Config, "{host:?}");
        }
        assert_eq!(ssh("ssh://ann@box:2222", None).unwrap().name(), "ssh://ann@box:2222");
    }

    #[test]
    fn a_socket_of_the_users_configuration_is_kept() {
        assert!(is_shared("host box\ncontrolmaster auto\ncontrolpath /home/ann/.ssh/x\n"));
        assert!(!is_shared("controlmaster false\ncontrolpath /home/ann/.ssh/x\n"));
        assert!(!is_shared("controlmaster auto\ncontrolpath none\n"));
        assert!(!is_shared("host box\n"));
    }
}
