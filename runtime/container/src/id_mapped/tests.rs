use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use serde_json::json;

use super::*;
use crate::child::path::{ContainerPath, TargetKind};
use jobc_sys::syscall::record::RecordingKernel;

fn maps(inside: u32, outside: u32) -> IdMaps {
    let map = json!([{"containerID": inside, "hostID": outside, "size": 10}]);
    let mount = json!({"destination": "/data", "uidMappings": map, "gidMappings": map});
    IdMaps::of_mount(&serde_json::from_value(mount).unwrap(), "/mounts/0").unwrap().unwrap()
}

fn step(path: &Path, ids: IdMaps, recursive: bool, index: usize) -> Step {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    let private = linux_raw_sys::general::MS_PRIVATE.into();
    let copy = Some(TreeCopy::IdMapped(IdMappedMount::new(IdMapSource::Maps(ids), recursive, private)));
    let operation = Operation::Mount(Mount {
        target: ContainerPath::new("/data".as_ref()).unwrap(),
        target_kind: TargetKind::Directory,
        source: Source::Bind { path, recursive, linkless: false, copy },
        attributes: MountAttributes::default(),
        recursive_attributes: None,
        propagation: vec![],
    });
    Step { operation, pointer: Some(format!("/mounts/{index}")) }
}

/// The error for a tree at a path that cannot be id-mapped, with the step's description.
fn check(path: &str, recursive: bool) -> String {
    let mut steps = [step(path.as_ref(), maps(0, 1000), recursive, 4)];
    let error = create_mounts(&mut steps).unwrap_err();
    format!("{}\n    {error}\n    {}\n", steps[0].operation, error.advice().as_deref().unwrap_or_default())
}

#[test]
fn a_tree_shows_the_owners_of_its_map_and_each_map_needs_one_namespace() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    chown(directory.path().join("file"), Some(3), Some(4)).unwrap();
    let requested = [maps(0, 1000), maps(0, 1000), maps(3, 500)];
    let mut steps: Vec<Step> = requested
        .into_iter()
        .enumerate()
        .map(|(index, maps)| step(directory.path(), maps, false, index))
        .collect();
    let mut made = Vec::new();
    let trees = create_mounts_with(&mut steps, &mut |maps| {
        made.push(maps.users.text());
        user_namespace(maps)
    })
    .unwrap();
    assert_eq!(made, ["0 1000 10\n", "3 500 10\n"]);
    let owner = |tree: &OwnedFd| {
        let seen = rustix::fs::statat(tree, "file", rustix::fs::AtFlags::empty()).unwrap();
        (seen.st_uid, seen.st_gid)
    };
    assert_eq!(trees.iter().map(owner).collect::<Vec<_>>(), [(1003, 1004), (1003, 1004), (500, 501)]);
    assert_eq!(std::fs::metadata(directory.path().join("file")).unwrap().uid(), 3, "the file itself");
    for (step, tree) in steps.iter().zip(&trees) {
        let kernel = RecordingKernel::default();
        let report = crate::child::report::Report::new();
        let mut child = crate::child::Child::new(&kernel, &report, false);
        step.operation.carry_out(&mut child).unwrap();
        let lines = kernel.lines().join("\n");
        assert!(lines.contains(&format!("attach({}, ", tree.as_raw_fd())), "{lines}");
        assert!(!lines.contains("clone_tree"), "{lines}");
        assert!(rustix::io::fcntl_getfd(tree).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }
}

#[test]
fn what_is_made_in_it_belongs_to_who_is_seen_as_its_maker() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    chown(directory.path(), Some(7), Some(7)).unwrap();
    let trees = create_mounts(&mut [step(directory.path(), maps(7, 0), false, 0)]).unwrap();
    let flags = OFlags::CREATE | OFlags::WRONLY;
    rustix::fs::openat(&trees[0], "made", flags, Mode::RUSR).unwrap();
    let made = std::fs::metadata(directory.path().join("made")).unwrap();
    assert_eq!((made.uid(), made.gid()), (7, 7));
}

#[test]
fn what_the_kernel_does_not_map_is_reported_with_what_to_do() {
    if !jobc_test_skip::is_root() {
        return;
    }
    insta::assert_snapshot!([check("/proc", false), check("/proc", true), check("/nowhere", false)].concat());
}

/// The kernel uses one error number for this and for a missing capability; the mount's own line distinguishes them.
#[test]
fn a_mount_that_shows_other_owners_is_known() {
    let file = File::open("/proc/self/mountinfo").unwrap();
    let id = mount_id(file.as_fd()).unwrap();
    let line =
        |id: &str, options: &str| format!("{id} 20 8:1 / /data {options} shared:1 - ext4 /dev/sda rw\n");
    let table = line("1", "rw,idmapped") + &line(&id, "rw,relatime");
    assert_eq!(shows_others(&table, &id), Some(false));
    assert_eq!(shows_others(&table, "1"), Some(true));
    assert_eq!(shows_others(&table, "2"), None);
}

#[test]
fn a_spare_copy_is_made_of_what_is_there_and_used_where_the_way_is_barred() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let spare = |path: &Path| {
        let mut step = step(path, maps(0, 1000), true, 0);
        if let Operation::Mount(Mount { source: Source::Bind { copy, .. }, .. }) = &mut step.operation {
            *copy =
                Some(TreeCopy::Spare { propagation: linux_raw_sys::general::MS_PRIVATE.into(), tree: -1 });
        }
        step
    };
    let mut steps = [spare(directory.path()), spare(&directory.path().join("none"))];
    let made = create_mounts(&mut steps).expect("what is wrong with a path is found out later");
    assert_eq!(made.len(), 1);
    let of = |step: &Step| match &step.operation {
        Operation::Mount(mount) => match &mount.source {
            Source::Bind { copy: Some(TreeCopy::Spare { tree, .. }), .. } => *tree,
            _ => unreachable!("it was made so"),
        },
        _ => unreachable!("it was made so"),
    };
    assert_eq!([of(&steps[0]), of(&steps[1])], [made[0].as_raw_fd(), -1]);
}
