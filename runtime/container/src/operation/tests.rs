use std::ffi::CStr;
use std::os::fd::AsRawFd as _;

use serde_json::{Value, json};

use rustix::io::Errno;

use super::*;
use crate::bundle::Bundle;
use crate::child::report::Report;
use crate::config::Config;
use crate::options::Options;
use crate::prepare::prepare;
use crate::root::Root;
use jobc_sys::host::Host;
use jobc_sys::syscall::record::RecordingKernel;

/// Root on a kernel of today.
const MACHINE: Host = Host {
    permitted: (1 << 41) - 1,
    bounding: (1 << 41) - 1,
    ignored_signals: 1 << 12,
    in_user_namespace: false,
    only_ids: Some((0, 0)),
};

/// A bundle that asks for a bit of everything; `change` is laid over it.
fn bundle(change: &Value) -> Bundle {
    let mut config = json!({
        "ociVersion": "1.1.0",
        "root": {"path": "rootfs", "readonly": true},
        "hostname": "train-0",
        "process": {
            "args": ["true"], "cwd": "/work", "env": ["PATH=/bin:/usr/bin"], "noNewPrivileges": true,
            "user": {"uid": 1000, "gid": 100, "additionalGids": [44]},
            "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 4096}],
            "capabilities": {"bounding": ["CAP_KILL"], "effective": ["CAP_KILL"], "permitted": ["CAP_KILL"]}
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "size=65536k"]},
            {"destination": "/data", "type": "bind", "source": "/srv/data", "options": ["rbind", "ro", "nodev"]}
        ],
        "linux": {
            "namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}, {"type": "network"}, {"type": "cgroup"}],
            "maskedPaths": ["/proc/kcore", "/proc/acpi", "/proc/scsi"],
            "readonlyPaths": ["/proc/sys"],
            "sysctl": {"net.core.somaxconn": "256"}
        }
    });
    merge(&mut config, change);
    let text = config.to_string().into_bytes();
    let config = Config::read(&text).unwrap();
    // CHECK
    Bundle { dir: "/bundle".into(), config, text, linkless: std::collections::BTreeSet::new() }
}

/// Lays one value over another: objects member by member, anything else as a whole.
fn merge(base: &mut Value, change: &Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change.clone(),
    }
}

fn steps(change: &Value) -> Vec<Step> {
    let root = Root::Directory("/bundle/rootfs".into());
    prepare(&bundle(change), &root, &mut Options::default(), &MACHINE, None).unwrap().steps
}

fn machine() -> RecordingKernel {
    RecordingKernel::default().file("kcore").missing("scsi").missing("data")
}

/// Carries the steps out on a double of the kernel.
fn carry_out(steps: &[Step], kernel: &RecordingKernel) -> Result<(), Errno> {
    let report = Report::new();
    let mut child = Child::new(kernel, &report, false);
    steps.iter().try_for_each(|step| step.operation.carry_out(&mut child))
}

/// Shows the steps, each with its place and the calls it makes.
fn check(name: &str, change: &Value) {
    let steps = steps(change);
    let kernel = machine();
    let report = Report::new();
    let mut child = Child::new(&kernel, &report, false);
    let mut shown = format!("{change}\n\n");
    for step in &steps {
        let before = kernel.lines().len();
        step.operation.carry_out(&mut child).unwrap();
        shown.push_str(&format!("{}", step.operation));
        if let Some(place) = &step.pointer {
            shown.push_str(&format!("  <- {place}"));
        }
        shown.push('\n');
        for line in &kernel.lines()[before..] {
            shown.push_str(&format!("    {line}\n"));
        }
    }
    insta::assert_snapshot!(name, shown);
}

#[test]
fn a_start_is_a_list_of_steps() {
    check("a_start", &json!({}));
}

/// Shows the dry run of a bundle with this change, except the steps between the namespaces and the hooks.
fn check_listing(name: &str, change: &Value) {
    let bundle = bundle(change);
    let root = Root::Directory("/bundle/rootfs".into());
    let prepared = prepare(&bundle, &root, &mut Options::default(), &MACHINE, None).unwrap();
    let lines =
        crate::prepare::listing::listing(vec!["make the cgroup `/g`".into()], &prepared, &bundle.config.spec);
    let of_namespaces = |step: &&Step| matches!(step.operation, Operation::Unshare(_));
    let usual = steps(&json!({}));
    let usual: Vec<String> =
        usual.iter().filter(|step| !of_namespaces(step)).map(|step| step.operation.to_string()).collect();
    let mut shown = format!("{change}\n\n");
    for line in lines.iter().filter(|line| !usual.contains(&line.text)) {
        shown.push_str(&format!("{line}\n"));
    }
    insta::assert_snapshot!(name, shown);
}

