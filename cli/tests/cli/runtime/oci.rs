//! `jobc oci` as those who drive a runtime use it, on the host's own files.

use serde_json::{Value, json};
use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, Run, binary, command};

/// A directory with a bundle, whose program is a line for a shell; `None` without root.
pub(crate) fn bundle(script: &str, change: impl FnOnce(&mut Value)) -> Option<Directory> {
    if !jobc_test_skip::is_root() {
        return None;
    }
    let directory = Directory::new();
    let mut config = json!({
        "ociVersion": "1.1.0",
        "root": {"path": "rootfs"},
        "process": {"args": ["/bin/sh", "-c", script], "cwd": "/", "env": ["PATH=/usr/bin:/bin"], "user": {"uid": 0, "gid": 0}},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]}
        ],
        "annotations": {"dev.jobc.image": "host", "who": "a test"},
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}]}
    });
    // Tests run in parallel, each with its own state root; the cgroups are the host's.
    let own = directory.path().file_name().unwrap_or_default().trim_start_matches('.').to_owned();
    config["linux"]["cgroupsPath"] = json!(format!("/jobc/{own}"));
    change(&mut config);
    directory.write("config.json", &config.to_string());
    Some(directory)
}

/// Runs a script with `J` for `jobc oci` on a state root of the test's own, and `status ID` for a container's status.
fn script(directory: &Directory, lines: &str) -> Run {
    directory.bash(&format!(
        "J() {{ \"$JOBC\" oci --root state \"$@\"; }}
        status() {{ J state $1 | sed -n 's/.*\"status\": \"\\(.*\\)\".*/\\1/p'; }}
        until_is() {{ for i in $(seq 100); do [ \"$(status $1)\" = $2 ] && break; sleep 0.05; done; status $1; }}
        {lines}"
    ))
}

const FOREVER: &str = "trap 'exit 5' TERM; while :; do sleep 0.05; done";

#[test]
fn a_container_is_created_started_killed_and_deleted() {
    let Some(directory) = bundle(FOREVER, |_| {}) else { return };
    let run = script(
        &directory,
        "
        J create --bundle . --pid-file pid a </dev/null >out 2>&1; echo create $?
        status a
        [ \"$(cat pid)\" = \"$(J state a | sed -n 's/.*\"pid\": \\(.*\\),/\\1/p')\" ] && echo the pid file tells the pid
        J state a | grep who
        J create --bundle . a; echo again $?
        J list --quiet
        J start a; echo start $?
        status a
        J start a; echo again $?
        J delete a; echo delete $?
        J kill a TERM; echo kill $?
        until_is a stopped
        J kill a; echo kill $?
        J delete a; echo delete $?
        J state a; echo state $?
        J delete a; echo delete $?
        J delete --force a; echo force $?
        cat out; ls state",
    );
    assert_data_eq!(
        run.out,
        str![[r#"
create 0
created
the pid file tells the pid
    "who": "a test"
again 1
a
start 0
running
again 1
delete 1
kill 0
stopped
kill 1
delete 0
state 1
delete 1
force 0

"#]]
    );
    assert_data_eq!(
        run.err,
        str![[r#"
error: container `a` already exists
 = help: use another name, or remove it with `jobc oci delete --force a`
error: container `a` is running, not created
error: container `a` is running, not stopped
 = help: end it first, or delete it with `--force`
error: container not running: `a`
error: container does not exist: `a`
 = help: `jobc oci list` shows the existing ones
error: container does not exist: `a`
 = help: `jobc oci list` shows the existing ones

"#]]
    );
}

#[test]
fn forced_deletion_leaves_nothing() {
    let Some(directory) = bundle("sleep 1000", |_| {}) else { return };
    let run = script(
        &directory,
        "
        for id in created running frozen; do
            mkdir $id; sed \"s,/jobc/[^\\\"]*,&-$id,\" config.json >$id/config.json
        done
        J create --bundle created created </dev/null >out 2>&1
        J run --detach --bundle running running </dev/null >>out 2>&1
        J run --detach --bundle frozen frozen </dev/null >>out 2>&1; J pause frozen; status frozen
        mkdir state/half state/broken; echo '{' >state/broken/state.json
        for id in created running frozen half broken; do
            J delete --force $id; echo $id $?
        done
        cat out; ls state; find /sys/fs/cgroup -name $(basename $PWD | tr -d .)-*",
    );
    assert_data_eq!(
        run.out,
        str![[r#"
paused
created 0
running 0
frozen 0
half 0
broken 0

"#]]
    );
    assert_eq!(run.err, "");
}

#[test]
fn a_command_killed_half_way_leaves_what_delete_cleans() {
    let Some(directory) = bundle("sleep 1000", |config| {
        config["hooks"] = json!({"createRuntime": [{"path": "/bin/sleep", "args": ["sleep", "3"]}]});
    }) else {
        return;
    };
    let run = script(
        &directory,
        "
        \"$JOBC\" oci --root state create --bundle . a </dev/null >out 2>&1 & creating=$!
        for i in $(seq 200); do grep -q cgroup state/a/state.json 2>/dev/null && break; sleep 0.05; done
        sleep 0.2
        kill -KILL $creating; wait $creating 2>/dev/null
        status a
        J start a; echo start $?
        J delete a; echo delete $?
        ls state; find /sys/fs/cgroup -name $(basename $PWD | tr -d .)",
    );
    assert_data_eq!(
        run.out,
        str![[r#"
creating
start 1
delete 0

"#]]
    );
}

#[test]
fn a_frozen_container_does_nothing_until_it_goes_on() {
    let Some(directory) = bundle(FOREVER, |_| {}) else { return };
    let run = script(
        &directory,
        "
        J run -d -b . a </dev/null >out 2>&1
        J resume a; echo resume $?
        J pause a; echo pause $?
        status a
        J exec a true; echo exec $?
        J kill a TERM; sleep 0.3; status a
        J resume a; echo resume $?
        until_is a stopped
        J pause a; echo pause $?
        J delete a; cat out",
    );
    assert_data_eq!(
        run.out,
        str![[r#"
resume 1
pause 0
paused
exec 255
paused
resume 0
stopped
pause 1

"#]]
    );
    assert_data_eq!(
        run.err,
        str![[r#"
error: container `a` is running, not paused
error: cannot exec in a paused container: `a`
 = help: resume it with `jobc oci resume a`, or pass `--ignore-paused`
error: container not running: `a` is stopped

"#]]
    );
}

#[test]
fn limits_of_a_running_container_are_changed() {
    let Some(directory) = bundle(FOREVER, |_| {}) else { return };
    let run = script(
        &directory,
        "
        limit() { J events --stats a | grep -o '\"pids\":{[^}]*}' | grep -o '\"limit\":[0-9]*'; }
        J run -d -b . a </dev/null >out 2>&1
        J update --pids-limit 33 a; echo update $?
        limit
        J exec a true; echo exec $?
        J pause a; echo '{\"pids\": {\"limit\": 44}, \"memory\": {\"limit\": 0}}' | J update --resources - a; echo paused $?; J resume a
        limit
        timeout 20 \"$JOBC\" oci --root state events --interval 50ms a | grep -om1 '\"type\":\"stats\",\"id\":\"a\"'
        J update --pids-limit -1 a; limit
        echo '{\"devices\": [{\"allow\": true}]}' | J update -r - a; echo devices $?
        echo '{\"disk\": 7}' | J update -r - a; echo disk $?
        echo nonsense | J update -r - a; echo nonsense $?
        echo '{\"memory\": 5}' | J update --memory 1m --resources - a; echo section $?
        J update --memory 5x a 2>/dev/null; echo size $?
        J kill a KILL; until_is a stopped
        J update --pids-limit 5 a; echo update $?
        J delete a; cat out",
    );
    assert_data_eq!(
        run.out,
        str![[r#"
update 0
"limit":33
exec 0
paused 0
"limit":44
"type":"stats","id":"a"
"limit":0
devices 1
disk 1
nonsense 1
section 1
size 1
stopped
update 1

"#]]
    );
    assert_data_eq!(
        run.err,
        str![[r#"
error: `/linux/resources/devices`: device rules of an existing container cannot be changed
 = help: create the container again
error: `/linux/resources/disk`: unknown resource `disk`
 = help: known resources: `memory`, `cpu`, `pids`, `blockIO`, `hugepageLimits`, `network`, `rdma`, `unified`
error: the resources are not JSON: expected ident at line 1 column 2
error: `/linux/resources/memory`: `5` is not an object
error: container not running: `a` is stopped

"#]]
    );
}

#[test]
fn a_command_of_exec_is_in_the_container() {
    if !jobc_test_skip::has_program("ps") {
        return;
    }
    let Some(directory) = bundle(FOREVER, |config| {
        config["process"]["env"] = json!(["PATH=/usr/bin:/bin", "FROM=config"]);
        config["linux"]["resources"] = json!({"pids": {"limit": 50}});
    }) else {
        return;
    };
    directory.write(
        "process.json",
        r#"{"args": ["sh", "-c", "id -u; pwd; echo $FROM"], "cwd": "/tmp", "env": ["PATH=/bin", "FROM=file"], "user": {"uid": 7, "gid": 8}}"#,
    );
    let run = script(
        &directory,
        "
        J run -d -b . a </dev/null >out 2>&1
        J exec a sh -c 'tr \"\\0\" \" \" </proc/1/cmdline; echo; echo $FROM; exit 9'; echo exec $?
        J exec --env FROM=here --cwd /usr --user 1:2 -g 3 a sh -c 'echo $FROM; pwd; id -u; id -G'
        J exec --process process.json a; echo exec $?
        J exec a cat /proc/self/cgroup | grep -o jobc/ | head -1
        echo typed | J exec a cat
        J exec a sh -c 'kill -TERM $$'; echo exec $?
        J exec a /no/such/program; echo exec $?
        J exec a /tmp; echo exec $?
        J exec a; echo exec $?
        J exec --detach --pid-file pid a sleep 1000; echo exec $?
        grep -c . pid; J ps --format json a | grep -c $(cat pid)
        J ps a -o pid,args | grep -c 'sleep 1000'
        J delete -f a; echo delete $?
        J exec a true; echo exec $?
        cat out",
    );
    assert_data_eq!(
        run.out,
        str![[r#"
/bin/sh -c trap 'exit 5' TERM; while :; do sleep 0.05; done 
config
exec 9
here
/usr
1
2 3
7
/tmp
file
exec 0
jobc/
typed
exec 143
exec 255
exec 255
exec 255
exec 0
1
1
1
delete 0
exec 255

"#]]
    );
    assert_data_eq!(
        run.err,
        str![[r#"
error: cannot execute `/no/such/program`: no such file or directory (ENOENT)
 = help: it must be in the container, in a directory of its `PATH`; a script's interpreter must be there too
error: cannot execute `/tmp`: permission denied (EACCES)
error: no program to start
 = help: write it after the container name, or pass `--process FILE`
error: container does not exist: `a`
 = help: `jobc oci list` shows the existing ones

"#]]
    );
}

#[test]
fn run_returns_the_programs_exit_code() {
    let Some(directory) = bundle("exit 3", |_| {}) else { return };
    let run = |arguments: &str| script(&directory, &format!("J run {arguments} -b . a </dev/null"));
    run("").exits(3);
    run("--keep").exits(3);
    let run = script(&directory, "status a; J delete a").exits(0);
    assert_eq!(run.out, "stopped\n");
    let Some(directory) = bundle("kill -SEGV $$", |config| {
        // The kernel spares the first process of a pid namespace its own signals.
        config["linux"]["namespaces"] = json!([{"type": "mount"}, {"type": "ipc"}, {"type": "uts"}]);
    }) else {
        return;
    };
    script(&directory, "J run -b . a </dev/null").exits(139);
    for (args, code, says) in [
        (json!(["/no/such/program"]), 127, "no such file or directory"),
        (json!(["/tmp"]), 126, "permission denied"),
        (json!([]), 1, "/process/args"),
    ] {
        let Some(directory) = bundle("", |config| config["process"]["args"] = args.clone()) else { return };
        script(&directory, "J run -b . a </dev/null").exits(code).says(says);
        assert_eq!(script(&directory, "ls state").out, "", "{args}");
    }
}

#[test]
fn errors_are_logged_as_callers_read_them() {
    let Some(directory) = bundle("true", |config| config["extra"] = json!(1)) else { return };
    let run = script(
        &directory,
        "
        J --log json.log --log-format json run -b . a </dev/null; echo run $?
        J --log json.log --log-format json run -b absent b; echo run $?
        J --log text.log start c; echo start $?
        sed 's/20..-..-..T..:..:..Z/TIME/' json.log text.log
        J --log absent/log list; echo list $?",
    );
    assert_data_eq!(
        run.out,
        str![[r#"
run 0
run 1
start 1
{"level":"warning","msg":"config.json: /extra: unknown property, ignored","time":"TIME"}
{"level":"error","msg":"cannot open `absent`: no such file or directory (ENOENT)","time":"TIME"}
time="TIME" level=error msg="container does not exist: `c`; `jobc oci list` shows the existing ones"
list 1

"#]]
    );
    assert_data_eq!(
        run.err,
        str![[r#"
warning: config.json: /extra: unknown property, ignored
error: cannot open `absent`: no such file or directory (ENOENT)
error: container does not exist: `c`
 = help: `jobc oci list` shows the existing ones
error: cannot open the log `absent/log`: no such file or directory (ENOENT)

"#]]
    );
}

#[test]
fn a_systemd_that_cannot_be_reached_makes_nothing() {
    let Some(directory) =
        bundle("exit 3", |config| config["linux"]["cgroupsPath"] = json!("system.slice:jobc:demo"))
    else {
        return;
    };
    let run = script(
        &directory,
        "export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$PWD/nobody
        J --systemd-cgroup run a; echo $?
        J --cgroup-manager systemd create a </dev/null; echo $?
        sed -i s,system.slice:jobc:demo,/jobc/demo, config.json
        J --systemd-cgroup run a; echo $?
        sed -i s,/jobc/demo,system.slice:jobc:demo, config.json
        J run a; echo $?
        J list --quiet",
    );
    assert_data_eq!(run.out, "1\n1\n1\n1\n");
    assert_data_eq!(
        run.err,
        str![[r#"
error: cannot reach systemd: no such file or directory (ENOENT)
 = help: let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd
error: cannot reach systemd: no such file or directory (ENOENT)
 = help: let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd
error: config.json: /linux/cgroupsPath: `/jobc/demo` does not name a unit, but systemd creates the cgroup
 = help: write `slice:prefix:name`, such as `system.slice:jobc:demo`, or leave it empty
error: config.json: /linux/cgroupsPath: `system.slice:jobc:demo` names a systemd unit, but systemd does not create the cgroup here
 = help: pass `--systemd-cgroup` to `jobc oci`, or write a cgroup path, such as `/jobc/demo`

"#]]
    );
}

#[test]
fn missing_containers_are_reported() {
    let directory = Directory::new();
    for (arguments, says) in [
        (&["create", "--no-pivot", "a"][..], "pivot_root"),
        (&["create", "../a"], "has the character `/`"),
        (&["create", "a"], "it has no config.json"),
        (&["kill", "a", "NOSUCH"], "unknown signal `NOSUCH`"),
        (&["kill", "a"], "container does not exist: `a`"),
        (&["exec", "a", "true"], "container does not exist: `a`"),
        (&["exec", "--user", "root", "a", "true"], "write UID or UID:GID"),
        (&["checkpoint", "a"], "checkpoint and restore of containers are not supported"),
        (&["run"], "<ID>"),
        (&[], "no command given"),
    ] {
        let all: Vec<&str> = ["oci", "--root", "state"].iter().chain(arguments).copied().collect();
        // `exec` exits with its program's code, so its own failure has another.
        let code = if arguments == ["exec", "a", "true"] { 255 } else { 1 };
        directory.jobc(&all).exits(code).says(says);
    }
    assert!(!directory.path().join("state").exists(), "nothing is made for what cannot be");
    assert_eq!(
        directory.jobc(&["oci", "--root", "state", "list"]).exits(0).out,
        "ID  PID  STATUS  BUNDLE  CREATED  OWNER\n"
    );
    assert_eq!(directory.jobc(&["oci", "--root", "state", "list", "--format", "json"]).exits(0).out, "[]\n");
    directory.jobc(&["oci", "--root", "state", "delete", "--force", "a"]).exits(0);
}

#[test]
fn the_name_jobc_oci_is_the_runtime() {
    let directory = Directory::new();
    let version = directory.jobc(&["oci", "--version"]).exits(0).out;
    assert_data_eq!(
        version.clone(),
        str![[r#"
jobc version 0.1.0
spec: 1.3.0
+SYSTEMD +SELINUX +APPARMOR +CAP +SECCOMP +EBPF

"#]]
    );
    assert_eq!(directory.jobc(&["--color", "never", "oci", "--version"]).exits(0).out, version);
    assert!(directory.jobc(&["help", "oci"]).exits(0).out.contains("Usage: jobc oci"));
    let list =
        directory.jobc(&["--color", "never", "oci", "--root", "states", "list", "--format", "json"]).exits(0);
    assert_eq!(list.out, "[]\n");
    std::os::unix::fs::symlink(binary(), directory.path().join("jobc-oci")).unwrap();
    let run = |argument| Run::of(directory.command(directory.path().join("jobc-oci").as_str()).arg(argument));
    assert_eq!(run("--version").exits(0).out, version);
    assert_eq!(run("-v").exits(0).out, version);
    assert!(run("--help").exits(0).out.contains("Usage: jobc oci"));
    let features: Value = serde_json::from_str(&run("features").exits(0).out).expect("JSON");
    assert_eq!(features["ociVersionMin"], "1.0.0");
}

/// conmon and containerd's shims get the terminal over a socket.
#[test]
fn a_terminals_other_side_goes_to_the_socket() {
    if !command("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        jobc_test_skip::skip("python3");
        return;
    }
    let Some(directory) = bundle("tty; stty size; read line; echo \"got $line\"", |config| {
        config["process"]["terminal"] = json!(true);
        config["process"]["consoleSize"] = json!({"height": 30, "width": 90});
    }) else {
        return;
    };
    directory.write(
        "listen.py",
        "import array, os, socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind('console')
listener.listen()
jobc = [sys.argv[1], 'oci', '--root', 'state']
subprocess.run([*jobc, 'create', '--bundle', '.', '--console-socket', 'console', 'a'], check=True, stdin=subprocess.DEVNULL)
connection, _ = listener.accept()
name, ancillary, _, _ = connection.recvmsg(64, socket.CMSG_SPACE(4))
print(name.decode(), len(ancillary))
master = array.array('i', ancillary[0][2])[0]
subprocess.run([*jobc, 'start', 'a'], check=True)
shown = b''
while b'30 90' not in shown:
    shown += os.read(master, 1024)
os.write(master, b'typed\\n')
while b'got typed\\r\\n' not in shown:
    shown += os.read(master, 1024)
print(shown.decode().replace('\\r', ''))
subprocess.run([*jobc, 'delete', '--force', 'a'], check=True)
",
    );
    let run = Run::of(directory.command("timeout").args(["30", "python3", "listen.py", binary()])).exits(0);
    assert_data_eq!(
        run.out,
        str![[r#"
/dev/ptmx 1
/dev/pts/0
30 90
typed
got typed


"#]]
    );
    // A terminal without a receiver, and a socket without a terminal.
    directory
        .jobc(&["oci", "--root", "state", "create", "b"])
        .exits(1)
        .says("`terminal` is true, but no console socket is given");
    let Some(directory) = bundle("true", |_| {}) else { return };
    let refused = directory.jobc(&["oci", "--root", "state", "create", "--console-socket", "console", "b"]);
    refused.exits(1).says("a console socket is given, but `terminal` is not true");
}
