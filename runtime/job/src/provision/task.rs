//! A task of a job: from its built bundle to the configuration of its container, in memory.
//!
//! Resources that a job's tasks share are prepared once ([`crate::provision`]); the rest is done for every attempt of
//! every task, so the bundle is read once, changed as types, and written once, by the creator of the container.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use jobc_schema::init::is_init;
use oci_spec::runtime::{Mount, Process, Spec};

use super::images::copy_of;
use super::provisioned::ProvisionedJob;
use super::roots::{RoleRoot, RootSource};
use crate::allocate::NamedUser;
use crate::caller_ids;
use crate::devices;
use crate::disk_traffic;
use crate::host_environment::{HostEnvironment, HostMount};
use jobc_container::bundle::Bundle;
use jobc_container::remove::remove;
use jobc_container::root::Root;
use jobc_container::rootless::{self, Caller};
use jobc_container::secret::SecretEnvironment;
use jobc_gpu::inject;
use jobc_sys::error::{AtPath as _, Error, Kind, Result, file_error};
use jobc_sys::id::TaskId;
use jobc_sys::signals::Signal;

/// Makes Python write each line at once (python(1)).
const UNBUFFERED: &str = "PYTHONUNBUFFERED";

/// The inputs of a task's container.
#[derive(Debug)]
pub struct TaskBundle {
    /// Its configuration: the bundle's, with the values of this host.
    pub bundle: Bundle,
    /// Its root.
    pub root: Root,
    /// Variables that are in no file; for [`Options`](jobc_container::options::Options).
    pub secret_environment: SecretEnvironment,
    /// The signal that asks it to end.
    pub stop_signal: Signal,
    /// Whether its program gets a process 1 that forwards signals and reaps orphans.
    pub init: bool,
    /// Notes for the user, a line each.
    pub notes: Vec<String>,
}

/// Where tasks find the job's keys for ssh.
const SSH_KEYS_PATH: &str = "/etc/jobc/ssh";

/// Gives a task what only this host and this run know.
///
/// `container` is the directory of its container, which this may make things in. The task keeps its share of the
/// job's GPUs until it leaves it.
pub fn prepare_task(provided: &ProvisionedJob, task: &TaskId, container: &Path) -> Result<TaskBundle> {
    let mut bundle = Bundle::open(&provided.directory.bundle(task))?;
    if let Some(first) = bundle.config.unknown.first() {
        return Err(Error::new(Kind::Config, "unknown property").at(first).help("build the job again"));
    }
    let role = provided.roles.get(&task.role).ok_or_else(|| {
        Error::new(Kind::State, format!("the plan has no role `{}`", task.role)).help("build the job again")
    })?;
    let root = match &role.source {
        RootSource::Shared(root) => root.clone().with_state_dir(container)?,
        RootSource::Copied(layers) => {
            // An attempt before this one may have changed it.
            let copy = copy_of(&provided.directory, task);
            remove(&copy)?;
            let parent = copy.parent().unwrap_or(&copy);
            std::fs::create_dir_all(parent).at_path("create the directory", parent)?;
            jobc_image::unpack::copy(layers, &copy)?;
            Root::Directory(copy)
        }
        RootSource::Bundle => Root::of(&bundle, None, container)?,
    };
    let user = match (&role.user, &role.source) {
        (None, RootSource::Bundle) => crate::allocate::user_of(&bundle, &root)?,
        (user, _) => user.clone(),
    };
    let named = user.as_ref().filter(|_| !matches!(role.caller, Caller::IsUser(..)));
    let ids = named.map_or(role.ids(), |user| (user.uid, user.gid));
    give_files(&bundle, ids)?;
    let (mut secret_environment, mut mounts) = secrets(provided, task, &bundle, ids)?;
    if let Some(keys) = provided.keys.as_ref().filter(|_| bundle.annotation("dev.jobc.ssh").is_some()) {
        mounts.push(bind(keys, Path::new(SSH_KEYS_PATH)));
    }
    let visible = inject::visible_by_author(&bundle);
    let mut process = bundle.config.spec.process().clone().unwrap_or_default();
    if let Some(image) = &role.image {
        let secret = |name: &str| bundle.annotation(&format!("dev.jobc.secret.env.{name}")).is_some();
        image.apply(&bundle, &mut process, secret);
    }
    if let Some(user) = &user {
        become_user(&mut process, user);
    } else if role.image.is_some() && process.user().additional_gids().is_none() {
        let group = process.user().gid();
        process.user_mut().set_additional_gids(Some(vec![group]));
    }
    let dir = bundle.dir.clone();
    let env = process.env().clone().unwrap_or_default();
    let is_set = |name: &str| {
        let secret = bundle.annotation(&format!("dev.jobc.secret.env.{name}")).is_some();
        secret || env.iter().any(|variable| variable.split('=').next() == Some(name))
    };
    // Output goes to a pipe, for which Python would keep lines back until it ends. A bundle says all of its environment.
    let is_ours = role.image.is_some() || role.environment.is_some();
    let from_host = role.environment.as_ref().is_some_and(|host| host.has_variable(UNBUFFERED));
    if is_ours && !from_host && !is_set(UNBUFFERED) {
        process.env_mut().get_or_insert_default().push(format!("{UNBUFFERED}=1"));
    }
    if let Some(environment) = &role.environment {
        for (name, value) in environment.variables(is_set) {
            secret_environment.push_variable(name, value);
        }
        if role.caller == Caller::IsUnchanged && !is_set("HOME") && !environment.has_variable("HOME") {
            caller_ids::set_home(&mut process, environment.home.as_deref());
        }
    }
    let spec = &mut bundle.config.spec;
    spec.set_process(Some(process));
    if let Some(environment) = &role.environment {
        add_host_mounts(spec, environment);
    }
    disk_traffic::resolve(spec)?;
    resolve_paths(spec, &dir, &root, &format!("/jobc/{}/{task}", provided.directory.id));
    spec.mounts_mut().get_or_insert_default().extend(mounts);
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut notes = Vec::new();
    if jobc_sys::host::needs_user_namespace() {
        notes.extend(rootless::summary(&rootless::adapt(spec, uid.as_raw(), gid.as_raw(), role.caller)?));
    } else if jobc_sys::host::in_user_namespace() {
        notes.extend(rootless::summary(&rootless::adapt_in_user_namespace(spec)));
    }
    let init = role.init && !starts_init(spec) && has_room_for_init(spec);
    notes.extend(devices::add(spec)?);
    match &provided.gpus {
        Some(gpus) => notes.extend(gpus.inject(task, spec, &root, visible.as_deref())?),
        None => notes.extend(inject::without_devices(spec, &root, visible.as_deref())?),
    }
    if spec.hooks().is_some() {
        // Hooks read config.json in the bundle's directory: the one that runs.
        container.clone_into(&mut bundle.dir);
    }
    let spec = &bundle.config.spec;
    bundle.text = serde_json::to_vec(spec).map_err(|error| {
        Error::new(Kind::Config, format!("the configuration of `{task}` cannot be written: {error}"))
    })?;
    let stop_signal = stop_signal(role, &mut notes);
    Ok(TaskBundle { bundle, root, secret_environment, stop_signal, init, notes })
}

