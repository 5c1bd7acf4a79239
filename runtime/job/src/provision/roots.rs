//! The root filesystems of a job: one per role, created once and shared by its tasks below their own writable layers.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use jobc_schema::plan::{ImageSource, RolePlan};

use super::images;
use super::job::{Job, Progress};
use super::large_data::large_data_directory;
use crate::allocate::image::{self, Image};
use crate::allocate::{NamedUser, named_user, refuse_foreign};
use crate::caller_ids;
use crate::host_environment::HostEnvironment;
use jobc_container::archive;
use jobc_container::bundle::Bundle;
use jobc_container::root::{Root, without_top};
use jobc_container::rootless::Caller;
use jobc_sys::error::{AtPath as _, Error, Kind, Result, describe_io};
use jobc_sys::id::{EVERY_ROLE, TaskId};

/// The root of a role's tasks.
#[derive(Clone, Debug)]
pub struct RoleRoot {
    /// Where the files come from.
    pub(crate) source: RootSource,
    /// The image's settings for the process, if the root came with them.
    pub(crate) image: Option<Image>,
    /// The user of the tasks, if the bundle names one.
    pub(crate) user: Option<NamedUser>,
    /// The part of the caller's environment that the tasks get.
    pub(crate) environment: Option<HostEnvironment>,
    /// The signal that the job file names to stop the tasks.
    pub(crate) stop_signal: Option<String>,
    /// Whether the tasks get a process 1 that forwards signals and reaps orphans.
    pub(crate) init: bool,
    /// Whom the caller is in the containers, without privileges.
    pub(crate) caller: Caller,
    /// The user and group that config.json has otherwise.
    default_ids: (u32, u32),
}

/// Where a root's files come from.
#[derive(Clone, Debug)]
pub enum RootSource {
    /// From this host, below a writable layer for each task.
    Shared(Root),
    /// From layers of an image, copied for each task because no overlay is available.
    Copied(Vec<PathBuf>),
    /// From the task's own bundle: a directory `rootfs` in it, or an archive next to it.
    Bundle,
}

impl RoleRoot {
    /// The user and group of the tasks, as the files that they own need them: 0 where that is the caller.
    pub(crate) fn ids(&self) -> (u32, u32) {
        if let Caller::IsUser(..) = self.caller {
            return (0, 0);
        }
        self.user.as_ref().map_or(self.default_ids, |user| (user.uid, user.gid))
    }
}

/// The roots of a job's roles.
pub(super) fn of(
    job: &Job<'_>,
    on_progress: &mut dyn FnMut(Progress),
    stopped: &AtomicBool,
) -> Result<IndexMap<String, RoleRoot>> {
    // Unpacked archives, and checked directories: several roles may have the same.
    let mut seen: IndexMap<String, (PathBuf, Option<Image>)> = IndexMap::new();
    let mut roles = IndexMap::with_capacity(job.plan.roles.len());
    for role in &job.plan.roles {
        let bundle = Bundle::open(&job.directory.bundle(&TaskId::new(&role.name, 0)))?;
        let choice = root_option(job, &role.name);
        let environment = job.environments.of_role(job.plan, &role.name);
        let environment = environment.filter(|_| choice.is_none_or(|choice| choice == "host")).cloned();
        let settings = environment.as_ref().map(|environment| environment.settings.clone());
        let (base, image) = match choice {
            Some("host") => (RootSource::Shared(Root::of_host(&bundle)?), settings),
            Some(path) => {
                if !seen.contains_key(path) {
                    seen.insert(path.to_owned(), resolve_root(job, path, seen.len(), stopped)?);
                }
                let (files, image) = seen[path].clone();
                (RootSource::Shared(Root::layered(vec![files], &bundle)?), image)
            }
            None => match images::root(job.submission, &role.name, stopped)? {
                Some((layers, image)) if images::are_copied(job.submission) => {
                    (RootSource::Copied(layers), Some(image))
                }
                Some((layers, image)) => (RootSource::Shared(Root::layered(layers, &bundle)?), Some(image)),
                None => (default_root(job, role, &bundle)?, settings),
            },
        };
        let from = match &base {
            RootSource::Shared(root) => root.directories().to_owned(),
            RootSource::Copied(layers) => layers.clone(),
            RootSource::Bundle => vec![bundle.dir.join("rootfs")],
        };
        let user = bundle.annotation("dev.jobc.user").filter(|_| !matches!(base, RootSource::Bundle));
        let user = user.map(|name| named_user(&from, name)).transpose()?;
        image::refuse_unknown(&bundle, image.as_ref(), &role.name, choice)?;
        let user = match user {
            Some(user) => Some(user),
            None => image::user(&bundle, image.as_ref(), &from)?,
        };
        let (base, caller) = as_user(job, role, base, user.as_ref(), &bundle, stopped)?;
        let written = bundle.config.spec.process().as_ref().map(oci_spec::runtime::Process::user);
        let numbers = written.map_or((0, 0), |user| (user.uid(), user.gid()));
        on_progress(Progress::ImageReady {
            role: role.name.clone(),
            image: bundle.annotation("dev.jobc.image").unwrap_or_default().to_owned(),
            root: match from.last() {
                Some(from) if from != Path::new("/") => from.display().to_string(),
                _ => "host".to_owned(),
            },
        });
        roles.insert(
            role.name.clone(),
            RoleRoot {
                source: base,
                image,
                user,
                environment,
                stop_signal: role.stop_signal.clone(),
                init: role.init,
                caller,
                default_ids: numbers,
            },
        );
    }
    Ok(roles)
}

