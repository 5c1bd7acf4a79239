//! Errors from the messages of ssh when it cannot reach a host.

use jobc_sys::error::{Error, Kind};

/// Messages of ssh, their meaning, and advice; `{}` is the host.
const PROBLEMS: &[(&str, &str, &str)] = &[
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host key of `{}` has changed",
        "ask its administrator whether that is right, then remove the old key by `ssh-keygen -R`",
    ),
    (
        "Host key verification failed",
        "the host key of `{}` is not known",
        "run `ssh {} true` once, and compare the key that it shows with the machine's",
    ),
    (
        "host key is known for",
        "the host key of `{}` is not known",
        "run `ssh {} true` once, and compare the key that it shows with the machine's",
    ),
    (
        "Too many authentication failures",
        "`{}` refuses the login: too many keys were tried",
        "name the right one by `IdentityFile` and `IdentitiesOnly yes` in ~/.ssh/config",
    ),
    (
        "Permission denied",
        "`{}` refuses the login: permission denied",
        "check that `ssh {} true` works; user and key can be set in ~/.ssh/config",
    ),
    (
        "Could not resolve hostname",
        "cannot resolve the name of `{}`",
        "check `ssh.host` of the target, and ~/.ssh/config",
    ),
    (
        "Connection refused",
        "cannot connect to `{}`: connection refused",
        "check that sshd runs there, and the port in ~/.ssh/config",
    ),
    ("Connection timed out", "cannot connect to `{}`: timed out", REACH),
    ("Operation timed out", "cannot connect to `{}`: timed out", REACH),
    ("No route to host", "cannot connect to `{}`: no route to host", REACH),
    ("Network is unreachable", "cannot connect to `{}`: the network is unreachable", REACH),
    (
        "UNPROTECTED PRIVATE KEY FILE",
        "ssh does not use a private key that others can read",
        "run `chmod 600` on the key",
    ),
    (
        "Bad owner or permissions on",
        "ssh does not use a configuration that others can write",
        "run `chmod 600` on the file that `ssh {} true` names",
    ),
    (
        "Bad configuration option",
        "ssh does not understand its configuration",
        "run `ssh {} true` to see the line",
    ),
    (
        "no matching",
        "ssh and `{}` have no algorithm in common",
        "run `ssh -v {} true` to see which they have",
    ),
];

const REACH: &str = "check that the machine is on, and whether it needs `ssh.jump` or a VPN";

/// The error of a connection: `status` is the exit code of ssh, and `text` what it printed on standard error.
pub(super) fn explain(host: &str, has_begun: bool, status: i32, text: &[u8]) -> Error {
    let text = String::from_utf8_lossy(text);
    if has_begun {
        return Error::new(Kind::System, format!("the connection to `{host}` was lost"));
    }
    let fill = |words: &str| words.replace("{}", host);
    if status == 255
        && let Some((_, what, help)) = PROBLEMS.iter().find(|(sign, _, _)| text.contains(sign))
    {
        return Error::new(Kind::System, fill(what)).help(fill(help));
    }
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    let why = last
        .map_or_else(|| format!("exit code {status}"), |line| line.trim_start_matches("ssh: ").to_owned());
    let why: String = why.chars().filter(|c| !c.is_control()).take(300).collect();
    let error = if status == 255 {
        Error::new(Kind::System, format!("cannot connect to `{host}`: {why}"))
    } else {
        Error::new(Kind::System, format!("`{host}` does not run commands: {why}"))
    };
    error.help(fill("check that `ssh {} true` works"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: i32, text: &str, message: &str, help: &str) {
        let error = explain("box", false, status, text.as_bytes());
        assert_eq!((error.message().as_str(), error.advice().as_deref()), (message, Some(help)), "{text}");
    }

    #[test]
    fn ssh_errors_are_explained() {
        let key = "run `ssh box true` once, and compare the key that it shows with the machine's";
        check(255, "Host key verification failed.\r\n", "the host key of `box` is not known", key);
        check(
            255,
            "ann@box: Permission denied (publickey,password).\r\n",
            "`box` refuses the login: permission denied",
            "check that `ssh box true` works; user and key can be set in ~/.ssh/config",
        );
        check(
            255,
            "ssh: Could not resolve hostname box: Name or service not known\r\n",
            "cannot resolve the name of `box`",
            "check `ssh.host` of the target, and ~/.ssh/config",
        );
        check(
            255,
            "ssh: connect to host 127.0.0.1 port 1: Connection refused\r\n",
            "cannot connect to `box`: connection refused",
            "check that sshd runs there, and the port in ~/.ssh/config",
        );
        let works = "check that `ssh box true` works";
        check(255, "", "cannot connect to `box`: exit code 255", works);
        check(255, "kex: odd\nssh: strange\n", "cannot connect to `box`: strange", works);
        check(
            1,
            "This account is currently not available.\n",
            "`box` does not run commands: This account is currently not available.",
            works,
        );
        let lost = explain("box", true, 255, b"");
        assert_eq!(lost.message(), "the connection to `box` was lost");
    }
}
