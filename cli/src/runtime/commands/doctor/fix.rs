//! `jobc doctor --fix`: the commands that set this host up for a user, printed or run.
//!
//! Only a process of the user can check what the user lacks. So root starts another `jobc` as the user for the checks,
//! and runs the script that it prints.

use std::process::Command;

use jobc_doctor::setup::{SETUP_APPLY, is_setup_command};
use jobc_doctor::{LocalHost, examine};
use jobc_sys::accounts;

use crate::outcome::Outcome;
use crate::runtime::args::doctor::DoctorArgs;
use crate::terminal;

pub(super) fn run(args: &DoctorArgs) -> Outcome {
    let is_root = rustix::process::geteuid().is_root();
    if args.apply && !is_root {
        let message = format!("jobc: `--apply` needs root; run `sudo {SETUP_APPLY}`\n");
        terminal::eprint(&message);
        return Outcome::UsageError;
    }
    let user = args.user.clone().or_else(|| std::env::var("SUDO_USER").ok().filter(|_| is_root));
    let script = match user.map(|name| script_for(&name, is_root)) {
        None | Some(Ok(None)) => examine(LocalHost::here()).setup(),
        Some(Ok(Some(script))) => script,
        Some(Err(message)) => {
            terminal::eprint(&format!("jobc: {message}\n"));
            return Outcome::UsageError;
        }
    };
    if !args.apply {
        terminal::print(&script);
        return Outcome::Success;
    }
    apply(&script)
}

/// The script that the checks print for a user; nothing if that is the user of this process.
fn script_for(name: &str, is_root: bool) -> Result<Option<String>, String> {
    let passwd =
        accounts::read_file("/etc/passwd").map_err(|error| format!("cannot read `/etc/passwd`: {error}"))?;
    let user = accounts::users(&passwd).find(|user| user.name == name);
    let user = user.ok_or_else(|| format!("no user `{name}` in /etc/passwd"))?;
    let uid = user.uid;
    if uid == rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    if !is_root {
        return Err(format!(
            "only root can check what `{name}` has; run `sudo jobc doctor --fix --user {name}`"
        ));
    }
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new("runuser");
    command.args(["-u", name, "--"]).arg(&program).args(["doctor", "--fix"]).env("HOME", user.home);
    command.env_remove("SUDO_USER").env_remove("XDG_STATE_HOME").env_remove("XDG_DATA_HOME");
    // It leads to the user's systemd, which creates scopes.
    let directory = format!("/run/user/{uid}");
    if std::path::Path::new(&directory).is_dir() {
        command.env("XDG_RUNTIME_DIR", directory);
    } else {
        command.env_remove("XDG_RUNTIME_DIR");
    }
    let failed = |why: &str| {
        format!(
            "the checks could not be run as `{name}` by `{}`: {why}; install jobc where everyone can run it",
            program.display()
        )
    };
    let output = command.current_dir("/").output().map_err(|error| failed(&format!("runuser: {error}")))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let script = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = LocalHost::here();
    let mut commands = script.lines().filter(|line| !line.starts_with('#'));
    match commands.find(|command| !is_setup_command(&host, command, name)) {
        None => Ok(Some(script)),
        Some(command) => Err(format!(
            "the checks as `{name}` printed `{command}`, which `jobc doctor --fix` never prints; nothing was run"
        )),
    }
}

/// Runs the commands of a script one by one, and shows each; the first that fails ends it.
fn apply(script: &str) -> Outcome {
    for line in script.lines() {
        if line.starts_with('#') {
            terminal::print(&format!("{line}\n"));
            continue;
        }
        terminal::print(&format!("+ {line}\n"));
        let problem = match Command::new("sh").args(["-c", line]).status() {
            Ok(status) if status.success() => continue,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        terminal::eprint(&format!("jobc: `{line}` failed: {problem}; the commands after it were not run\n"));
        return Outcome::Errors;
    }
    Outcome::Success
}
