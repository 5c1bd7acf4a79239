//! The host's allocation for a bundle that names no host: its root, and the ids of a named user.
//!
//! A bundle of `jobc build` does not depend on the host that built it; facts of the host are in its annotations
//! (docs/reference/oci.md). An allocation answers them. It is applied to a copy of config.json, which then runs under
//! this runtime or another; the bundle itself is never changed.

mod devices;
pub mod image;
pub mod mpi;
mod secrets;
mod stored;

use std::fmt;
use std::path::{Path, PathBuf};

use jobc_schema::preflight;
use oci_spec::runtime::{Mount, Process, Root as OciRoot};

use crate::caller_ids;
use image::Image;
use jobc_container::bundle::Bundle;
use jobc_container::config::Config;
use jobc_container::root::layers::Layers;
use jobc_container::root::{Root, UpperLayer};
use jobc_container::rootless::Caller;
use jobc_container::secret::SecretEnvironment;
use jobc_container::{rootless, user};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host;
use secrets::BundleSecrets;

pub use devices::Devices;
pub use stored::StoredRoot;
pub(crate) use stored::refuse_foreign;

/// The answers to a bundle's annotations.
#[derive(Debug)]
pub struct Allocation {
    /// The root file system.
    pub root: Root,
    /// The user that the annotation `dev.jobc.user` names.
    pub user: Option<NamedUser>,
    /// Whom the caller is in the container, without privileges.
    pub caller: Caller,
    /// Directories of outputs that do not exist yet.
    pub outputs: Vec<PathBuf>,
    /// The GPUs.
    pub devices: Option<Devices>,
    /// The settings of the image, if the root came with them.
    pub image: Option<Image>,
    /// Variables that are in no file; for [`Options`](jobc_container::options::Options).
    pub secret_environment: SecretEnvironment,
    /// Secrets that are files.
    secret_mounts: Vec<Mount>,
}

/// Resources that a bundle gets from outside.
#[derive(Debug)]
pub struct AllocationRequest<'a> {
    /// A root that the command line names.
    pub choice: Option<&'a str>,
    /// Files for the root that were brought in before, instead of those of `choice`.
    pub stored: Option<StoredRoot>,
    /// The GPUs that the command line names, or those of the step.
    pub devices: Option<Devices>,
    /// The directory with the values of secrets.
    pub secrets: Option<&'a Path>,
    /// The container's own directory.
    pub directory: &'a Path,
    /// Whether what is not given is refused. Otherwise another runtime may give it.
    pub complete: bool,
}

impl<'a> AllocationRequest<'a> {
    /// A request of nothing, for the container in a directory.
    pub fn new(directory: &'a Path) -> Self {
        Self { choice: None, stored: None, devices: None, secrets: None, directory, complete: true }
    }
}

/// The ids of a name in the container's /etc/passwd and /etc/group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUser {
    /// `USER` or `USER:GROUP`, as the bundle has it.
    pub name: String,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Further groups.
    pub additional_gids: Vec<u32>,
}

/// The annotations of secrets.
const SECRETS: &str = "dev.jobc.secret.";

/// Annotations of what `jobc run` does not give yet, and what to do instead. Those that end with a dot are prefixes.
const UNSUPPORTED_ANNOTATIONS: &[(&str, &str, &str)] = &[
    (devices::GPUS_ANNOTATION, "GPUs", "name them, as in `--devices 0,1`; `jobc gpu ls` lists them"),
    (
        "dev.jobc.host.",
        "the directory and environment of the caller",
        "`jobc run` of the job file gives them; or add mounts and variables to a copy of the bundle",
    ),
    (SECRETS, "secrets", "name the directory with their values: `--secrets DIR`"),
    ("dev.jobc.ssh", "SSH keys", "bind a directory with them at /etc/jobc/ssh in a copy of the bundle"),
];

impl Allocation {
    /// Answers a bundle's annotations.
    ///
    /// # Errors
    ///
    /// A requirement of the bundle that is not met.
    pub fn of(bundle: &Bundle, request: AllocationRequest<'_>) -> Result<Self> {
        let AllocationRequest { choice, stored, devices, secrets, directory, complete } = request;
        if complete {
            refuse_unsupported(bundle, devices.is_some(), secrets.is_some())?;
        }
        check_volumes(bundle)?;
        let root = match &stored {
            Some(stored) => stored.root(bundle, directory)?,
            None => Root::of(bundle, choice, directory)?,
        };
        let is_stored = stored.is_some();
        let image = stored.and_then(|stored| stored.image);
        if is_stored {
            let role = bundle.annotation("dev.jobc.role").unwrap_or("main");
            image::refuse_unknown(bundle, image.as_ref(), role, choice)?;
        }
        let user = match user_of(bundle, &root)? {
            Some(user) => Some(user),
            None => image::user(bundle, image.as_ref(), root.directories())?,
        };
        let secrets = match secrets {
            Some(directory) => BundleSecrets::of(bundle, directory, uid(bundle, user.as_ref()))?,
            None => BundleSecrets::default(),
        };
        Ok(Self {
            user,
            root,
            caller: caller_ids::of_bundle(bundle, choice),
            outputs: absent_outputs(bundle),
            devices,
            image,
            secret_environment: secrets.environment,
            secret_mounts: secrets.mounts,
        })
    }

