//! An additional process in a running container.
//!
//! It enters the container's namespaces and cgroup and gets the settings of its own `process`; it inherits nothing else
//! from the caller (CVE-2022-27650: capabilities are the process's own, inheritable ones included).

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use oci_spec::runtime::{Process as Written, Spec};
use serde_json::{Value, json};

use crate::cgroup::SubGroups;
use crate::child::report::Gate;
use crate::classes::ClassRecord;
use crate::config::Config;
use crate::config::complete::{complete_process, unknown_capabilities};
use crate::config::read::{describe_serde_error, read_typed};
use crate::container;
use crate::container::create::write_pid;
use crate::container::groups::{attach_by_systemd, needs_systemd, reopen};
use crate::listener::{self, Agent};
use crate::oci_state::Status;
use crate::options::Options;
use crate::prepare::join::prepare_exec;
use crate::process::Process;
use crate::start::CgroupFds;
use crate::state::Id;
use crate::state::store::Store;
use crate::terminal::socket;
use jobc_sys::error::{Error, Kind, Location, Result};

/// The process to start in a container.
#[derive(Debug, Default)]
pub struct ExecRequest {
    /// The process, as config.json would have it.
    pub process: Written,
    /// How it is started.
    pub options: Options,
    /// A Unix socket that gets the terminal's other side.
    pub console_socket: Option<PathBuf>,
    /// A file that gets the process's number.
    pub pid_file: Option<PathBuf>,
    /// Whether it runs detached.
    pub detached: bool,
    /// Whether the container may be frozen: the process then starts when the container is thawed.
    pub ignore_paused: bool,
    /// Groups below the container's cgroups, to enter instead.
    pub sub_groups: SubGroups,
}

/// The changes of a command line to the container's `process`.
#[derive(Clone, Debug, Default)]
pub struct ProcessOverrides {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// The working directory.
    pub directory: Option<String>,
    /// Variables, `NAME=VALUE`, that are added or take another's place.
    pub variables: Vec<String>,
    /// User and group. Another user has none of the container's supplementary groups.
    pub user: Option<(u32, Option<u32>)>,
    /// Further groups.
    pub groups: Vec<u32>,
    /// Further capabilities, with or without `CAP_`.
    pub capabilities: Vec<String>,
    /// Whether it sets no_new_privs; if not set, the container's own value counts.
    pub no_new_privileges: bool,
    /// Its profile of AppArmor.
    pub profile: Option<String>,
    /// Its label of SELinux.
    pub label: Option<String>,
    /// Whether it gets a terminal.
    pub terminal: bool,
}

impl ProcessOverrides {
    /// The container's `process` with the changes, and warnings about them.
    pub fn apply(&self, spec: &Spec) -> Result<(Written, Option<String>)> {
        let mut process = json!(spec.process());
        if !process.is_object() {
            process = json!({"cwd": "/", "user": {"uid": 0, "gid": 0}});
        }
        process["args"] = json!(self.arguments);
        process["terminal"] = json!(self.terminal);
        if let Some(directory) = &self.directory {
            process["cwd"] = json!(directory);
        }
        if self.no_new_privileges {
            process["noNewPrivileges"] = json!(true);
        }
        for (key, changed) in [("apparmorProfile", &self.profile), ("selinuxLabel", &self.label)] {
            if let Some(text) = changed {
                process[key] = json!(text);
            }
        }
        for variable in &self.variables {
            let name = variable.split_once('=').map(|(name, _)| name).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| {
                Error::new(Kind::Config, format!("invalid environment variable `{variable}`"))
                    .help("write NAME=VALUE")
            })?;
            let list = list(&mut process["env"]);
            list.retain(|old| {
                old.as_str().and_then(|old| old.split_once('=')).is_none_or(|(old, _)| old != name)
            });
            list.push(json!(variable));
        }
        if let Some((uid, gid)) = self.user {
            process["user"] = json!({"uid": uid, "gid": gid.unwrap_or(0)});
        }
        list_of(&mut process["user"], "additionalGids").extend(self.groups.iter().map(|gid| json!(gid)));
        for capability in &self.capabilities {
            let name = capability.to_ascii_uppercase();
            let name = if name.starts_with("CAP_") { name } else { format!("CAP_{name}") };
            for set in ["bounding", "effective", "permitted"] {
                let list = list_of(&mut process["capabilities"], set);
                if !list.contains(&json!(name)) {
                    list.push(json!(name));
                }
            }
        }
        complete(process)
    }
}

