//! The cgroups as the container sees them: with a cgroup namespace, its own group is the root of each hierarchy;
//! without one, bind mounts show the same.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use linux_raw_sys::general::MOUNT_ATTR_RDONLY;

use crate::cgroup::{Hierarchy, Interface};
use crate::child::path::{ContainerPath, TargetKind};
use crate::mounts::cgroups::MountCgroups;
use crate::mounts::{Mount, Source};
use crate::operation::Operation;
use crate::prepare::cgroups::CgroupView;
use jobc_sys::syscall::MountAttributes;

/// The step for a mount of type `cgroup` or `cgroup2`; nothing where there is nothing to show.
///
/// On a host with cgroup v2 alone both mean its tree; elsewhere `cgroup` means the cgroup v1 hierarchies.
pub(super) fn mount_operation(
    place: &ContainerPath,
    kind: &str,
    attributes: u64,
    own_namespace: bool,
    groups: &CgroupView<'_>,
) -> Option<Operation> {
    if kind == "cgroup2" || groups.layout.is_unified() {
        let unified = groups.layout.unified.as_ref()?;
        let directory = || {
            let made = groups.plan.groups.iter().find(|group| group.interface == Interface::V2);
            made.map(crate::cgroup::Group::directory)
                .or_else(|| Some(unified.mount.join(unified.own_group.as_ref()?)))
        };
        let source = if own_namespace { new_hierarchy(c"cgroup2", &[])? } else { bind(&directory()?)? };
        return Some(Operation::Mount(Mount {
            target: place.clone(),
            target_kind: TargetKind::Directory,
            source,
            attributes: MountAttributes { set: attributes, ..MountAttributes::default() },
            recursive_attributes: None,
            propagation: vec![],
        }));
    }
    let mut hierarchies = Vec::new();
    let mut links = Vec::new();
    for hierarchy in &groups.layout.hierarchies {
        let source = if own_namespace {
            new_hierarchy(c"cgroup", &hierarchy.options())
        } else {
            group(hierarchy, groups).and_then(|directory| bind(&directory))
        };
        // A hierarchy in which this process's own group cannot be seen from here has nothing to show.
        let Some(source) = source else { continue };
        let name = CString::new(hierarchy.directory()).ok()?;
        if hierarchy.directory().contains(',') {
            for controller in hierarchy.directory().split(',') {
                links.push((CString::new(controller).ok()?, name.clone()));
            }
        }
        hierarchies.push((name, source));
    }
    let read_only = attributes & u64::from(MOUNT_ATTR_RDONLY) != 0;
    (!hierarchies.is_empty()).then(|| {
        Operation::MountCgroups(MountCgroups {
            target: place.clone(),
            hierarchies,
            links,
            read_only,
            label: None,
        })
    })
}

/// The container's group in a hierarchy: one that is made for it, or the one that this process is in.
fn group(hierarchy: &Hierarchy, groups: &CgroupView<'_>) -> Option<PathBuf> {
    let made = groups.plan.groups.iter().find(|group| group.mount == hierarchy.mount);
    made.map(crate::cgroup::Group::directory)
        .or_else(|| Some(hierarchy.mount.join(hierarchy.own_group.as_ref()?)))
}

fn new_hierarchy(kind: &std::ffi::CStr, options: &[&str]) -> Option<Source> {
    let parameters = options
        .iter()
        .map(|option| match option.split_once('=') {
            Some((key, value)) => Some((CString::new(key).ok()?, Some(CString::new(value).ok()?))),
            None => Some((CString::new(*option).ok()?, None)),
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Source::New { kind: kind.to_owned(), parameters, copy_up: false })
}

fn bind(directory: &Path) -> Option<Source> {
    let path = CString::new(directory.as_os_str().as_bytes()).ok()?;
    Some(Source::Bind { path, recursive: true, linkless: false, copy: None })
}