    /// Creates what does not exist yet.
    pub fn create_outputs(&self) -> Result<()> {
        for directory in &self.outputs {
            std::fs::create_dir_all(directory).map_err(|error| {
                Error::new(Kind::System, format!("cannot create `{}`", directory.display())).because(error)
            })?;
        }
        Ok(())
    }

    /// The bundle's configuration with the answers, and the changes that an unprivileged user requires, one per line.
    ///
    /// Paths relative to the bundle become absolute, since the copy is in another directory.
    pub fn apply(&self, bundle: &Bundle) -> Result<(Config, Vec<String>)> {
        let mut config = bundle.config.clone();
        let spec = &mut config.spec;
        let mut root = spec.root().clone().unwrap_or_else(|| {
            let mut writable = OciRoot::default();
            writable.set_readonly(None);
            writable
        });
        root.set_path(self.root.path());
        spec.set_root(Some(root));
        crate::disk_traffic::resolve(spec)?;
        if let (Some(named), Some(process)) = (&self.user, spec.process_mut()) {
            let user = process.user_mut();
            user.set_uid(named.uid).set_gid(named.gid);
            if !named.additional_gids.is_empty() {
                user.set_additional_gids(Some(named.additional_gids.clone()));
            }
        }
        for mount in spec.mounts_mut().iter_mut().flatten().filter(|mount| is_bind(mount)) {
            let source = mount.source().as_ref().map(|source| bundle.dir.join(source));
            mount.set_source(source);
        }
        let mut notes = Vec::new();
        if let Some(image) = &self.image {
            let mut process = spec.process().clone().unwrap_or_default();
            let is_secret = |name: &str| bundle.annotation(&format!("{SECRETS}env.{name}")).is_some();
            image.apply(bundle, &mut process, is_secret);
            spec.set_process(Some(process));
        }
        if let Some(process) = spec.process_mut() {
            name_node(process);
        }
        if !self.secret_mounts.is_empty() {
            spec.mounts_mut().get_or_insert_default().extend(self.secret_mounts.iter().cloned());
        }
        if let Some(process) = spec.process_mut().as_mut().filter(|_| self.caller == Caller::IsUnchanged) {
            caller_ids::set_home(process, std::env::var("HOME").ok().as_deref());
        }
        if host::needs_user_namespace() {
            let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
            notes.extend(rootless::adapt(spec, uid.as_raw(), gid.as_raw(), self.caller)?);
        } else if host::in_user_namespace() {
            notes.extend(rootless::adapt_in_user_namespace(spec));
        }
        notes.extend(crate::devices::add(spec)?);
        if let Some(devices) = &self.devices {
            notes.extend(devices.inject_into(bundle, spec, &self.root)?);
        }
        Ok((config, notes))
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Root::Directory(path) => writeln!(f, "root: {}", path.display())?,
            Root::Overlay { lowers, upper, .. } => {
                match &lowers[..] {
                    [lower] => write!(f, "root: {}", lower.display())?,
                    lowers => write!(f, "root: {} layers", lowers.len())?,
                }
                match upper {
                    UpperLayer::Memory { size: Some(bytes) } => {
                        writeln!(f, " under a writable layer in memory of {bytes} bytes")?;
                    }
                    UpperLayer::Memory { size: None } => writeln!(f, " under a writable layer in memory")?,
                    UpperLayer::Directory(directory) => {
                        writeln!(f, " under a writable layer in {}", directory.display())?;
                    }
                }
            }
        }
        if let Some(NamedUser { name, uid, gid, additional_gids: further }) = &self.user {
            write!(f, "user: {name} is {uid}:{gid}")?;
            let further: Vec<String> = further.iter().map(u32::to_string).collect();
            if further.is_empty() { writeln!(f)? } else { writeln!(f, ", groups {}", further.join(", "))? }
        }
        if let Some(devices) = &self.devices {
            let names = devices.names().join(", ");
            let reserved = if devices.are_of_step() { "" } else { ", not reserved: other jobs can use them" };
            writeln!(f, "GPUs: {names}{reserved}")?;
        }
        for output in &self.outputs {
            writeln!(f, "output: {}", output.display())?;
        }
        Ok(())
    }
}