/// Whether the program is an init itself.
fn starts_init(spec: &Spec) -> bool {
    let arguments = spec.process().as_ref().and_then(|process| process.args().as_ref());
    arguments.and_then(|arguments| arguments.first()).is_some_and(|program| is_init(program))
}

/// Whether the limit of processes has room for an init and a program.
fn has_room_for_init(spec: &Spec) -> bool {
    let resources = spec.linux().as_ref().and_then(|linux| linux.resources().as_ref());
    resources.and_then(|resources| resources.pids().as_ref()).is_none_or(|pids| pids.limit() != 1)
}

/// The signal that asks a task to end: that of its role, else that of its image, else SIGTERM.
fn stop_signal(role: &RoleRoot, notes: &mut Vec<String>) -> Signal {
    let of_image = role.image.as_ref().and_then(|image| image.stop_signal.as_deref());
    let Some(text) = role.stop_signal.as_deref().or(of_image) else { return Signal::TERM };
    Signal::parse(text).unwrap_or_else(|_| {
        notes.push(format!("unknown signal `{text}` as STOPSIGNAL of the image; tasks get SIGTERM"));
        Signal::TERM
    })
}

/// Mounts directories of the caller at their own paths, before volumes, which may lie in them.
fn add_host_mounts(spec: &mut Spec, environment: &HostEnvironment) {
    let mounts = spec.mounts_mut().get_or_insert_default();
    let first = mounts.iter().position(is_bind).unwrap_or(mounts.len());
    let bound = environment.mounts.iter().map(|HostMount { path, writable }| {
        let access = if *writable { "rw" } else { "rro" };
        let mut mount = bind(path, path);
        mount.set_options(Some(["rbind", "rnosuid", "rnodev", access].map(str::to_owned).to_vec()));
        mount
    });
    mounts.splice(first..first, bound.collect::<Vec<_>>());
}

/// Makes paths relative to the bundle absolute, and sets the cgroups of this run.
fn resolve_paths(spec: &mut Spec, dir: &Path, root: &Root, group: &str) {
    let mut of_spec = spec.root().clone().unwrap_or_default();
    of_spec.set_path(root.path());
    spec.set_root(Some(of_spec));
    spec.mounts_mut().get_or_insert_default().retain(|mount| !is_absent_file_of_host(mount));
    for mount in spec.mounts_mut().iter_mut().flatten() {
        if let Some(source) = mount.source().as_ref().filter(|_| is_bind(mount)) {
            let source = absolute(dir, source);
            mount.set_source(Some(source));
        }
    }
    if let Some(linux) = spec.linux_mut() {
        // Two runs of a job can run at once, and each has its own cgroups.
        linux.set_cgroups_path(Some(PathBuf::from(group)));
    }
}

