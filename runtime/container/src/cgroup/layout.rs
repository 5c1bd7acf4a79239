//! The cgroup layout of this host: cgroup v1, cgroup v2, or hybrid (v1 with an empty v2 hierarchy).
//!
//! It is read from `/proc/self/mountinfo` and `/proc/self/cgroup` (proc(5), cgroups(7)), each read once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::controller::Controller;
use jobc_sys::error::{Error, Result};
use jobc_sys::kernel_file::{self, unescape};

/// The hierarchies of this host, and where this process is in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The cgroup v1 hierarchies, in the order of `/proc/self/cgroup`.
    pub hierarchies: Vec<Hierarchy>,
    /// The cgroup v2 hierarchy.
    pub unified: Option<UnifiedHierarchy>,
}

/// A mounted cgroup v1 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Its name: the controllers with commas, or `name=…` for one without.
    pub name: String,
    /// The controllers in it that this program knows.
    pub controllers: Vec<Controller>,
    /// The group of this process, relative to the mount; nothing where it cannot be seen from here.
    pub own_group: Option<PathBuf>,
    /// Whether it is mounted read-write; file permissions are checked separately.
    pub writable: bool,
}

/// The mounted cgroup v2 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnifiedHierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The controllers that groups of it can have: those that no cgroup v1 hierarchy holds. Looked up on first
    /// use.
    pub controllers: OnceLock<Vec<Controller>>,
    /// The group of this process, relative to the mount; nothing where it cannot be seen from here.
    pub own_group: Option<PathBuf>,
    /// Whether it is mounted read-write; file permissions are checked separately.
    pub writable: bool,
}

/// The interface (cgroup v1 or v2) of a controller on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// A separate hierarchy, or one shared with few other controllers.
    V1,
    /// The cgroup v2 hierarchy.
    V2,
}

impl Layout {
    /// Looks where cgroups are mounted and which groups this process is in.
    ///
    /// No mounted cgroups at all are not an error: the layout is empty then.
    pub fn detect() -> Result<Self> {
        let mut layout = Self::read_proc(Path::new("/proc/self/cgroup"))?;
        if let Some(unified) = &mut layout.unified {
            // With cgroup v1, most limits are found there, and the other controllers are never looked up.
            unified.controllers = OnceLock::new();
        }
        Ok(layout)
    }

    /// Finds which groups another process is in; `own_group` means that process's. The cgroup v2 hierarchy seems to have no
    /// controllers.
    pub(super) fn of_process(pid: u32) -> Result<Self> {
        Self::read_proc(&PathBuf::from(format!("/proc/{pid}/cgroup")))
    }

    fn read_proc(own: &Path) -> Result<Self> {
        Ok(Self::parse(&read(Path::new("/proc/self/mountinfo"))?, &read_whole(own)?))
    }

    /// The layout that the two files describe, with no controllers in the cgroup v2 hierarchy.
    pub fn parse(mountinfo: &str, own: &str) -> Self {
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
        let mut layout = Self::default();
        for line in own.lines() {
            // `4:memory:/user/task`, `0::/user/task`
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(name), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let Some(mount) = best_mount(&mounts, name) else { continue };
            let (own, writable) = (mount.relative(path), mount.writable);
            let mount = mount.point.clone();
            if name.is_empty() {
                layout.unified =
                    Some(UnifiedHierarchy { mount, controllers: vec![].into(), own_group: own, writable });
            } else {
                let controllers = name.split(',').filter_map(Controller::from_name).collect();
                layout.hierarchies.push(Hierarchy {
                    mount,
                    name: name.to_owned(),
                    controllers,
                    own_group: own,
                    writable,
                });
            }
        }
        layout
    }

    /// The interface of a controller on this host; `None` if the controller is missing.
    pub fn version(&self, controller: Controller) -> Option<Version> {
        if self.hierarchy(controller).is_some() {
            Some(Version::V1)
        } else {
            let unified = self.unified.as_ref()?;
            (controller.is_always_enabled() || unified.controllers().contains(&controller))
                .then_some(Version::V2)
        }
    }

    /// The cgroup v1 hierarchy that a controller is in.
    pub fn hierarchy(&self, controller: Controller) -> Option<&Hierarchy> {
        self.hierarchies.iter().find(|hierarchy| hierarchy.controllers.contains(&controller))
    }

    /// Whether the cgroup v2 hierarchy has all there is.
    pub fn is_unified(&self) -> bool {
        self.unified.is_some() && self.hierarchies.iter().all(|hierarchy| hierarchy.controllers.is_empty())
    }
}