#[test]
fn a_listing_has_namespaces_filter_and_hooks_at_their_places() {
    let hooks = ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];
    let hooks: Value = hooks.iter().map(|stage| (stage.to_string(), json!([{"path": "/bin/sh"}]))).collect();
    let seccomp = json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["read", "write", "exit_group"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["mount"], "action": "SCMP_ACT_KILL_PROCESS"}
    ]});
    check_listing("a_listing", &json!({"hooks": hooks, "linux": {"seccomp": seccomp}}));
    // With the host's pid and ipc namespaces, and a filter that must be loaded as long as there is the right to.
    let namespaces = json!([
        {"type": "mount"}, {"type": "uts"}, {"type": "pid", "path": "/proc/self/ns/pid"},
        {"type": "ipc", "path": "/proc/self/ns/ipc"}, {"type": "network"}
    ]);
    check_listing(
        "a_listing_that_joins",
        &json!({"process": {"noNewPrivileges": false}, "linux": {"namespaces": namespaces, "seccomp": seccomp}}),
    );
}

/// A change of the user takes two steps: the change itself, and setting the parent-death signal again.
#[test]
fn an_unchanged_user_is_not_set_again() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let check = |user: &Value, users: bool| {
        let namespaces = ["pid", "mount", "uts", "network", if users { "user" } else { "ipc" }]
            .map(|kind| json!({"type": kind}));
        let ids = json!([{"containerID": 0, "hostID": 100_000, "size": 65536}]);
        let maps = if users { ids } else { Value::Null };
        let change = json!({
            "process": {"user": user},
            "linux": {"namespaces": namespaces, "uidMappings": maps, "gidMappings": maps}
        });
        let mut options = Options { end_with_parent: true, ..Options::default() };
        let root = Root::Directory("/bundle/rootfs".into());
        let steps = prepare(&bundle(&change), &root, &mut options, &MACHINE, None).unwrap().steps;
        let count = |of: fn(&Operation) -> bool| steps.iter().filter(|step| of(&step.operation)).count();
        (
            count(|operation| matches!(operation, Operation::BecomeUser { .. })),
            count(|operation| matches!(operation, Operation::SetParentDeathSignal(true))),
        )
    };
    let root = json!({"uid": 0, "gid": 0, "additionalGids": []});
    assert_eq!(check(&root, false), (0, 1));
    assert_eq!(check(&root, true), (1, 2), "it has no ids in a new user namespace");
    assert_eq!(check(&json!({"uid": 0, "gid": 0, "additionalGids": [44]}), false), (1, 2));
    assert_eq!(check(&json!({"uid": 0, "gid": 5, "additionalGids": []}), false), (1, 2));
    assert_eq!(check(&json!({"uid": 1000, "gid": 0, "additionalGids": []}), false), (1, 2));
}

#[test]
fn a_source_that_must_have_no_links_is_opened_without_following_any() {
    let root = Root::Directory("/bundle/rootfs".into());
    for linkless in [false, true] {
        let mut bundle = bundle(&json!({}));
        bundle.linkless.extend(linkless.then(|| "/data".into()));
        let prepared = prepare(&bundle, &root, &mut Options::default(), &MACHINE, None).unwrap();
        let kernel = machine();
        carry_out(&prepared.steps, &kernel).unwrap();
        let lines = kernel.lines();
        let line = lines.iter().find(|line| line.starts_with("open") && line.contains("/srv/data")).unwrap();
        assert_eq!(line.contains("NO_SYMLINKS"), linkless, "{line}");
    }
}

#[test]
fn an_older_kernel_makes_paths_read_only_by_two_calls() {
    let steps = ["/proc/sys", "/proc/bus"].map(|path| Step {
        operation: Operation::MakeReadOnly(ContainerPath::new(path.as_ref()).unwrap()),
        pointer: None,
    });
    for refusal in [Errno::NOSYS, Errno::PERM] {
        let kernel = RecordingKernel::default().failing(1, refusal);
        carry_out(&steps, &kernel).unwrap();
        let calls: Vec<String> =
            kernel.lines().iter().filter_map(|line| Some(line.split_once('(')?.0.to_owned())).collect();
        let two = ["clone_tree", "mount_setattr", "attach", "close", "close"];
        let expected = [&["open", "clone_tree_changed"][..], &two, &["open"], &two].concat();
        assert_eq!(calls, expected, "asked for once");
    }
}

