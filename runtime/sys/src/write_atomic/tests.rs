use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use super::*;

/// The next step of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Lock,
    Write,
    Sync,
    Rename,
    SyncDirectory,
    End,
}

const STEPS: [Step; 6] =
    [Step::Create, Step::Lock, Step::Write, Step::Sync, Step::Rename, Step::SyncDirectory];

/// A writer as a separate process: what to write, and the step at which it is killed.
const TARGET: &str = "JOBC_TEST_WRITE_TO";
const KILLED_AT: &str = "JOBC_TEST_KILLED_AT";
const DURABILITY: &str = "JOBC_TEST_DURABILITY";

const OLD: &str = "old and longer";
const NEW: &str = "new";

thread_local! {
    static FAILING: Cell<Option<(Step, Errno)>> = const { Cell::new(None) };
}

/// Kills this process, or fails, where a test wants that.
pub(super) fn reach(step: Step) -> io::Result<()> {
    if std::env::var(KILLED_AT).is_ok_and(|at| at == format!("{step:?}")) {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    }
    match FAILING.get() {
        Some((at, errno)) if at == step => Err(errno.into()),
        _ => Ok(()),
    }
}

/// A directory with a file.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    fs::write(&target, OLD).unwrap();
    (directory, target)
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// This test program as another process that runs [`a_process_of_its_own_writes`].
fn writer(target: &Path, durability: Durability) -> Command {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", &format!("{module}::a_process_of_its_own_writes")]);
    command.env(TARGET, target).env(DURABILITY, format!("{durability:?}"));
    command
}

#[test]
#[ignore = "run by other tests, as another process"]
fn a_process_of_its_own_writes() {
    let target = std::env::var_os(TARGET).unwrap();
    let durability = match &*std::env::var(DURABILITY).unwrap() {
        "Disk" => Durability::Disk,
        _ => Durability::Rename,
    };
    write_atomic(Path::new(&target), NEW.as_bytes(), 0o600, durability).unwrap();
}

#[test]
fn a_kill_at_any_step_leaves_the_old_content_or_the_new() {
    for durability in [Durability::Rename, Durability::Disk] {
        for step in STEPS.into_iter().chain([Step::End]) {
            let never = durability == Durability::Rename && matches!(step, Step::Sync | Step::SyncDirectory);
            if never {
                continue;
            }
            let (directory, target) = place();
            let output = writer(&target, durability).env(KILLED_AT, format!("{step:?}")).output().unwrap();
            assert_eq!(output.status.signal(), Some(9), "{durability:?}, {step:?}: {output:?}");
            let expected = if matches!(step, Step::SyncDirectory | Step::End) { NEW } else { OLD };
            assert_eq!(fs::read_to_string(&target).unwrap(), expected, "{durability:?}, {step:?}");
            assert!(names(directory.path()).len() <= 2, "{:?}", names(directory.path()));
            write_atomic(&target, b"next", 0o600, durability).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), "next", "{durability:?}, {step:?}");
            assert_eq!(names(directory.path()), ["target"], "{durability:?}, {step:?}: nothing is left");
        }
    }
}

#[test]
fn a_killed_writer_whose_directory_is_locked_by_the_next_is_cleaned_up_too() {
    let (directory, target) = place();
    writer(&target, Durability::Rename).env(KILLED_AT, "Rename").output().unwrap();
    assert_eq!(names(directory.path()), [".target.jobc-0", "target"]);
    let open = fs::File::open(directory.path()).unwrap();
    let mut file = AtomicFile::create_alone_in(std::os::fd::AsFd::as_fd(&open), "target", 0o600).unwrap();
    file.write_all(NEW.as_bytes()).unwrap();
    file.commit(Durability::Rename).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), NEW);
    assert_eq!(names(directory.path()), ["target"]);
}

#[test]
fn a_step_that_fails_leaves_the_old_content_and_nothing_else() {
    for step in STEPS {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::IO] {
            let (directory, target) = place();
            FAILING.set(Some((step, errno)));
            let error = write_atomic(&target, NEW.as_bytes(), 0o600, Durability::Disk).unwrap_err();
            FAILING.set(None);
            assert_eq!(Errno::from_io_error(&error), Some(errno), "{step:?}");
            // Only the directory's own fsync comes after the rename.
            let expected = if step == Step::SyncDirectory { NEW } else { OLD };
            assert_eq!(fs::read_to_string(&target).unwrap(), expected, "{step:?}");
            assert!(step == Step::Lock || names(directory.path()) == ["target"], "{step:?}");
            write_atomic(&target, b"next", 0o600, Durability::Disk).unwrap();
            assert_eq!(names(directory.path()), ["target"], "{step:?}");
        }
    }
}