impl UnifiedHierarchy {
    /// The controllers that groups of it can have; none where they are not known.
    pub fn controllers(&self) -> &[Controller] {
        self.controllers.get_or_init(|| {
            let list = read_whole(&self.mount.join("cgroup.controllers")).unwrap_or_default();
            list.split_whitespace().filter_map(Controller::from_name).collect()
        })
    }
}

impl Hierarchy {
    /// The options for mount(2) of this hierarchy: `cpu` and `cpuacct`, or `none` and `name=systemd`.
    pub fn options(&self) -> Vec<&str> {
        if self.name.starts_with("name=") { vec!["none", &self.name] } else { self.name.split(',').collect() }
    }

    /// The name of the directory it is usually mounted on: the name without `name=`.
    pub fn directory(&self) -> &str {
        self.name.strip_prefix("name=").unwrap_or(&self.name)
    }
}

/// A line of mountinfo about cgroups.
struct Mount {
    /// The group of the hierarchy that is mounted at `point`, as named in this process's cgroup namespace.
    root: PathBuf,
    point: PathBuf,
    /// Whether both the mount and the file system are writable.
    writable: bool,
    /// The options of the file system, which for cgroup v1 hold its controllers; nothing for cgroup v2.
    options: Option<Vec<String>>,
}

impl Mount {
    /// `33 31 0:30 /root /point rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct`
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (unescape(before.next()?.as_bytes()), unescape(before.next()?.as_bytes()));
        let is_for_writing = |options: &str| options.split(',').next() == Some("rw");
        let writable = before.next().is_some_and(is_for_writing);
        let mut after = after.split(' ');
        let kind = after.next()?;
        let options = after.nth(1)?;
        let writable = writable && is_for_writing(options);
        let options = options.split(',').map(ToOwned::to_owned).collect();
        match kind {
            "cgroup" => Some(Self { root, point, writable, options: Some(options) }),
            "cgroup2" => Some(Self { root, point, writable, options: None }),
            _ => None,
        }
    }

    /// Whether this is the hierarchy that /proc/self/cgroup calls `name`.
    fn is_hierarchy(&self, name: &str) -> bool {
        match &self.options {
            None => name.is_empty(),
            Some(options) => {
                !name.is_empty() && name.split(',').all(|part| options.iter().any(|option| option == part))
            }
        }
    }

    /// A group's path below the mount, from its path in the hierarchy.
    fn relative(&self, path: &str) -> Option<PathBuf> {
        let relative = Path::new(path).strip_prefix(&self.root).ok()?;
        // A process outside its own namespace's root is shown as `/../…`.
        relative
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
            .then(|| relative.to_owned())
    }
}

/// Whether the file system of a mount is read-only, and not only the mount.
pub(super) fn is_file_system_read_only(point: &Path) -> bool {
    let table = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let is_there = |line: &&str| Mount::parse(line).is_some_and(|mount| mount.point == point);
    let last = table.lines().rfind(is_there).and_then(|line| line.rsplit(' ').next());
    last.is_some_and(|options| options.split(',').next() == Some("ro"))
}

/// The mount that shows most of a hierarchy: of several, one of the hierarchy's root.
fn best_mount<'a>(mounts: &'a [Mount], name: &str) -> Option<&'a Mount> {
    mounts.iter().filter(|mount| mount.is_hierarchy(name)).min_by_key(|mount| mount.root.components().count())
}

/// Reads a file that the kernel returns in one piece if the buffer has room (seq_file.rst): if room is left, the file
/// is complete.
fn read_whole(path: &Path) -> Result<String> {
    match kernel_file::read(path, &mut [0; 4096]) {
        Ok(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        Err(Errno::FBIG) => read(path),
        Err(errno) => Err(Error::system(format!("read `{}`", path.display()), errno)),
    }
}

/// Reads a file of the kernel's that it shows line by line, a page at most for each call.
fn read(path: &Path) -> Result<String> {
    let failed = |errno| Error::system(format!("read `{}`", path.display()), errno);
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let mut bytes = Vec::with_capacity(16 * 1024);
    while rustix::io::read(&file, spare_capacity(&mut bytes)).map_err(failed)? > 0 {
        // Most hosts' mounts fit the first time, and need no more memory to see that nothing follows.
        if bytes.capacity() - bytes.len() < 4096 {
            bytes.reserve(16 * 1024);
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