#[test]
fn a_terminal_is_opened_in_the_containers_own_devpts() {
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let change = json!({"process": {"terminal": true, "consoleSize": {"height": 24, "width": 80}}});
    let mut options = Options { console: Some(socket.into()), ..Options::default() };
    let root = Root::Directory("/bundle/rootfs".into());
    let prepared = prepare(&bundle(&change), &root, &mut options, &MACHINE, None).unwrap();
    let kernel = machine();
    carry_out(&prepared.steps, &kernel).unwrap();
    let lines = kernel.lines();
    let from = lines.iter().position(|line| line.starts_with("open") && line.contains("pts/ptmx")).unwrap();
    let to = lines.iter().position(|line| line.starts_with("dup_to") && line.ends_with("2)")).unwrap();
    let socket = format!("({}, ", prepared.descriptors[0].as_raw_fd());
    let shown: Vec<String> = lines[from..=to].iter().map(|line| line.replace(&socket, "(SOCKET, ")).collect();
    insta::assert_snapshot!("a_terminal", shown.join("\n"));
}

/// No step continues after a failed call: an error of the kernel ends the start.
#[test]
fn any_refused_call_ends_the_start() {
    let steps = steps(&json!({}));
    let whole = machine();
    carry_out(&steps, &whole).unwrap();
    let counted =
        whole.lines().iter().filter(|line| !line.starts_with("close(") && !line.starts_with("umask")).count();
    assert!(counted > 100, "{counted} calls");
    for call in 0..counted {
        let kernel = machine().failing(call, Errno::IO);
        let refused = carry_out(&steps, &kernel);
        assert_eq!(refused, Err(Errno::IO), "call {call}: {:?}", kernel.lines().last());
    }
}

/// A path to hide that does not exist is not an error; any other failure is.
#[test]
fn only_a_missing_path_needs_no_hiding() {
    let steps = steps(&json!({}));
    let whole = machine();
    carry_out(&steps, &whole).unwrap();
    let lines = whole.lines();
    let counted: Vec<&String> =
        lines.iter().filter(|line| !line.starts_with("close(") && !line.starts_with("umask")).collect();
    let kcore = counted.iter().position(|line| line.contains("\"kcore\"")).unwrap();
    for (errno, expected) in
        [(Errno::NOENT, Ok(())), (Errno::NOTDIR, Ok(())), (Errno::ACCESS, Err(Errno::ACCESS))]
    {
        assert_eq!(carry_out(&steps, &machine().failing(kcore, errno)), expected);
    }
}

/// A name that this architecture lacks is only worth a warning if the default would allow its call.
#[test]
fn unknown_calls_are_reported_where_the_default_allows_them() {
    let output = |default: &str, rule: &str| {
        let names = json!([{"names": ["read", "no_such_call"], "action": rule}]);
        let change = json!({"linux": {"seccomp": {"defaultAction": default, "syscalls": names}}});
        let root = Root::Directory("/bundle/rootfs".into());
        prepare(&bundle(&change), &root, &mut Options::default(), &MACHINE, None).unwrap().warnings
    };
    assert_eq!(output("SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW"), Vec::<String>::new());
    let report = output("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO");
    assert!(report.len() == 1 && report[0].contains("`no_such_call`"), "{report:?}");
}

#[test]
fn only_pipes_are_given_to_the_user() {
    let kernel = machine();
    let opened = |path| kernel.open(0, path, OFlags::RDWR, Mode::empty(), ResolveFlags::empty()).unwrap();
    let (null, pipe) = (opened(c"/dev/null"), opened(c"/pipe"));
    let streams = Operation::SetStreams { streams: [null, pipe, pipe], owner: 1000 };
    carry_out(&[Step { operation: streams, pointer: None }], &kernel).unwrap();
    let given: Vec<String> = kernel.lines().into_iter().filter(|line| line.starts_with("fchown")).collect();
    assert_eq!(given, [format!("fchown({pipe}, 1000, 0)"), format!("fchown({pipe}, 1000, 0)")]);
}

#[test]
fn files_are_given_to_the_user_where_a_caller_of_the_runtime_expects_it() {
    for files in [false, true] {
        let kernel = machine().file("/log");
        let log = kernel.open(0, c"/log", OFlags::RDWR, Mode::empty(), ResolveFlags::empty()).unwrap();
        super::give_stream(&kernel, log, 1000, files).unwrap();
        let is_given = kernel.lines().contains(&format!("fchown({log}, 1000, 0)"));
        assert_eq!(is_given, files);
    }
}

#[test]
fn a_directory_is_not_a_program() {
    let find = |paths: &[&CStr], kernel: &RecordingKernel| {
        find_program(kernel, &paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    };
    let kernel = RecordingKernel::default().file("/bin/tool");
    assert_eq!(find(&[c"/etc"], &kernel), Err(Errno::ACCESS));
    assert_eq!(find(&[c"/etc", c"/bin/tool"], &kernel), Ok(()));
    assert_eq!(find(&[], &kernel), Err(Errno::NOENT));
}
