//! Debian packages.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::emit::dockerfile::{Command, Kind, Mount};

use super::base::System;
use super::build::Build;
use jobc_schema::shell;

impl Build<'_> {
    /// Installs packages if the base image has apt.
    pub(super) fn apt(&mut self, packages: &[String], at: &Pointer) {
        match self.base.system {
            System::Debian | System::Unknown => {
                let open = packages.iter().any(|package| !package.contains('='));
                self.apt_install(&packages.iter().map(String::as_str).collect::<Vec<_>>(), &[], open, at);
            }
            System::Alpine => self.no_apt("Alpine", "apk add --no-cache", packages, at),
            System::Rpm => self.no_apt("an RPM system", "dnf install -y", packages, at),
            System::Bare => self.no_apt("an image without programs", "", packages, at),
        }
    }

    fn no_apt(&mut self, system: &str, instead: &str, packages: &[String], at: &Pointer) {
        let mut found = Diagnostic::error(
            codes::BUILD_NO_APT,
            format!("`apt` needs Debian or Ubuntu, but `{}` is {system}", self.from),
        )
        .at_key(at, "requested here")
        .at(&self.at.key("from"), "this base has no apt");
        if !instead.is_empty() {
            let run = format!("[\"{instead} {}\"]", packages.join(" "));
            found = found.note(format!("write `run: {run}` instead of `apt`"));
        }
        self.sink.push(
            found.note("or build on a base that has apt, such as `debian:12-slim` or `python:3.11-slim`"),
        );
    }

    /// One `apt-get install` as root, then more commands in the same step.
    pub(super) fn apt_install(&mut self, packages: &[&str], then: &[String], open: bool, at: &Pointer) {
        let before = self.user.clone();
        self.become_user(None, at);
        let mut lines = Vec::new();
        if self.apt_seen {
            lines.push("apt-get update".to_owned());
        } else {
            // Debian's images delete downloaded packages; with a cache mount, they are kept outside of the image.
            lines.push("rm -f /etc/apt/apt.conf.d/docker-clean".to_owned());
            lines.push("&& apt-get update".to_owned());
        }
        self.apt_seen = true;
        lines.push("&& DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends".to_owned());
        lines.extend(packages.iter().map(|package| format!("    {}", shell::quote(package))));
        lines.extend(then.iter().map(|command| format!("&& {command}")));
        let cache = |target: &str| Mount::Cache { target: target.to_owned(), locked: true };
        let mounts = vec![cache("/var/cache/apt"), cache("/var/lib/apt")];
        let comments: &[&str] = if open {
            &[
                "Versions are the distribution's: its mirrors drop old ones, so that a fixed one stops building.",
                "hadolint ignore=DL3008",
            ]
        } else {
            &[]
        };
        self.push_with(Kind::Run { mounts, command: Command::Lines(lines) }, comments, at);
        self.become_user(before, at);
    }
}