/// Reads a `process` from a separate file, as podman and containerd pass it; also returns warnings about it.
pub fn read_process(text: &[u8]) -> Result<(Written, Option<String>)> {
    let process = serde_json::from_slice(text)
        .map_err(|error| Error::new(Kind::Config, format!("the process file is not JSON: {error}")))?;
    complete(process)
}

fn complete(mut process: Value) -> Result<(Written, Option<String>)> {
    let (_, unknown) = complete_process(&mut process);
    let (process, _) = read_typed::<Written>(process.to_string().as_bytes()).map_err(|(error, path)| {
        describe_serde_error(&error).under(format_args!("`{path}` of the process"))
    })?;
    Ok((process, unknown_capabilities(&unknown)))
}

/// Rejects a process that would be rejected in its container's configuration.
fn refuse(spec: &Spec, process: &Written) -> Result<()> {
    let mut spec = spec.clone();
    spec.set_process(Some(process.clone()));
    Config { spec, unknown: Vec::new(), unknown_capabilities: Vec::new() }
        .refuse()
        .map_err(without_config_pointer)
}

/// An error about a process from a separate file or the command line: it is unrelated to config.json.
fn without_config_pointer(error: Error) -> Error {
    let Some(place) = error.pointer().filter(|place| place.starts_with("/process")) else {
        return error;
    };
    // A program is named.
    let is_named = matches!(error.kind, Kind::ProgramNotFound | Kind::NotExecutable);
    Error { at: (!is_named).then(|| Location::Field(place.into())), ..error }
}

/// A list that may be missing.
fn list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = json!([]);
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("it was made a list"),
    }
}

/// A list in an object that may be missing.
fn list_of<'a>(object: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    if !object.is_object() {
        *object = json!({});
    }
    list(&mut object[key])
}

/// Starts an additional process in a container; returns it and, where it is not detached, its terminal's other
/// side.
pub fn exec(store: &Store, id: &Id, request: ExecRequest) -> Result<(Process, Option<OwnedFd>)> {
    let record = container::read_record(store, id)?;
    let directory = store.directory(id);
    let status = container::status(&directory, &record);
    let first = match (status, record.process) {
        (Status::Paused, _) if !request.ignore_paused => {
            return Err(Error::new(Kind::State, format!("cannot exec in a paused container: `{id}`"))
                .help(format!("resume it with `jobc oci resume {id}`, or pass `--ignore-paused`")));
        }
        (Status::Created | Status::Running | Status::Paused, Some(process)) => process,
        _ => return Err(container::wrong_status(&record.id, "running", status)),
    };
    let ExecRequest { process, mut options, console_socket, pid_file, detached, sub_groups, .. } = request;
    options.id = id.to_string();
    options.end_with_parent = !detached;
    let wanted = process.terminal().unwrap_or(false);
    let terminal = socket::connect_terminal(wanted, console_socket.as_deref(), !detached, &mut options)?;
    let config = container::config(&directory)?;
    options.systemd_cgroup = needs_systemd(&record);
    let groups = match &record.cgroup {
        Some(saved) if !options.systemd_cgroup => reopen(saved, first.pid, &sub_groups)?,
        _ if !sub_groups.is_empty() => {
            let message = format!("no process can be put into a cgroup below that of container `{id}`");
            return Err(Error::new(Kind::State, message)
                .help("the container has none, or only systemd may move processes there"));
        }
        _ => CgroupFds::default(),
    };
    refuse(&config, &process)?;
    // Its namespaces are opened by number; that they are the container's and no stranger's is sure if it lives after.
    let mut prepared =
        prepare_exec(&config, &process, first.pid, &mut options, &jobc_sys::host::Host::read()?)
            .map_err(without_config_pointer)?;
    if prepared.notifies()
        && let Some(path) = listener::agent_socket(&config)?
    {
        prepared.agent = Some(Agent::connect(path, &config, &record.state(&config, status))?);
    }
    prepared.classes = record.class.as_ref().map_or(Ok(vec![]), ClassRecord::tasks)?;
    if !first.is_alive() {
        return Err(Error::new(Kind::State, format!("container `{id}` has ended")));
    }
    let process = prepared
        .spawn(groups, &mut |gate, pid| match gate {
            Gate::Cgroup => attach_by_systemd(&record, first.pid, pid),
            _ => Ok(()),
        })
        .map_err(without_config_pointer)?;
    if let Some(path) = &pid_file {
        write_pid(path, process.pid)?;
    }
    Ok((process, terminal.map(|socket| socket::receive(&socket)).transpose()?))
}

#[cfg(test)]
mod tests;