/// Whom the caller is in the containers of a role, and the root for it: the files that its user writes to the host
/// belong to the caller. The layers of an image have their owners on the disk, so they are unpacked for that.
fn as_user(
    job: &Job<'_>,
    role: &RolePlan,
    base: RootSource,
    user: Option<&NamedUser>,
    bundle: &Bundle,
    stopped: &AtomicBool,
) -> Result<(RootSource, Caller)> {
    let caller = caller_ids::of_role(job.plan, job.submission, role);
    let ids = user.map(|user| (user.uid, user.gid)).filter(|(uid, _)| *uid != 0);
    let (RootSource::Shared(_), Some(ids), Caller::IsRoot) = (&base, ids, caller) else {
        return Ok((base, caller));
    };
    if !caller_ids::can_be_user(job.plan) || root_option(job, &role.name).is_some() {
        return Ok((base, caller));
    }
    Ok(match images::root_as(job.submission, &role.name, Some(ids), stopped)? {
        Some((layers, _)) => {
            (RootSource::Shared(Root::layered(layers, bundle)?), Caller::IsUser(ids.0, ids.1))
        }
        None => (base, caller),
    })
}

/// The root that the command line names for a role.
fn root_option<'a>(job: &Job<'a>, role: &str) -> Option<&'a str> {
    let roots = &job.submission.roots;
    roots.get(role).or_else(|| roots.get(EVERY_ROLE)).map(String::as_str)
}

/// The directory with the files of a named root, and the image's settings that came with it.
fn resolve_root(
    job: &Job<'_>,
    path: &str,
    number: usize,
    stopped: &AtomicBool,
) -> Result<(PathBuf, Option<Image>)> {
    let given = job.submission.directory.join(path);
    let found = std::fs::canonicalize(&given).map_err(|error| {
        Error::new(
            Kind::Config,
            format!("cannot open the root `{}`: {}", given.display(), describe_io(&error)),
        )
        .help("use a directory, an archive (`.tar`, `.tar.gz`), an unpacked bundle, or `host`")
    })?;
    if found == Path::new("/") {
        return Err(Error::new(Kind::Unsupported, "`/` with everything mounted below it cannot be a root")
            .help("use `host`: the host's own files, without kernel file systems and other containers"));
    }
    if !found.is_dir() {
        let root = large_data_directory(job.directory).join("roots").join(number.to_string());
        if !root.exists() {
            let parent = root.parent().unwrap_or(&root);
            std::fs::create_dir_all(parent).at_path("create the directory", parent)?;
            archive::unpack_cancelable(stopped, &found, &root)?;
        }
        return Ok((without_top(root), None));
    }
    refuse_foreign(&found)?;
    if found.join("config.json").is_file() {
        let unpacked = Bundle::open(&found)?;
        let root = unpacked.config.spec.root().as_ref().map(|root| unpacked.dir.join(root.path()));
        let root = root.filter(|root| root.is_dir()).ok_or_else(|| {
            Error::new(Kind::Config, format!("the bundle `{}` has no root file system", found.display()))
                .help("use a bundle from `umoci unpack`, or a root directory")
        })?;
        return Ok((link(job, root, number)?, Some(Image::of_bundle(&unpacked))));
    }
    Ok((link(job, without_top(found), number)?, None))
}

/// A path for an overlay's lower layer: fsconfig(2) takes 255 bytes, and `:` separates layers.
fn link(job: &Job<'_>, path: PathBuf, number: usize) -> Result<PathBuf> {
    let text = path.as_os_str().as_encoded_bytes();
    if text.len() < 250 && !text.iter().any(|byte| b":,\\".contains(byte)) {
        return Ok(path);
    }
    let link = job.directory.state.join(format!("root-{number}"));
    match std::os::unix::fs::symlink(&path, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(jobc_sys::error::file_error("link", &link, &error))
        }
        _ => Ok(link),
    }
}

/// The root of a role for which the command line names none.
fn default_root(job: &Job<'_>, role: &RolePlan, bundle: &Bundle) -> Result<RootSource> {
    let image = bundle.annotation("dev.jobc.image");
    if image == Some("host") {
        return Ok(RootSource::Shared(Root::of_host(bundle)?));
    }
    let there = ["rootfs", "rootfs.tar", "rootfs.tar.gz", "rootfs.tgz"];
    if there.iter().any(|name| bundle.dir.join(name).exists()) {
        return Ok(RootSource::Bundle);
    }
    let image = image.unwrap_or_default();
    let built = job
        .plan
        .image_of(role)
        .is_some_and(|image| image.source.is_built() || matches!(image.source, ImageSource::Build { .. }));
    let error = if built {
        Error::new(Kind::State, format!("the image `{image}` of `{}` is not built yet", role.name))
    } else {
        Error::new(Kind::State, format!("the image `{image}` of `{}` is not in the image store", role.name))
    };
    Err(error.help(format!(
        "name a root with `--root {}=PATH`: a directory, an archive (`docker export`), or a bundle of `umoci unpack`; or run on this host's own files with `--root host`",
        role.name
    )))
}