/// On a file system of 16 KiB, which only a mount namespace of this test has.
#[test]
fn a_full_disk_leaves_the_old_content() {
    let (directory, target) = place();
    let script = "mount -t tmpfs -o size=16k none \"$1\" && printf old >\"$2\" \
        && ! head -c 100000 /dev/zero >\"$1/filler\" 2>&1 && shift 2 && \"$@\"; \
        echo \"exit $?: $(cat \"$JOBC_TEST_WRITE_TO\"), $(ls -A \"${JOBC_TEST_WRITE_TO%/*}\" | tr '\\n' ' ')\"";
    let inner = writer(&target, Durability::Disk);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(directory.path()).arg(&target).arg(inner.get_program()).args(inner.get_args());
    command.env(TARGET, &target).env(DURABILITY, "Disk");
    let Ok(output) = command.output() else { return jobc_test_skip::skip("unshare") };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if err.starts_with("unshare:") || err.starts_with("mount:") {
        return jobc_test_skip::skip("user namespaces, and the right to mount a tmpfs");
    }
    assert!(out.contains("No space left on device") || err.contains("No space left on device"), "{out}{err}");
    assert!(out.ends_with("exit 101: old, filler target \n"), "{out}{err}");
}

#[test]
fn writers_of_one_file_do_not_meet() {
    let (directory, target) = place();
    let contents: Vec<String> = (0..8).map(|number| format!("{number}").repeat(10_000)).collect();
    std::thread::scope(|scope| {
        for content in &contents {
            scope.spawn(|| {
                for _ in 0..50 {
                    write_atomic(&target, content.as_bytes(), 0o600, Durability::Rename).unwrap();
                    assert!(contents.contains(&fs::read_to_string(&target).unwrap_or_default()));
                }
            });
        }
    });
    write_atomic(&target, NEW.as_bytes(), 0o600, Durability::Disk).unwrap();
    assert_eq!(names(directory.path()), ["target"]);
}

#[test]
fn a_file_that_another_is_writing_is_left_to_it() {
    let (directory, target) = place();
    let mut slow = AtomicFile::create(&target, 0o600).unwrap();
    slow.write_all(b"sl").unwrap();
    write_atomic(&target, NEW.as_bytes(), 0o600, Durability::Disk).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), NEW);
    slow.write_all(b"ow").unwrap();
    slow.commit(Durability::Disk).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "slow");
    assert_eq!(names(directory.path()), ["target"]);
    drop(AtomicFile::create(&target, 0o600).unwrap());
    assert_eq!(names(directory.path()), ["target"], "given up");
}

#[test]
fn what_others_have_put_in_the_way_is_neither_followed_nor_removed() {
    let (directory, target) = place();
    let at = |number: u32| directory.path().join(format!(".target.jobc-{number}"));
    fs::write(directory.path().join("precious"), "kept").unwrap();
    symlink("precious", at(0)).unwrap();
    fs::create_dir(at(1)).unwrap();
    write_atomic(&target, NEW.as_bytes(), 0o600, Durability::Disk).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), NEW);
    assert_eq!(fs::read_to_string(directory.path().join("precious")).unwrap(), "kept");
    assert_eq!(names(directory.path()), [".target.jobc-0", ".target.jobc-1", "precious", "target"]);
}

#[test]
fn a_link_is_replaced_and_a_long_name_is_no_trouble() {
    let (directory, target) = place();
    let link = directory.path().join("l".repeat(255));
    symlink("target", &link).unwrap();
    write_atomic(&link, NEW.as_bytes(), 0o640, Durability::Rename).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), OLD);
    let status = fs::symlink_metadata(&link).unwrap();
    assert!(status.is_file());
    assert_eq!(status.permissions().mode() & 0o777 & !0o040, 0o600, "less the umask");
    let error = write_atomic(Path::new("/"), b"", 0o600, Durability::Rename).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_file_that_is_written_takes_its_own_name() {
    let (directory, target) = place();
    let part = directory.path().join("part");
    fs::write(&part, NEW).unwrap();
    rename_to_disk(&fs::File::open(&part).unwrap(), &part, &target).unwrap();
    assert_eq!(
        (fs::read_to_string(&target).unwrap(), names(directory.path())),
        (NEW.to_owned(), vec!["target".to_owned()])
    );
}
