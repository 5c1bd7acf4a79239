//! Options of the command line: roots, published ports, the task that gets the terminal.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use jobc_compiler::suggest;
use jobc_job::submission::Publish;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::plural;
use jobc_schema::target::{DeviceName, Devices};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::{EVERY_ROLE, TaskId};

use crate::runtime::args::container::docker_port;
use crate::runtime::args::run::RunArgs;

/// The roots by role, with absolute paths, since the supervisor has another working directory.
pub(super) fn roots(words: &[String], plan: &JobPlan) -> Result<Vec<(String, String)>> {
    let mut roots: Vec<(String, String)> = Vec::new();
    for word in words {
        let (names, root) = match word.split_once('=') {
            // The part before `=` is a role, unless it looks like a path.
            Some((role, root)) if !role.is_empty() && !role.contains(['/', '.']) => {
                (roles_called(plan, role)?, root)
            }
            _ => (vec![EVERY_ROLE], word.as_str()),
        };
        for role in names {
            if roots.iter().any(|(known, _)| known == role) {
                let whose = if role == EVERY_ROLE { "every role".to_owned() } else { format!("`{role}`") };
                return Err(Error::new(Kind::Config, format!("`--root` is given twice for {whose}"))
                    .help("give each role one root; `--root ROLE=…` goes before one without a role"));
            }
            roots.push((role.to_owned(), absolute(root)?));
        }
    }
    Ok(roots)
}

