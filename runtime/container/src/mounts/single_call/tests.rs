use super::*;
use crate::child::path::{ContainerPath, TargetKind};
use crate::child::report::Report;
use jobc_sys::syscall::record::RecordingKernel;

fn parameter(key: &CStr, value: &CStr) -> Parameter {
    (key.to_owned(), (!value.is_empty()).then(|| value.to_owned()))
}

/// A mount at `place` of the container, and whether one call creates it in a separate /dev.
fn check(place: &str, kind: &CStr, parameters: &[Parameter], attributes: u32) -> Option<String> {
    let mount = Mount {
        target: ContainerPath::new(place.as_ref()).unwrap(),
        target_kind: TargetKind::Directory,
        source: Source::New { kind: kind.to_owned(), parameters: parameters.to_vec(), copy_up: false },
        attributes: MountAttributes { set: attributes.into(), ..MountAttributes::default() },
        recursive_attributes: None,
        propagation: vec![],
    };
    let (kernel, report) = (RecordingKernel::default(), Report::new());
    let mut child = Child::new(&kernel, &report, false);
    child.own_dev = Some(7);
    let done = mount_in_own_dev(&mount, &mut child).unwrap();
    let lines = kernel.lines();
    assert_eq!(done, !lines.is_empty(), "{lines:?}");
    done.then(|| lines.join("\n"))
}

const PLAIN: u32 = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

#[test]
fn a_usual_mount_below_dev_is_one_call() {
    let parameters =
        [parameter(c"source", c"shm"), parameter(c"mode", c"1777"), parameter(c"size", c"65536k")];
    insta::assert_snapshot!(check("/dev/shm", c"tmpfs", &parameters, PLAIN).unwrap());
}

#[test]
fn what_text_cannot_express_goes_by_file_descriptor() {
    let plain = [parameter(c"mode", c"1777")];
    assert!(check("/dev/shm", c"tmpfs", &plain, PLAIN).is_some());
    assert_eq!(check("/dev/a/shm", c"tmpfs", &plain, PLAIN), None, "a directory that need not be ours");
    assert_eq!(check("/run", c"tmpfs", &plain, PLAIN), None, "a directory of the image");
    assert_eq!(check("/dev/net", c"nfs", &[], PLAIN), None);
    assert_eq!(check("/dev/shm", c"tmpfs", &[parameter(c"ro", c"")], PLAIN), None, "a flag of mount(2)");
    assert_eq!(check("/dev/shm", c"tmpfs", &[parameter(c"size", c"1,mode=777")], PLAIN), None);
    let long = std::ffi::CString::new("9".repeat(MAX_DATA_LEN)).unwrap();
    assert_eq!(check("/dev/shm", c"tmpfs", &[parameter(c"size", &long)], PLAIN), None);
    let read_only = PLAIN | linux_raw_sys::general::MOUNT_ATTR_RDONLY;
    assert_eq!(check("/dev/shm", c"tmpfs", &plain, read_only), None);
}

#[test]
fn a_name_that_was_there_before_is_not_mounted_upon_by_name() {
    let mount = Mount {
        target: ContainerPath::new("/dev/shm".as_ref()).unwrap(),
        target_kind: TargetKind::Directory,
        source: Source::New { kind: c"tmpfs".to_owned(), parameters: vec![], copy_up: false },
        attributes: MountAttributes::default(),
        recursive_attributes: None,
        propagation: vec![],
    };
    let kernel = RecordingKernel::default().failing(0, Errno::EXIST);
    let report = Report::new();
    let mut child = Child::new(&kernel, &report, false);
    child.own_dev = Some(7);
    assert_eq!(mount_in_own_dev(&mount, &mut child), Ok(false));
    assert_eq!(kernel.lines().len(), 1);
}
