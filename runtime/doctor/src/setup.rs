//! The commands by which root sets a host up for a user: what `jobc doctor --fix` prints and runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Finding, Host, Report, Status};
use super::{cgroups, ids, namespaces, network};

/// The option that runs the script, after `sudo`.
pub const SETUP_APPLY: &str = "jobc doctor --fix --apply";

impl Report {
    /// The set-up as a script for `sh`: one command per line, each after a comment that names its check.
    ///
    /// Steps without a command, such as a setting of the boot loader, are comments. The script has no command if none
    /// would help.
    pub fn setup(&self) -> String {
        let who = self.user.name.clone().unwrap_or_else(|| format!("user {}", self.user.uid));
        let mut done = BTreeSet::new();
        let (mut commands, mut by_hand) = (String::new(), String::new());
        for check in self.checks.iter().filter(|check| check.status != Status::Ok) {
            let mut new = check.commands.iter().filter(|&command| done.insert(command.as_str())).peekable();
            if new.peek().is_some() {
                _ = writeln!(commands, "# {}: {}", check.name, one_line(&check.found));
            }
            for command in new {
                _ = writeln!(commands, "{command}");
            }
            if check.commands.is_empty() && is_for_root(check) {
                by_hand.extend(
                    check.fix.iter().map(|fix| format!("# by hand: {}: {}\n", check.name, one_line(fix))),
                );
            }
        }
        let head = if commands.is_empty() {
            format!("# no command of root's is missing for {who} to run jobs; `jobc doctor` has all checks\n")
        } else {
            format!("# sets this host up for {who} to run jobs; run as root, or: sudo {SETUP_APPLY}\n")
        };
        let log_in = if commands.is_empty() { "" } else { "# then log in again\n" };
        format!("{head}{commands}{log_in}{by_hand}")
    }
}

/// Whether a command is one that the checks print for the user of that name.
///
/// Root checks this before it runs the output of a user's process: the user can trace that process and make it print
/// anything.
pub fn is_setup_command(machine: &dyn Host, command: &str, name: &str) -> bool {
    let known = ids::commands(machine, name).into_iter().chain(network::commands(machine));
    cgroups::delegate_command() == Some(command)
        || namespaces::COMMANDS.iter().any(|known| known() == command)
        || known.into_iter().any(|known| known == command)
}

/// Whether containers or their limits need it, and it does not only follow from another check.
fn is_for_root(check: &Finding) -> bool {
    let follows = check.fix.iter().any(|fix| fix.starts_with("see "));
    (check.needed || check.name.starts_with("cgroup.")) && !follows
}

/// Text that stays a comment.
fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}
