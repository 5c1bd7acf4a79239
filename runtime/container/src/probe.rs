//! Tries what the host allows in a separate process, so that everything that is created ends with it.
//!
//! A test is a list of comma-separated steps, such as `user,mount,overlay`: a user namespace, in it a mount namespace,
//! in that an overlay. Each step changes this process, so the next one builds on it. Mounts are made only after the
//! step `mount`, which makes them private (mount_namespaces(7)).

use std::ffi::{CString, OsString};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::{Access, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_change, move_mount,
};
use rustix::thread::UnshareFlags;

use crate::cgroup::{CgroupRequest, Group, Interface, Layout, Plan};
use crate::config::read::read_typed;
use jobc_sys::host::needs_user_namespace;
use jobc_sys::id_map::IdMaps;

/// The word that makes this program run the steps of one probe: `jobc probe-host STEPS`.
pub const COMMAND: &str = "probe-host";

/// The command to which the steps of a probe are added: this program, even if its path has changed.
pub fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND);
    command
}

/// The main function of the process whose first argument is [`COMMAND`]: prints the output of the steps, or the error.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(steps), None) = (words.next(), words.next()) else {
        eprintln!("jobc: this command is internal: only `jobc` starts it");
        return ExitCode::from(2);
    };
    match run(&steps.to_string_lossy(), &mut command) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The mount point of the tests: a directory that every host has. It is covered only in the test's own mount namespace.
const MOUNT_POINT: &str = "/tmp";

/// Runs steps: their output, or which one failed and why.
///
/// Changes the process it runs in for good, which must have one thread (unshare(2) wants that for a user namespace).
/// `again` is the command that leads back here with other steps.
pub fn run(steps: &str, again: &mut dyn FnMut() -> Command) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = steps;
    let mut private = false;
    while !rest.is_empty() {
        let (step, after) = rest.split_once(',').unwrap_or((rest, ""));
        rest = after;
        let failed = |why: String| format!("{step}: {why}");
        match step {
            // A PID namespace holds the children of the process that created it, so a child continues.
            "pid" => {
                unshare(UnshareFlags::NEWPID).map_err(failed)?;
                let mounts = if private { "private," } else { "" };
                return child(again().arg(format!("first,{mounts}{rest}"))).map(|more| text + &more);
            }
            "first" if std::process::id() != 1 => {
                return Err(failed(format!("the first process has PID {}", std::process::id())));
            }
            "time-at-exec" => {
                unshare(UnshareFlags::NEWTIME).map_err(failed)?;
                let made = namespace("time_for_children").map_err(failed)?;
                let error = again().arg(format!("in-time={made},{rest}")).exec();
                return Err(failed(error.to_string()));
            }
            // The process that made the pid namespace has made its mounts private already.
            "private" => private = true,
            _ if !private && mounts(step) => {
                return Err(failed(
                    "only after the step `mount`: otherwise it would be mounted for all processes".to_owned(),
                ));
            }
            _ => {
                text += &run_step(step, again).map_err(failed)?;
                private |= step == "mount";
            }
        }
    }
    Ok(text)
}

/// Whether a step mounts something.
fn mounts(step: &str) -> bool {
    let name = step.split('=').next().unwrap_or(step);
    matches!(name, "tmpfs" | "proc" | "sysfs" | "mqueue" | "devpts" | "overlay" | "user-overlay")
}

/// Runs one step.
fn run_step(step: &str, again: &mut dyn FnMut() -> Command) -> Result<String, String> {
    let silent = String::new();
    if let Some(path) = step.strip_prefix("place=") {
        return nearest_directory(Path::new(path));
    }
    if let Some(path) = step.strip_prefix("overlay=") {
        return overlay_over(Path::new(path), &[]).map(|()| silent);
    }
    if let Some(path) = step.strip_prefix("user-overlay=") {
        return overlay_over(Path::new(path), &[("userxattr", "")]).map(|()| silent);
    }
    if let Some(controllers) = step.strip_prefix("limits=") {
        return limits(controllers);
    }
    if let Some(made) = step.strip_prefix("in-time=") {
        let now = namespace("time")?;
        return if now == made { Ok(silent) } else { Err("not switched at execve".to_owned()) };
    }
    match step {
        "user" => user(),
        "user-range" => user_range(again),
        "user-wait" => user_wait(),
        "mount" => {
            unshare(UnshareFlags::NEWNS)?;
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).map_err(describe_errno)
        }
        "host-name" => {
            let name = rustix::system::uname().nodename().to_bytes().to_vec();
            rustix::system::sethostname(&name).map_err(describe_errno)
        }
        "ipc" => unshare(UnshareFlags::NEWIPC),
        "uts" => unshare(UnshareFlags::NEWUTS),
        "cgroup" => unshare(UnshareFlags::NEWCGROUP),
        "net" => unshare(UnshareFlags::NEWNET),
        "time" => unshare(UnshareFlags::NEWTIME),
        "tmpfs" => mount_new("tmpfs", &[("mode", "755")], MOUNT_POINT),
        "proc" => mount_new("proc", &[], MOUNT_POINT),
        "sysfs" => mount_new("sysfs", &[], MOUNT_POINT),
        "mqueue" => mount_new("mqueue", &[], MOUNT_POINT),
        "devpts" => mount_new("devpts", &[("newinstance", ""), ("ptmxmode", "0666")], MOUNT_POINT),
        "overlay" => overlay(),
        "trampoline" => trampoline(again),
        "first" => Ok(()),
        _ => Err("no such step".to_owned()),
    }?;
    Ok(silent)
}

