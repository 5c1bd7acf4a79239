//! Volumes that are fetched, or made for the job: `<build>/oci/volumes/<name>`, where the bundles bind them from.
//!
//! Each is fetched to a temporary name and renamed when it is complete, so that an existing one need not be checked.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use jobc_schema::plan::VolumeSource;

use super::fetch::FetchRequest;
use super::fields::{field_of, host_path, mounted_volumes};
use super::job::{Job, Progress};
use super::large_data::large_data_directory;
use super::roots::RoleRoot;
use super::{git, http, paths, program};
use jobc_container::archive;
use jobc_container::remove::remove;
use jobc_sys::error::{AtPath as _, Error, Kind, Result, file_error};

/// Creates the directories of the job, and those of each of its instances, for the users who write to them.
pub(super) fn create_job_directories(
    job: &Job<'_>,
    roles: &IndexMap<String, RoleRoot>,
    on_progress: &mut dyn FnMut(Progress),
    notes: &mut Vec<String>,
) -> Result<()> {
    for name in mounted_volumes(job.plan) {
        let source = job.plan.volumes.get(name).map(|volume| &volume.source);
        let place = large_data_directory(job.directory).join("volumes").join(name);
        let each: Vec<PathBuf> = match source {
            Some(VolumeSource::Job { in_memory: true }) => {
                let place = create_in_memory(job, name)?;
                link_into_build(job, name, &place)?;
                on_progress(Progress::DataReady { volume: name.to_owned(), path: place });
                continue;
            }
            Some(VolumeSource::Job { .. }) if host_path(job, name).is_none() => vec![place.clone()],
            Some(VolumeSource::Instance { .. }) => {
                instances(job, name).map(|task| place.join(task)).collect()
            }
            _ => continue,
        };
        for place in each.iter().filter(|place| !place.exists()) {
            paths::create_directories(place).at_path("create the directory", place)?;
            paths::set_owner(place, &paths::writers(job, roles, name), name, notes)?;
        }
        link_into_build(job, name, &place)?;
        on_progress(Progress::DataReady { volume: name.to_owned(), path: place });
    }
    Ok(())
}

/// Creates a directory in memory that the tasks share, next to the files of secrets, which are removed with the job.
///
/// Like any /dev/shm it is writable for all: only the tasks see it. Their own limits count what they write.
fn create_in_memory(job: &Job<'_>, name: &str) -> Result<PathBuf> {
    let place = job.directory.secrets()?.create_directory(&format!("memory-{name}"))?;
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o1777))
        .at_path("set the permissions of", &place)?;
    Ok(place)
}

/// The tasks of the roles that mount a volume.
fn instances<'a>(job: &'a Job<'_>, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let roles =
        job.plan.roles.iter().filter(move |role| role.mounts.iter().any(|mount| mount.volume == name));
    roles.flat_map(|role| (0..role.instances).map(|index| format!("{}-{index}", role.name)))
}

/// Fetches every volume that roles mount and the host does not have.
pub(super) fn fetch(
    job: &Job<'_>,
    on_progress: &mut dyn FnMut(Progress),
    stopped: &AtomicBool,
) -> Result<()> {
    for name in mounted_volumes(job.plan) {
        let Some(volume) = job.plan.volumes.get(name).filter(|_| host_path(job, name).is_none()) else {
            continue;
        };
        if matches!(
            volume.source,
            VolumeSource::Job { .. } | VolumeSource::Instance { .. } | VolumeSource::Memory { .. }
        ) {
            continue;
        }
        if stopped.load(Ordering::Relaxed) {
            return Err(program::stopped_error());
        }
        let secret = volume.secret.as_deref().map(|secret| job.secrets.get(secret)).transpose()?;
        let place = large_data_directory(job.directory).join("volumes").join(name);
        let field = field_of(job.plan, name);
        if !place.exists() {
            let mut of_volume = |from: &str, bytes: u64| {
                on_progress(Progress::Fetching { volume: name.to_owned(), from: from.to_owned(), bytes });
            };
            let mut fetch = FetchRequest {
                name,
                secret: secret.map(jobc_container::secret::Secret::line),
                stopped,
                progress: &mut of_volume,
            };
            fetch_source(&volume.source, &mut fetch, &place).map_err(|error| error.at_field(&field))?;
        }
        link_into_build(job, name, &place)?;
        on_progress(Progress::DataReady { volume: name.to_owned(), path: place });
    }
    Ok(())
}

/// Fetches a source to a path that does not exist yet.
fn fetch_source(source: &VolumeSource, fetch: &mut FetchRequest<'_>, place: &Path) -> Result<()> {
    let parent = place.parent().unwrap_or(place);
    std::fs::create_dir_all(parent).at_path("create the directory", parent)?;
    let part = temporary_path(place, "new");
    remove_if_exists(&part)?;
    remove_if_exists(&temporary_path(place, "packed"))?;
    let fetched = match source {
        VolumeSource::Git { url, reference } => git::fetch(url, reference.as_deref(), fetch, &part),
        VolumeSource::Https { url, unpack: false } => http::fetch(url, fetch, &part),
        VolumeSource::Https { url, unpack: true } => {
            let packed = temporary_path(place, "packed");
            http::fetch(url, fetch, &packed)
                .and_then(|()| archive::unpack_data_cancelable(fetch.stopped, &packed, &part))
                .and_then(|()| remove_if_exists(&packed))
        }
        other => Err(unsupported(other, fetch.name)),
    };
    let named = fetched.and_then(|()| std::fs::rename(&part, place).at_path("rename the download to", place));
    if named.is_err() {
        // The first error is the one to report.
        let _ = remove_if_exists(&part);
        let _ = remove_if_exists(&temporary_path(place, "packed"));
    }
    named
}

fn unsupported(source: &VolumeSource, name: &str) -> Error {
    let what = match source {
        VolumeSource::Nfs { .. } => "an NFS export",
        VolumeSource::S3 { .. } => "an S3 bucket",
        VolumeSource::Pvc { .. } => "a Kubernetes PersistentVolumeClaim",
        _ => "a target-specific volume",
    };
    Error::new(Kind::Unsupported, format!("{what} cannot be fetched to this host")).help(format!(
        "mount it, and name the directory in targets.yaml: `oci: {{storage: {{{name}: /mnt/{name}}}}}`"
    ))
}

/// Removes a file, or a directory with all that is in it; a missing one is not an error.
fn remove_if_exists(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => remove(path),
        Err(error) => Err(file_error("remove", path, &error)),
        Ok(()) => Ok(()),
    }
}

fn temporary_path(place: &Path, what: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(".");
    name.push(what);
    place.with_file_name(name)
}

/// Gives what was fetched the name that bundles bind it by.
fn link_into_build(job: &Job<'_>, name: &str, place: &Path) -> Result<()> {
    let volumes = job.directory.build().join("oci/volumes");
    let link = volumes.join(name);
    std::fs::create_dir_all(&volumes).at_path("create the directory", &volumes)?;
    match std::os::unix::fs::symlink(place, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(file_error("link", &link, &error))
        }
        _ => Ok(()),
    }
}