/// Whether a mount shows one of the host's files about its network where the host has none: as in a container without a
/// network.
fn is_absent_file_of_host(mount: &Mount) -> bool {
    let path = mount.destination();
    ["/etc/hosts", "/etc/resolv.conf"].into_iter().any(|file| path == Path::new(file))
        && mount.source().as_deref() == Some(path)
        && !path.exists()
}

/// A source from the bundle's directory, which has no link in its path, so that leading `..` can be taken by name.
fn absolute(dir: &Path, source: &Path) -> PathBuf {
    let mut from = dir;
    let mut rest = source.components();
    loop {
        let before = rest.clone();
        match (rest.next(), from.parent()) {
            (Some(Component::ParentDir), Some(parent)) => from = parent,
            (Some(Component::CurDir), _) => {}
            _ => return from.join(before.as_path()),
        }
    }
}

fn is_bind(mount: &Mount) -> bool {
    let mut options = mount.options().iter().flatten();
    mount.typ().as_deref() == Some("bind") || options.any(|option| option == "bind" || option == "rbind")
}

fn become_user(process: &mut Process, named: &NamedUser) {
    let mut user = process.user().clone();
    user.set_uid(named.uid).set_gid(named.gid);
    if !named.additional_gids.is_empty() {
        user.set_additional_gids(Some(named.additional_gids.clone()));
    }
    process.set_user(user);
}

/// The secrets of a task: variables that go past config.json, and files that are bound from memory.
fn secrets(
    provided: &ProvisionedJob,
    task: &TaskId,
    bundle: &Bundle,
    ids: (u32, u32),
) -> Result<(SecretEnvironment, Vec<Mount>)> {
    let mut variables = SecretEnvironment::default();
    let mut mounts = Vec::new();
    let mut annotations: Vec<(&String, &String)> = bundle
        .config
        .spec
        .annotations()
        .iter()
        .flatten()
        .filter(|(key, _)| key.starts_with("dev.jobc.secret."))
        .collect();
    annotations.sort();
    for (key, name) in annotations {
        if let Some(variable) = key.strip_prefix("dev.jobc.secret.env.") {
            variables.push(variable, provided.secrets.get(name)?)?;
        } else if let Some(path) = key.strip_prefix("dev.jobc.secret.file.") {
            let mode = bundle.annotation(&format!("dev.jobc.secret.mode.{path}"));
            let mode = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok()).unwrap_or(0o400);
            let file = Path::new("files").join(&task.role).join(mounts.len().to_string());
            let file = provided.place.create_file(&file, provided.secrets.get(name)?, mode, Some(ids))?;
            refuse_unreadable(Path::new(path), mode, ids.0)?;
            mounts.push(bind(&file, Path::new(path)));
        }
    }
    Ok((variables, mounts))
}

/// Gives the user of a task its own copies of small files that only their owner may use: who built the bundle has them.
fn give_files(bundle: &Bundle, ids: (u32, u32)) -> Result<()> {
    let copies = bundle.config.spec.mounts().iter().flatten().filter(|mount| is_bind(mount));
    for mount in copies {
        let Some(source) = mount.source().as_ref().filter(|source| source.starts_with("files")) else {
            continue;
        };
        let source = bundle.dir.join(source);
        let failed = |error: &std::io::Error| file_error("give to the task's user the file", &source, error);
        // Missing files are reported when they are mounted.
        let Ok(status) = std::fs::symlink_metadata(&source) else { continue };
        let mode = status.permissions().mode() & 0o777;
        if ids.0 == 0 || !status.is_file() || is_for_all(mode) {
            continue;
        }
        refuse_unreadable(mount.destination(), mode, ids.0)?;
        std::os::unix::fs::lchown(&source, Some(ids.0), Some(ids.1)).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Whether all users may do with a file what its owner may: read and execute it.
fn is_for_all(mode: u32) -> bool {
    mode & 0o500 == (mode & 0o005) << 6
}

/// Refuses a file that its user could not use: without root it belongs to the container's root.
fn refuse_unreadable(path: &Path, mode: u32, user: u32) -> Result<()> {
    if rustix::process::geteuid().is_root() || user == 0 || is_for_all(mode) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Unsupported,
        format!(
            "user {user} of the container cannot read `{}`: without root it belongs to the container's root, and its mode is {mode:04o}",
            path.display()
        ),
    )
    .help("write `mode: \"0644\"` (`\"0755\"` for a program), leave `user` out, or run the job as root"))
}

/// A read-only bind.
fn bind(source: &Path, destination: &Path) -> Mount {
    let mut mount = Mount::default();
    mount
        .set_destination(destination.to_owned())
        .set_typ(Some("bind".to_owned()))
        .set_source(Some(source.to_owned()))
        .set_options(Some(["rbind", "nosuid", "nodev", "noexec", "ro"].map(str::to_owned).to_vec()));
    mount
}

#[cfg(test)]
mod tests;
