//! The variables that `git` is run with: whose configuration, logins and keys it uses.

use std::path::Path;
use std::process::Command;

/// The settings that `git` uses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Settings<'a> {
    /// None but those given here, so that a build is the same for every user.
    Isolated {
        /// The socket of an SSH agent, whose keys are the only ones.
        agent: Option<&'a Path>,
        /// A file with the trusted certificates, instead of the host's.
        certificates: Option<&'a Path>,
    },
    /// Those of the user: credential helpers, proxies, certificates, and the configuration and keys of ssh(1).
    OfUser,
}

impl Settings<'_> {
    /// Advice if `git` is not installed.
    pub(super) fn install_help(self) -> &'static str {
        match self {
            Self::Isolated { .. } => {
                "install it (Debian: `apt install git`), or use files of the build context"
            }
            Self::OfUser => "install it (Debian: `apt install git`)",
        }
    }
}

/// SSH without the user's configuration and keys: keys come from the agent, known hosts from the user.
const ISOLATED_SSH: &str = "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes -o IdentityFile=none \
    -o ProxyCommand=none -o PermitLocalCommand=no -o ForwardAgent=no -o ConnectTimeout=20 \
    -o ServerAliveInterval=15";

/// Added to the user's own command: no questions, no waiting for long, and nothing that outlives the command.
const USER_SSH_OPTIONS: &str = "-o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ControlMaster=no \
    -o ClearAllForwardings=yes -o ForwardAgent=no";

/// Variables that say how to reach other hosts.
const PROXIES: [&str; 7] =
    ["http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"];

/// Variables that lead to another repository than that of the working directory.
const OF_REPOSITORIES: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_CONFIG",
];

/// Sets the variables of a command that runs in a directory.
pub(super) fn set(command: &mut Command, settings: Settings<'_>, directory: &Path) {
    match settings {
        Settings::Isolated { agent, .. } => isolated(command, agent, directory),
        Settings::OfUser => of_user(command, directory),
    }
    // The certificates that this host trusts, as this program finds them.
    for (own, of_git) in [("SSL_CERT_FILE", "GIT_SSL_CAINFO"), ("SSL_CERT_DIR", "GIT_SSL_CAPATH")] {
        let is_set = matches!(settings, Settings::OfUser) && std::env::var_os(of_git).is_some();
        if let Some(value) = std::env::var_os(own).filter(|_| !is_set) {
            command.env(of_git, value);
        }
    }
    if let Settings::Isolated { certificates: Some(certificates), .. } = settings {
        command.env("GIT_SSL_CAINFO", certificates).env_remove("GIT_SSL_CAPATH");
    }
    command.envs([
        ("LC_ALL", "C"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("SSH_ASKPASS", "false"),
        ("GIT_PROTOCOL_FROM_USER", "0"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
    ]);
    // The directory may be in a repository, which is not the one that is fetched.
    command.env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap_or(directory));
}

fn isolated(command: &mut Command, agent: Option<&Path>, directory: &Path) {
    let variable = |name: &'static str| std::env::var_os(name).map(|value| (name, value));
    command
        .env_clear()
        .envs(["PATH"].into_iter().chain(PROXIES).filter_map(variable))
        .envs(agent.map(|agent| ("SSH_AUTH_SOCK", agent)))
        .envs([
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_ASKPASS", "false"),
            ("GIT_SSH_COMMAND", ISOLATED_SSH),
        ])
        .env("HOME", directory)
        .env("XDG_CONFIG_HOME", directory.join(".git"));
}

fn of_user(command: &mut Command, directory: &Path) {
    for name in OF_REPOSITORIES {
        command.env_remove(name);
    }
    // A program that the user has named answers without prompting, as in CI; one for a desktop would wait for input.
    if std::env::var_os("GIT_ASKPASS").is_none() {
        command.env("GIT_ASKPASS", "");
    }
    command.env("GCM_INTERACTIVE", "never");
    let of_variable = std::env::var("GIT_SSH_COMMAND").ok();
    if of_variable.is_none() && std::env::var_os("GIT_SSH").is_some() {
        return;
    }
    let found = of_variable.or_else(|| configured_ssh(directory)).unwrap_or_else(|| "ssh".to_owned());
    if let Some(words) = without_questions(&found) {
        command.env("GIT_SSH_COMMAND", words);
    }
}

/// The command in the user's configuration.
fn configured_ssh(directory: &Path) -> Option<String> {
    let mut command = Command::new("git");
    for name in OF_REPOSITORIES {
        command.env_remove(name);
    }
    let output = command.args(["config", "--get", "core.sshCommand"]).current_dir(directory).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A command of OpenSSH with options that prevent prompts; `None` for another program.
fn without_questions(command: &str) -> Option<String> {
    let program = command.split_whitespace().next()?;
    let is_openssh = program.trim_matches(['"', '\'']).rsplit('/').next() == Some("ssh");
    is_openssh.then(|| format!("{command} {USER_SSH_OPTIONS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_openssh_gets_its_options() {
        for (command, expected) in [
            ("ssh", true),
            ("ssh -i ~/.ssh/deploy", true),
            ("/usr/bin/ssh", true),
            ("'/opt/my/ssh' -v", true),
            ("plink -batch", false),
            ("false", false),
            ("", false),
        ] {
            let found = without_questions(command);
            assert_eq!(found.is_some(), expected, "{command}");
            assert!(found.is_none_or(|found| found.starts_with(command)), "{command}");
        }
    }
}
