use std::fs::File;
use std::io::Read as _;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::*;
use crate::oci_state::Status;
use crate::state::Record;

fn spec() -> Spec {
    let profile = json!({
        "defaultAction": "SCMP_ACT_NOTIFY", "listenerPath": "/run/agent", "listenerMetadata": "a word"
    });
    let config = json!({
        "ociVersion": "1.1.0", "root": {"path": "rootfs"}, "annotations": {"a": "b"},
        "linux": {"seccomp": profile}
    });
    serde_json::from_value(config).unwrap()
}

fn record() -> Record {
    let record = json!({"version": 1, "id": "c", "bundle": "/bundle", "created": 0, "owner": 0});
    serde_json::from_value(record).unwrap()
}

fn check(descriptor: &File) -> Result<()> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    connected().hand_over(77, pidfd.as_fd(), descriptor.as_raw_fd())
}

#[test]
fn only_a_listener_is_sent() {
    let error = check(&File::open("/dev/null").unwrap()).unwrap_err();
    assert!(error.message().contains("unexpected seccomp listener"), "{error}");
}

#[test]
fn an_agent_that_is_not_there_is_reported_at_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let words = |error: Error| error.to_string().replace(&path.display().to_string(), "AGENT");
    assert_eq!(
        words(check_socket(&path).unwrap_err()),
        "config.json: /linux/seccomp/listenerPath: cannot connect to the agent's socket `AGENT`: no such file or directory (ENOENT)"
    );
    drop(UnixListener::bind(&path).unwrap());
    check_socket(&path).unwrap();
    let state = record();
    let refused = Agent::connect(&path, &spec(), &state.state(&spec(), Status::Creating)).unwrap_err();
    assert_eq!(
        words(refused),
        "config.json: /linux/seccomp/listenerPath: cannot connect to the agent's socket `AGENT`: connection refused (ECONNREFUSED)"
    );
    std::fs::write(directory.path().join("file"), "").unwrap();
    assert!(check_socket(&directory.path().join("file")).unwrap_err().message().contains("ENOTSOCK"));
}

#[test]
fn what_is_sent_is_the_container_process_state() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let agent = Agent { socket: ours.into(), ..connected() };
    agent.send(agent.text(77).as_bytes(), File::open("/dev/null").unwrap().as_fd()).unwrap();
    drop(agent);
    let mut text = String::new();
    theirs.read_to_string(&mut text).unwrap();
    insta::assert_snapshot!(text);
    let (gone, other) = UnixStream::pair().unwrap();
    drop(other);
    let agent = Agent { socket: gone.into(), ..connected() };
    assert_eq!(agent.send(b"{}", File::open("/dev/null").unwrap().as_fd()), Err(Errno::PIPE));
}

fn connected() -> Agent {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let _socket = UnixListener::bind(&path).unwrap();
    let record = record();
    Agent::connect(&path, &spec(), &record.state(&spec(), Status::Creating)).unwrap()
}
