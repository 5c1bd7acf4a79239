//! The mounts of a bundle: the kernel's own file systems, /dev/shm, volumes, and small files.

use camino::Utf8PathBuf;
use jobc_schema::BackendName;
use jobc_schema::Pointer;
use jobc_schema::job::Network;
use jobc_schema::plan::{
    CODE_DIRECTORY, FileContent, FilePlan, JobPlan, MountPlan, RolePlan, VolumePlan, VolumeSource,
};
use oci_spec::runtime::Mount;

use crate::backend::tasks::Task;
use crate::backend::{Address, Content, Context, File, FilePart, Origin, PartSource, render};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// The default size of /dev/shm, as in other container engines.
const SHM: &str = "65536k";

/// A mount, and the place of the job file that requests it.
pub(super) struct MountRequest {
    pub(super) mount: Mount,
    pub(super) from: Option<Pointer>,
}

/// The mounts of a task in the order they are made.
pub(super) fn mounts(job: &JobPlan, task: Task<'_>, context: &Context<'_>) -> Vec<MountRequest> {
    let role = task.role;
    let mut list = kernel_mounts(role);
    if matches!(job.network, Network::Auto | Network::Host) {
        // With the host's network, the host's resolver is used; the role's own file takes precedence.
        for path in ["/etc/hosts", "/etc/resolv.conf"] {
            if !role.files.iter().chain(&role.provided_files).any(|file| file.path == path) {
                list.push(bind(path, path, &["rbind", "nosuid", "nodev", "noexec", "ro"], None));
            }
        }
    }
    // A mount hides what was mounted below it before, so outer ones come first.
    let mut volumes: Vec<&MountPlan> = role.mounts.iter().collect();
    volumes.sort_by_key(|mount| mount.path.split('/').filter(|part| !part.is_empty()).count());
    for mount in volumes {
        let volume = job.volumes.get(&mount.volume);
        if let Some((volume, size)) = volume.and_then(|volume| Some((volume, in_memory(volume)?))) {
            let options = ["nosuid", "nodev", "mode=1777", &format!("size={size}")];
            list.push(special(&mount.path, "tmpfs", "tmpfs", &options, Some(volume.at(&mount.volume))));
        }
        if let Some(source) =
            job.volumes.get(&mount.volume).and_then(|v| source(job, task, &mount.volume, v, context))
        {
            // With everything mounted below it: a disk below a read-only directory must be read-only too.
            let access = if mount.writable { "rw" } else { "rro" };
            let from = job.volumes.get(&mount.volume).map(|volume| volume.at(&mount.volume));
            let source = mount.subpath.as_ref().map_or_else(|| source.clone(), |path| source.join(path));
            list.push(bind(&mount.path, source.as_str(), &["rbind", "rnosuid", "rnodev", access], from));
        }
    }
    for (file, from) in text_files(role) {
        list.push(bind(
            &file.path,
            bundle_path(&file.path).as_str(),
            &["rbind", "nosuid", "nodev", "ro"],
            from,
        ));
    }
    list
}

/// The bytes of a directory in memory.
fn in_memory(volume: &VolumePlan) -> Option<u64> {
    if let VolumeSource::Memory { size_bytes } = volume.source { Some(size_bytes) } else { None }
}

/// The bundle's own copies of the role's and jobc's text files.
pub(super) fn files(task: Task<'_>, at: &dyn Address) -> Vec<File> {
    let copy = |(file, from): (&FilePlan, Option<Pointer>)| {
        let FileContent::Text(text) = &file.content else { return None };
        let path = Utf8PathBuf::from(task.name()).join(bundle_path(&file.path));
        let mut copy = File::new(path, Content::Text(render(text, at)));
        copy.mode = file.mode;
        if let Some(from) = from {
            copy.origins.push(Origin { part: FilePart::Line(1), from: PartSource::Spec(from) });
        }
        Some(copy)
    };
    text_files(task.role).filter_map(copy).collect()
}

/// Files with text, jobc's own first, each with the place of the job file that requests it.
fn text_files(role: &RolePlan) -> impl Iterator<Item = (&FilePlan, Option<Pointer>)> {
    let own =
        role.provided_files.iter().filter(|file| !role.files.iter().any(|other| other.path == file.path));
    let users = role.files.iter().map(|file| (file, Some(role.at().keys(["files", &file.path]))));
    own.map(|file| (file, None)).chain(users).filter(|(file, _)| matches!(file.content, FileContent::Text(_)))
}

/// Where a bundle keeps its copy of a file: below `files/`, whatever `..` the path has.
fn bundle_path(path: &str) -> Utf8PathBuf {
    let mut kept = Utf8PathBuf::from("files");
    kept.extend(path.split('/').filter(|part| !matches!(*part, "" | "." | "..")));
    kept
}