/// The devices by role from the command line; other roles get those of the target.
pub(super) fn devices(args: &RunArgs, plan: &JobPlan) -> Result<Vec<(String, Vec<String>)>> {
    let mut devices: Vec<(String, Vec<String>)> = Vec::new();
    if let Some(gpus) = args.command.gpus.as_ref().filter(|gpus| !gpus.devices.is_empty()) {
        if !args.devices.is_empty() {
            return Err(Error::new(Kind::Config, "both `--gpus device=` and `--devices` name GPUs")
                .help("write only one of them"));
        }
        devices.push((EVERY_ROLE.to_owned(), gpus.devices.clone()));
    }
    for word in &args.devices {
        let (role, list) = match word.split_once('=') {
            Some((role, list)) if plan.roles.iter().any(|known| known.declared() == role) => (role, list),
            Some((role, list)) => (find_role(plan, role)?.name.as_str(), list),
            None => (EVERY_ROLE, word.as_str()),
        };
        let names: Vec<String> =
            list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.is_empty() {
            return Err(Error::new(Kind::Config, format!("`--devices {word}` names no device")).help(
                "write their numbers or names, such as `--devices 0,1` or `--devices train=GPU-3a1b2c3d`",
            ));
        }
        if devices.iter().any(|(known, _)| known == role) {
            let whose = if role == EVERY_ROLE { "every role".to_owned() } else { format!("`{role}`") };
            return Err(Error::new(Kind::Config, format!("`--devices` is given twice for {whose}"))
                .help("name all of its devices at once: `--devices ROLE=0,1`"));
        }
        devices.push((role.to_owned(), names));
    }
    if devices.iter().any(|(role, _)| role == EVERY_ROLE) {
        return Ok(devices);
    }
    let texts = |names: &[DeviceName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let asks = |role: &&RolePlan| role.gpus().is_some();
    let of_target = plan.target.settings.oci.as_ref().and_then(|oci| oci.devices.as_ref());
    for role in plan.roles.iter().filter(asks) {
        let names = match of_target {
            Some(Devices::All(names)) => Some(names),
            Some(Devices::Roles(roles)) => role.entry_in(roles),
            None => None,
        };
        if let Some(names) = names
            && devices.iter().all(|(known, _)| *known != role.name)
        {
            devices.push((role.name.clone(), texts(names)));
        }
    }
    Ok(devices)
}

fn absolute(root: &str) -> Result<String> {
    if root == "host" {
        return Ok(root.to_owned());
    }
    let unusable = |why: String| {
        Error::new(Kind::Config, format!("cannot use the root `{root}`: {why}"))
            .help("name a directory, an archive (.tar, .tar.gz, .tgz), or `host` for this host's own files")
    };
    let path = Path::new(root).canonicalize().map_err(|error| unusable(crate::input::reason(&error)))?;
    path.into_os_string().into_string().map_err(|_| unusable("its path is not UTF-8".to_owned()))
}

/// A port of a task to publish on the host: `[ADDRESS:]PORT:TASK:LABEL`, an IPv6 address in brackets.
pub(super) fn publish(word: &str, plan: &JobPlan) -> Result<Publish> {
    let wrong = |why: String| {
        Error::new(Kind::Config, format!("`--publish {word}`: {why}")).help(
            "write [ADDRESS:]PORT:TASK:LABEL, such as `8080:server-0:http` or `0.0.0.0:8080:server-0:http`",
        )
    };
    let address =
        |text: Option<&str>| match text.map(|text| text.trim_start_matches('[').trim_end_matches(']')) {
            None => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Some(text) => text.parse().map_err(|_| wrong(format!("invalid address `{text}`"))),
        };
    let number = |text: &str| text.parse::<u16>().map_err(|_| wrong(format!("invalid port `{text}`")));
    if let Some((rest, inner)) = docker_port(word) {
        let (outer, port) =
            rest.rsplit_once(':').map_or((None, rest), |(address, port)| (Some(address), port));
        let port = if port.is_empty() { 0 } else { number(port)? };
        let (task, label) = task_with_port(plan, inner)
            .ok_or_else(|| wrong(format!("not exactly one task has the port {inner}")))?;
        return Ok(Publish { address: address(outer)?, port, task, label });
    }
    let mut parts = word.rsplitn(4, ':');
    let (Some(label), Some(name), Some(port)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(wrong("too few parts".to_owned()));
    };
    let (address, port) = (address(parts.next())?, number(port)?);
    let task = task(name, plan)?;
    let role = find_role(plan, &task.role)?;
    if role.port(label).is_none() {
        let known = suggest::list(role.ports.iter().map(|port| port.label.as_str()));
        return Err(wrong(format!("`{}` has no port `{label}`; it has {known}", role.name)));
    }
    Ok(Publish { address, port, task, label: label.to_owned() })
}

/// The only task that has a port with this number, and the label of it.
fn task_with_port(plan: &JobPlan, number: u16) -> Option<(TaskId, String)> {
    let mut found = plan.roles.iter().flat_map(|role| {
        let ports = role.ports.iter().filter(move |port| port.number == number);
        ports.map(move |port| (role, port.label.clone()))
    });
    let ((role, label), None) = (found.next()?, found.next()) else { return None };
    (role.instances == 1).then(|| (TaskId::new(&role.name, 0), label))
}

/// The only task of the plan, which gets the standard input.
pub(super) fn only_task(plan: &JobPlan) -> Result<TaskId> {
    match &plan.roles[..] {
        [role] if role.instances == 1 => Ok(TaskId::new(&role.name, 0)),
        _ => Err(Error::new(Kind::Config, "`--interactive` needs a job of one task: the job has several")
            .help("name the task that gets the terminal, as in `-it worker-0`")),
    }
}

/// A task of the plan, by name; for a role with one instance the name of the role is enough, and for the only task none.
pub(super) fn task(word: &str, plan: &JobPlan) -> Result<TaskId> {
    if word.is_empty() {
        return match &plan.roles[..] {
            [role] if role.instances == 1 => Ok(TaskId::new(&role.name, 0)),
            _ => Err(Error::new(Kind::Config, "`--terminal` needs the name of a task: the job has several")
                .help("write it after the option, as in `-t worker-0`")),
        };
    }
    if let Some(role) = plan.role(word).filter(|role| role.instances == 1) {
        return Ok(TaskId::new(&role.name, 0));
    }
    let task: TaskId = word.parse()?;
    let role = find_role(plan, &task.role)?;
    if task.index >= role.instances {
        let last = role.instances - 1;
        let message =
            format!("unknown task `{task}`: `{}` has {}", role.name, plural(role.instances, "instance"));
        return Err(Error::new(Kind::Config, message).help(format!("the last is `{}-{last}`", role.name)));
    }
    Ok(task)
}

/// The roles that a name of the job file stands for: those of a role with a matrix are its combinations.
fn roles_called<'a>(plan: &'a JobPlan, name: &str) -> Result<Vec<&'a str>> {
    let combinations = plan.roles.iter().filter(|role| role.declared() == name);
    let names: Vec<&str> = combinations.map(|role| role.name.as_str()).collect();
    if names.is_empty() { find_role(plan, name).map(|role| vec![role.name.as_str()]) } else { Ok(names) }
}

fn find_role<'a>(plan: &'a JobPlan, name: &str) -> Result<&'a RolePlan> {
    plan.role(name).ok_or_else(|| {
        let roles = || plan.roles.iter().map(|role| role.name.as_str());
        let near = suggest::nearest(name, roles()).map(|near| format!("; did you mean `{near}`?"));
        Error::new(Kind::Config, format!("unknown role `{name}`{}", near.unwrap_or_default()))
            .help(format!("the job's roles are {}", suggest::list(roles())))
    })
}
