//! The user that commands run as.

use jobc_schema::Pointer;

use crate::emit::dockerfile::{Command, Kind};

use super::base::System;
use super::build::Build;
use jobc_schema::shell;

/// Creates the user and group of an image block if the base image lacks them, and their working directory.
///
/// Numeric IDs need no entry in `/etc/passwd`. The directory is created here because `WORKDIR` would give it to root.
pub(super) fn create(build: &mut Build<'_>, user: Option<&str>, workdir: Option<&str>, at: &Pointer) {
    let Some(user) = user else { return };
    let (name, group) = user.split_once(':').map_or((user, None), |(name, group)| (name, Some(group)));
    if matches!(name, "root" | "0") || build.base.user == Some(name) {
        return;
    }
    let alpine = build.base.system == System::Alpine;
    let mut commands = Vec::new();
    let is_name = |text: &str| !text.starts_with(|c: char| c.is_ascii_digit());
    let group_needed = group.filter(|group| is_name(group) || is_name(name));
    if let Some(group) = group_needed {
        let add = match (alpine, is_name(group)) {
            (true, true) => format!("addgroup {group}"),
            (true, false) => format!("addgroup -g {group} {name}"),
            (false, true) => format!("groupadd {group}"),
            (false, false) => format!("groupadd --gid {group} {name}"),
        };
        commands.push(format!("(getent group {group} >/dev/null || {add})"));
    }
    if is_name(name) {
        let add = match (alpine, group) {
            (true, None) => format!("adduser -D {name}"),
            // adduser takes a group by name only.
            (true, Some(group)) => {
                format!("adduser -D -G \"$(getent group {group} | cut -d: -f1)\" {name}")
            }
            (false, None) => format!("useradd --create-home {name}"),
            (false, Some(group)) => format!("useradd --create-home --gid {group} {name}"),
        };
        commands.push(format!("(id -u {name} >/dev/null 2>&1 || {add})"));
    }
    if let Some(path) = workdir.filter(|path| !path.contains('$') && !path.contains(char::is_control)) {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let group = match group {
            Some(group) => format!(" -g {group}"),
            None if is_name(name) => format!(" -g \"$(id -g {name})\""),
            None => String::new(),
        };
        commands.push(format!("install -d -o {name}{group} {}", shell::quote(&path)));
    }
    if commands.is_empty() {
        return;
    }
    let lines = commands.iter().enumerate().map(|(i, c)| if i == 0 { c.clone() } else { format!("&& {c}") });
    let command = Command::Lines(lines.collect());
    let before = build.user.clone();
    build.become_user(None, at);
    build.push(Kind::Run { mounts: vec![], command }, at);
    build.become_user(before, at);
}