/// The user of a bundle, looked up in its root filesystem.
pub(crate) fn user_of(bundle: &Bundle, root: &Root) -> Result<Option<NamedUser>> {
    bundle.annotation("dev.jobc.user").map(|name| named_user(root.directories(), name)).transpose()
}

/// The ids of `USER` or `USER:GROUP` in a root.
pub(crate) fn named_user(root: &[PathBuf], name: &str) -> Result<NamedUser> {
    let root = Layers::open(root).map_err(|errno| Error::system("open the root", errno))?;
    let user::Account { uid, gid, additional: further } =
        user::lookup(&root, name).map_err(|error| error.at("/annotations/dev.jobc.user"))?;
    Ok(NamedUser { name: name.to_owned(), uid, gid, additional_gids: further })
}

/// The user of a bundle's program.
fn uid(bundle: &Bundle, named: Option<&NamedUser>) -> u32 {
    let process = bundle.config.spec.process().as_ref();
    named.map_or_else(|| process.map_or(0, |process| process.user().uid()), |user| user.uid)
}

fn refuse_unsupported(bundle: &Bundle, devices: bool, secrets: bool) -> Result<()> {
    let annotations = bundle.config.spec.annotations().iter().flatten();
    let mut keys: Vec<&String> = annotations.map(|(key, _)| key).collect();
    keys.sort();
    let is_given =
        |key: &&String| devices && *key == devices::GPUS_ANNOTATION || secrets && key.starts_with(SECRETS);
    for key in keys.into_iter().filter(|key| !is_given(key)) {
        let matches = |known: &str| if known.ends_with('.') { key.starts_with(known) } else { key == known };
        if let Some((_, what, help)) = UNSUPPORTED_ANNOTATIONS.iter().find(|(known, _, _)| matches(known)) {
            return Err(Error::new(
                Kind::Unsupported,
                format!("{what} are not supported for a single bundle"),
            )
            .at(format!("/annotations/{}", jobc_schema::pointer::escape(key)))
            .help(*help));
        }
    }
    Ok(())
}

/// Fetched data must lie where the bundle binds it from.
fn check_volumes(bundle: &Bundle) -> Result<()> {
    let fetched = |key: &str| bundle.annotation(key).filter(|_| key.starts_with("dev.jobc.volume."));
    for (key, _) in bundle.config.spec.annotations().iter().flatten() {
        let Some(what) = fetched(key) else { continue };
        let name = key.trim_start_matches("dev.jobc.volume.");
        let place = bundle.dir.join("../volumes").join(name);
        if !place.exists() {
            return Err(Error::new(Kind::Unsupported, format!("the volume `{name}` is not fetched"))
                .at(format!("/annotations/{}", jobc_schema::pointer::escape(key)))
                .help(format!("fetch `{what}` to `{}`", place.display())));
        }
    }
    Ok(())
}

/// The directories that outputs are bound from, if they do not exist.
fn absent_outputs(bundle: &Bundle) -> Vec<PathBuf> {
    let annotations = bundle.config.spec.annotations().iter().flatten();
    let wanted: Vec<&String> =
        annotations.filter(|(key, _)| key.starts_with("dev.jobc.output.")).map(|(_, place)| place).collect();
    let mounts = bundle.config.spec.mounts().iter().flatten();
    mounts
        .filter(|mount| wanted.iter().any(|place| Path::new(place.as_str()) == mount.destination()))
        .filter_map(|mount| mount.source().as_ref().map(|source| bundle.dir.join(source)))
        .filter(|source| !source.exists())
        .collect()
}

/// Tells the checks before a command where they are: a container has the name of its task. Returns whether there are any.
pub(crate) fn name_node(process: &mut Process) -> bool {
    let has_checks = process.args().iter().flatten().nth(3).is_some_and(|word| word == preflight::NAME);
    if has_checks {
        let node = format!("{}={}", preflight::NODE, rustix::system::uname().nodename().to_string_lossy());
        let env = process.env().iter().flatten().cloned().chain([node]).collect();
        process.set_env(Some(env));
    }
    has_checks
}

fn is_bind(mount: &Mount) -> bool {
    let is_option = |option: &String| option == "bind" || option == "rbind";
    mount.typ().as_deref() == Some("bind") || mount.options().iter().flatten().any(is_option)
}

#[cfg(test)]
mod tests;
