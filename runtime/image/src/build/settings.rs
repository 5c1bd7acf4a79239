//! The changes of instructions to an image's configuration.
//!
//! Each function is one instruction with all its variables expanded. The rules are Docker's, as implemented in
//! BuildKit's frontend: functions that do more than set a field document it.

use serde_json::{Value, json};

use crate::config::Execution;
use jobc_dockerfile::{Command, Healthcheck};

/// The shell of a shell form without a `SHELL` instruction.
const DEFAULT_SHELL: [&str; 2] = ["/bin/sh", "-c"];

/// The default `PATH` if neither the base image nor an `ENV` sets it; Docker's default for Linux.
pub(super) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The configuration of a stage while its instructions are run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    /// The settings of processes.
    pub(super) execution: Execution,
    /// `MAINTAINER`, which became the image's author.
    pub(super) author: Option<String>,
    /// Whether a `CMD` of this stage has set the command; else `ENTRYPOINT` takes the base's away.
    own_cmd: bool,
}

impl Settings {
    /// The initial configuration of a stage, and the ONBUILD triggers of its base.
    pub(super) fn of_base(mut execution: Execution, author: Option<String>) -> (Self, Vec<String>) {
        let triggers = std::mem::take(&mut execution.on_build);
        // Not with the base's: an image without a search path would have none that RUN has used.
        if !execution.env.iter().any(|variable| name(variable) == "PATH") {
            execution.env.insert(0, format!("PATH={DEFAULT_PATH}"));
        }
        (Self { execution, author, own_cmd: false }, triggers)
    }

    /// `ENV`: an existing variable keeps its place.
    pub(super) fn env(&mut self, key: &str, value: &str) {
        let new = format!("{key}={value}");
        match self.execution.env.iter_mut().find(|variable| name(variable) == key) {
            Some(there) => *there = new,
            None => self.execution.env.push(new),
        }
    }

    /// `LABEL`.
    pub(super) fn label(&mut self, key: String, value: String) {
        self.execution.labels.insert(key, value);
    }

    /// `WORKDIR`: relative to the one before, without `.` and `..`.
    pub(super) fn workdir(&mut self, path: &str) {
        self.execution.working_dir = self.absolute(path);
    }

    /// The directory of commands: the root without a `WORKDIR`, which the image's configuration then leaves out.
    pub(super) fn current_directory(&self) -> String {
        self.absolute(".")
    }

    /// A path of the container, relative to `WORKDIR`, without `.` and `..`. A slash at its end stays where `path` has
    /// one.
    pub(super) fn absolute(&self, path: &str) -> String {
        let mut names: Vec<&str> = Vec::new();
        let from = if path.starts_with('/') { "" } else { self.execution.working_dir.as_str() };
        for name in from.split('/').chain(path.split('/')) {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        format!("/{}", names.join("/"))
    }

    /// `USER`.
    pub(super) fn user(&mut self, user: String) {
        self.execution.user = user;
    }

    /// `EXPOSE`: ports with their protocol.
    pub(super) fn expose(&mut self, ports: impl IntoIterator<Item = String>) {
        for port in ports {
            self.execution.exposed_ports.insert(port, json!({}));
        }
    }

    /// `VOLUME`.
    pub(super) fn volume(&mut self, path: String) {
        self.execution.volumes.insert(path, json!({}));
    }

    /// The arguments of a command: a shell form follows the stage's `SHELL`.
    pub(super) fn arguments(&self, command: &Command) -> Vec<String> {
        match command {
            Command::Exec(arguments) => arguments.clone(),
            Command::Shell(text) => self.shell_form(text),
        }
    }

    /// A text for the stage's `SHELL`.
    pub(super) fn shell_form(&self, text: &str) -> Vec<String> {
        let mut arguments = if self.execution.shell.is_empty() {
            DEFAULT_SHELL.map(str::to_owned).to_vec()
        } else {
            self.execution.shell.clone()
        };
        arguments.push(text.to_owned());
        arguments
    }

    /// `ENTRYPOINT`: the base's `CMD` has arguments of another program, and is removed.
    pub(super) fn entrypoint(&mut self, command: &Command) {
        self.execution.entrypoint = self.arguments(command);
        if !self.own_cmd {
            self.execution.cmd.clear();
        }
    }

    /// `CMD`.
    pub(super) fn cmd(&mut self, command: &Command) {
        self.execution.cmd = self.arguments(command);
        self.own_cmd = true;
    }

    /// `SHELL`.
    pub(super) fn shell(&mut self, words: Vec<String>) {
        self.execution.shell = words;
    }

    /// `STOPSIGNAL`.
    pub(super) fn stop_signal(&mut self, signal: String) {
        self.execution.stop_signal = Some(signal);
    }

    /// `ONBUILD`.
    pub(super) fn on_build(&mut self, trigger: String) {
        self.execution.on_build.push(trigger);
    }

    /// `HEALTHCHECK`, in Docker's form: the first word selects how the others are run.
    pub(super) fn healthcheck(&mut self, check: &Healthcheck) {
        self.execution.healthcheck = Some(match check {
            Healthcheck::None => json!({"Test": ["NONE"]}),
            Healthcheck::Cmd { command, interval, timeout, start_period, start_interval, retries } => {
                let test = match command {
                    Command::Shell(text) => vec!["CMD-SHELL".to_owned(), text.clone()],
                    Command::Exec(words) => [vec!["CMD".to_owned()], words.clone()].concat(),
                };
                let mut check = serde_json::Map::new();
                check.insert("Test".to_owned(), json!(test));
                let times = [
                    ("Interval", *interval),
                    ("Timeout", *timeout),
                    ("StartPeriod", *start_period),
                    ("StartInterval", *start_interval),
                    ("Retries", retries.map(u64::from)),
                ];
                // Zero means Docker's own default, as absence does.
                for (key, time) in times {
                    if let Some(time) = time.filter(|time| *time != 0) {
                        check.insert(key.to_owned(), json!(time));
                    }
                }
                Value::Object(check)
            }
        });
    }
}

/// The name of `NAME=value`.
pub(super) fn name(variable: &str) -> &str {
    variable.split('=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