fn describe_errno(errno: Errno) -> String {
    jobc_sys::error::describe(errno)
}

fn describe_io_error(error: &std::io::Error) -> String {
    Errno::from_io_error(error).map_or_else(|| error.to_string(), describe_errno)
}

fn unshare(flags: UnshareFlags) -> Result<(), String> {
    // The form that is not deprecated is unsafe for the sake of CLONE_FILES, which no step asks for.
    #[expect(deprecated)]
    rustix::thread::unshare(flags).map_err(describe_errno)
}

/// A user namespace in which this user is root, and the only one (user_namespaces(7)).
fn user() -> Result<(), String> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    unshare(UnshareFlags::NEWUSER)?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", &format!("0 {gid} 1"))
}

/// A user namespace with the range that /etc/subuid and /etc/subgid grant, mapped by newuidmap(1) and newgidmap(1).
fn user_range(again: &mut dyn FnMut() -> Command) -> Result<(), String> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    let maps = IdMaps::rootless(uid, gid).map_err(|error| error.message())?;
    if maps.users.extents().len() < 2 {
        return Err("no range, or no program to map it".to_owned());
    }
    let mut waiting = again()
        .arg("user-wait")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| describe_io_error(&error))?;
    let mut ready = [0; 6];
    let is_ready = waiting.stdout.take().is_some_and(|mut out| out.read_exact(&mut ready).is_ok());
    let mapped = if is_ready {
        maps.write(waiting.id()).map_err(|error| error.message())
    } else {
        Err("no user namespace".to_owned())
    };
    drop(waiting.stdin.take());
    let ended = waiting.wait().map_err(|error| describe_io_error(&error))?;
    mapped?;
    if ended.success() { Ok(()) } else { Err("no range".to_owned()) }
}

/// A user namespace that waits until its ids are mapped, and checks whether more than one id was mapped.
fn user_wait() -> Result<(), String> {
    unshare(UnshareFlags::NEWUSER)?;
    let mut out = std::io::stdout();
    out.write_all(b"ready\n").and_then(|()| out.flush()).map_err(|error| describe_io_error(&error))?;
    std::io::stdin().read_to_end(&mut vec![]).map_err(|error| describe_io_error(&error))?;
    let lines = |file| fs::read_to_string(file).unwrap_or_default().lines().count();
    let ranges = ["/proc/self/uid_map", "/proc/self/gid_map"].map(lines);
    if ranges.iter().all(|&lines| lines > 1) { Ok(()) } else { Err("not mapped".to_owned()) }
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {}", describe_io_error(&error)))
}

/// The identity of a namespace of this process, such as `time:[4026531834]`.
fn namespace(name: &str) -> Result<String, String> {
    let link = fs::read_link(format!("/proc/self/ns/{name}")).map_err(|error| describe_io_error(&error))?;
    Ok(link.to_string_lossy().into_owned())
}

/// Continues in a child, whose output and exit status become this process's.
fn child(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| describe_io_error(&error))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(output.stdout));
    }
    let why = text(output.stderr);
    Err(if why.is_empty() { format!("the child ended with {}", output.status) } else { why })
}

/// Mounts a new file system the way containers do: fsopen(2), fsmount(2), move_mount(2).
fn mount_new(kind: &str, options: &[(&str, &str)], target: &str) -> Result<(), String> {
    let place =
        rustix::fs::open(target, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(describe_errno)?;
    let mount = detached_mount(kind, options).map_err(describe_errno)?;
    attach(&mount, &place).map_err(describe_errno)
}

fn detached_mount(kind: &str, options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let fs = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            rustix::mount::fsconfig_set_flag(fs.as_fd(), *key)?;
        } else {
            fsconfig_set_string(fs.as_fd(), *key, *value)?;
        }
    }
    fsconfig_create(fs.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn attach(mount: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.as_fd(), "", place.as_fd(), "", flags)
}