/// The source of a volume's bind mount: a directory of the host, or next to the bundles for what `jobc run` fetches or
/// creates.
///
/// A relative path is relative to the bundle, which is two levels below the target directory.
fn source(
    job: &JobPlan,
    task: Task<'_>,
    name: &str,
    volume: &VolumePlan,
    context: &Context<'_>,
) -> Option<Utf8PathBuf> {
    let of_machine = |path: &str| {
        if path.starts_with('/') {
            Utf8PathBuf::from(path)
        } else {
            Utf8PathBuf::from("../..").join(&context.to_job).join(path.trim_start_matches("./"))
        }
    };
    if in_memory(volume).is_some() {
        return None;
    }
    if let VolumeSource::Instance { .. } = volume.source {
        return Some(Utf8PathBuf::from("../volumes").join(name).join(task.name()));
    }
    if let Some(path) = storage(job, name) {
        return Some(of_machine(path));
    }
    if matches!(volume.source, VolumeSource::Code { .. })
        && job.target.settings.backends.contains(&BackendName::Slurm)
    {
        // A batch script unpacks it there.
        return Some(Utf8PathBuf::from("../volumes").join(name));
    }
    match &volume.source {
        // Where `jobc submit` sends it.
        VolumeSource::Code { .. } if job.target.settings.is_machine() => Some(of_machine(CODE_DIRECTORY)),
        VolumeSource::Path { path } | VolumeSource::Code { path, .. } => Some(of_machine(path)),
        VolumeSource::Https { .. } | VolumeSource::Git { .. } | VolumeSource::Job { .. } => {
            Some(Utf8PathBuf::from("../volumes").join(name))
        }
        VolumeSource::Instance { .. }
        | VolumeSource::Memory { .. }
        // Rejected earlier, by the capability checks.
        | VolumeSource::Nfs { .. }
        | VolumeSource::S3 { .. }
        | VolumeSource::Pvc { .. }
        | VolumeSource::Target {} => None,
    }
}

/// The directory of the host that the target gives for a volume.
pub(super) fn storage<'a>(job: &'a JobPlan, name: &str) -> Option<&'a str> {
    let settings = &job.target.settings;
    let of_nodes = || settings.slurm.as_ref()?.storage.get(name);
    settings.oci.as_ref().and_then(|oci| oci.storage.get(name)).or_else(of_nodes).map(String::as_str)
}

/// Warns about mounts inside a read-only volume: the mount point must already exist.
///
/// A runtime creates the mount point, but cannot do so in a volume that is already mounted read-only.
pub(super) fn check_nesting(role: &RolePlan, sink: &mut Sink) {
    let read_only: Vec<_> = role.mounts.iter().filter(|mount| !mount.writable).collect();
    let volumes = role.mounts.iter().map(|mount| (&mount.path, role.at()));
    let files = role.provided_files.iter().map(|file| (&file.path, role.at()));
    let users = role.files.iter().map(|file| (&file.path, role.at().keys(["files", &file.path])));
    for (path, from) in volumes.chain(files).chain(users) {
        for outer in &read_only {
            let inside = path.strip_prefix(outer.path.trim_end_matches('/'));
            if inside.is_some_and(|rest| rest.starts_with('/') && rest.len() > 1) {
                sink.push(
                    Diagnostic::warning(
                        codes::INSIDE_READ_ONLY,
                        format!("`{path}` lies inside `{}`, where `{}` is mounted read-only", outer.path, outer.volume),
                    )
                    .at_key(&from, "")
                    .note(format!(
                        "it must already exist in the directory, otherwise the task does not start; choose a path outside, or write `writable: true` for `{}`",
                        outer.volume
                    ))
                    .set(&Pointer::ROOT.keys(["data", &outer.volume, "writable"]), true),
                );
            }
        }
    }
}

/// The kernel's file systems in a container.
fn kernel_mounts(role: &RolePlan) -> Vec<MountRequest> {
    let access = if role.security.privileged { "rw" } else { "ro" };
    let shm = role.resources.shm_bytes.map_or_else(|| SHM.to_owned(), |bytes| bytes.to_string());
    let shm_from = role.resources.shm_bytes.map(|_| role.at().keys(["resources", "shm"]));
    vec![
        special("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"], None),
        special("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"], None),
        special(
            "/dev/pts",
            "devpts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
            None,
        ),
        special(
            "/dev/shm",
            "tmpfs",
            "shm",
            &["nosuid", "noexec", "nodev", "mode=1777", &format!("size={shm}")],
            shm_from,
        ),
        special("/dev/mqueue", "mqueue", "mqueue", &["nosuid", "noexec", "nodev"], None),
        special("/sys", "sysfs", "sysfs", &["nosuid", "noexec", "nodev", access], None),
        special(
            "/sys/fs/cgroup",
            "cgroup",
            "cgroup",
            &["nosuid", "noexec", "nodev", "relatime", access],
            None,
        ),
    ]
}

fn special(at: &str, kind: &str, source: &str, options: &[&str], from: Option<Pointer>) -> MountRequest {
    let mut request = bind(at, source, options, from);
    request.mount.set_typ(Some(kind.to_owned()));
    request
}

fn bind(at: &str, source: &str, options: &[&str], from: Option<Pointer>) -> MountRequest {
    let mut mount = Mount::default();
    mount
        .set_destination(at.into())
        .set_typ(Some("bind".to_owned()))
        .set_source(Some(source.into()))
        .set_options(Some(options.iter().map(|option| (*option).to_owned()).collect()));
    MountRequest { mount, from }
}