/// An overlay on a tmpfs: a file of the lower layer is changed and removed through it, which needs both a copy up and a
/// whiteout (Documentation/filesystems/overlayfs.rst).
fn overlay() -> Result<(), String> {
    mount_new("tmpfs", &[("mode", "755")], MOUNT_POINT)?;
    let path = |name: &str| format!("{MOUNT_POINT}/{name}");
    let made = ["lower", "upper", "work", "merged"].iter().try_for_each(|name| fs::create_dir(path(name)));
    made.and_then(|()| fs::write(path("lower/kept"), "lower"))
        .and_then(|()| fs::write(path("lower/gone"), "lower"))
        .map_err(|error| describe_io_error(&error))?;
    let [lower, upper, work] = ["lower", "upper", "work"].map(path);
    let options = [("lowerdir", &*lower), ("upperdir", &*upper), ("workdir", &*work)];
    mount_new("overlay", &options, &path("merged"))?;
    let changed = fs::write(path("merged/kept"), "upper").and_then(|()| fs::remove_file(path("merged/gone")));
    changed.map_err(|error| format!("writing through it: {}", describe_io_error(&error)))?;
    let lower = fs::read_to_string(path("lower/kept")).map_err(|error| describe_io_error(&error))?;
    let upper = fs::read_to_string(path("upper/kept")).map_err(|error| describe_io_error(&error))?;
    if (&*lower, &*upper) == ("lower", "upper") { Ok(()) } else { Err("it mixes its layers".to_owned()) }
}

/// An overlay over a directory of the host, as a container's root is one over layers: not every file system may be
/// below one.
fn overlay_over(lower: &Path, more: &[(&str, &str)]) -> Result<(), String> {
    // By its file descriptor, because it may lie below the tmpfs.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let lower = rustix::fs::open(lower, flags, Mode::empty()).map_err(describe_errno)?;
    let lower = format!("/proc/self/fd/{}", lower.as_raw_fd());
    mount_new("tmpfs", &[("mode", "755")], MOUNT_POINT)?;
    let path = |name: &str| format!("{MOUNT_POINT}/{name}");
    let made = ["upper", "work", "merged"].iter().try_for_each(|name| fs::create_dir(path(name)));
    made.map_err(|error| describe_io_error(&error))?;
    let [upper, work] = ["upper", "work"].map(path);
    let options = [("lowerdir", &*lower), ("upperdir", &*upper), ("workdir", &*work)];
    mount_new("overlay", &[&options[..], more].concat(), &path("merged"))?;
    fs::write(path("merged/.written"), "")
        .map_err(|error| format!("writing through it: {}", describe_io_error(&error)))
}

/// Starts this program again the way containers start theirs: through a sealed executable in memory.
fn trampoline(again: &mut dyn FnMut() -> Command) -> Result<(), String> {
    use crate::trampoline::birth::ProgramProcess;
    // A path would be looked up again; this link refers to the running file.
    let program =
        CString::new(format!("/proc/{}/exe", std::process::id())).map_err(|error| error.to_string())?;
    let image = crate::trampoline::build(&[program], None, None, 2, None, ProgramProcess::Same)
        .map_err(|error| error.message())?;
    let mut command = Command::new(format!("/proc/self/fd/{}", image.as_raw_fd()));
    child(command.args(again().get_args()).arg("")).map(drop)
}

/// The cgroups that a container with some limits would get, a line each; nothing is made.
///
/// If a limit could not be set, the second line of the error has the fix.
fn limits(controllers: &str) -> Result<String, String> {
    let words =
        |error: jobc_sys::Error| format!("{}\n{}", error.message(), error.advice().unwrap_or_default());
    let mut resources = serde_json::json!({});
    for name in controllers.split('+').filter(|name| !name.is_empty()) {
        let (section, field, value) = match name {
            "memory" => ("memory", "limit", serde_json::json!(1 << 30)),
            "pids" => ("pids", "limit", serde_json::json!(1024)),
            "cpu" => ("cpu", "shares", serde_json::json!(512)),
            "cpuset" => ("cpu", "cpus", serde_json::json!("0")),
            _ => return Err(format!("no limit `{name}`")),
        };
        resources[section][field] = value;
    }
    let (resources, _) =
        read_typed(resources.to_string().as_bytes()).map_err(|(error, _)| error.to_string())?;
    let user_namespace = needs_user_namespace();
    let request = CgroupRequest {
        id: "doctor",
        resources: Some(&resources),
        user_namespace,
        ..CgroupRequest::default()
    };
    let plan = Layout::detect().and_then(|layout| Plan::of(&layout, &request)).map_err(words)?;
    let line = |group: &Group| match &group.interface {
        Interface::V1(_) => format!("v1 {}\n", group.directory().display()),
        Interface::V2 => format!("v2 {}\n", group.directory().display()),
    };
    Ok(plan.groups.iter().map(line).collect())
}

/// What a directory that may not exist yet would offer: its nearest existing parent, whether that is writable, its free
/// bytes and its file system's magic number, one per line.
fn nearest_directory(path: &Path) -> Result<String, String> {
    let near = path.ancestors().find(|near| near.exists()).ok_or("no parent directory exists")?;
    let writable = rustix::fs::accessat(CWD, near, Access::WRITE_OK, rustix::fs::AtFlags::EACCESS).is_ok();
    let space = rustix::fs::statvfs(near).map_err(describe_errno)?;
    let kind = rustix::fs::statfs(near).map_err(describe_errno)?.f_type;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    Ok(format!("{}\n{writable}\n{free}\n{kind:#x}\n", near.display()))
}
