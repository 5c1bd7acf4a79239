//! A group's life: entered, frozen, killed, removed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jobc_container::cgroup::{Cgroup, CgroupRequest, SubGroups};
use jobc_sys::error::Kind;
use serde_json::json;

use super::{layout, make, path, refusal};

#[test]
fn a_thread_that_writes_to_a_join_file_is_in_the_group() {
    let Some(mut trial) = make("join", &json!({})) else { return };
    let (born_in, first) = trial.cgroup.take_entry_fds();
    assert_eq!(born_in.is_some(), trial.layout.unified.is_some());
    // An additional process enters by the record.
    let mut found = Cgroup::open(trial.cgroup.record().clone());
    found.open_entry_fds(std::process::id(), &SubGroups::default()).expect("opened");
    let (born_in, further) = found.take_entry_fds();
    assert_eq!(born_in.is_some(), trial.layout.unified.is_some());
    assert_eq!(first.len(), further.len());
    for file in first.into_iter().chain(further) {
        let shell = Command::new("sh")
            .args(["-c", "echo 0; exec cat /proc/self/cgroup >&2"])
            .stdout(Stdio::from(file))
            .output()
            .expect("a shell runs");
        let seen = String::from_utf8_lossy(&shell.stderr).into_owned();
        assert_eq!(seen.lines().filter(|line| line.ends_with(&path("join"))).count(), 1, "{seen}");
    }
}

/// As systemd in a container does: it moves one level down to make room for its own groups.
#[test]
fn a_further_process_enters_a_group_that_the_container_has_divided() {
    let Some(trial) = make("divided", &json!({})) else { return };
    if !trial.layout.is_unified() {
        jobc_test_skip::skip("cgroup v2");
        return;
    }
    let group = trial.cgroup.directories().next().expect("a group").to_owned();
    let below = group.join("first");
    let child = trial.start("sleep 100; true");
    wait_for(|| trial.cgroup.processes().expect("a list").len() == 2);
    std::fs::create_dir(&below).expect("a group below");
    let entered = || {
        let mut found = Cgroup::open(trial.cgroup.record().clone());
        found.open_entry_fds(child.id(), &SubGroups::default()).map(|()| {
            let (entrance, _) = found.take_entry_fds();
            let entrance = entrance.expect("a way in");
            std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&entrance)))
                .expect("a directory")
        })
    };
    assert_eq!(entered().expect("opened"), group, "nothing is divided yet");
    for pid in trial.cgroup.processes().expect("a list") {
        std::fs::write(below.join("cgroup.procs"), pid.to_string()).expect("it is moved");
    }
    std::fs::write(group.join("cgroup.subtree_control"), "+pids").expect("passed on");
    assert_eq!(entered().expect("opened"), below);
    let further = Command::new("sleep").arg("100").spawn().expect("started");
    let enter = |directory: &Path| std::fs::write(directory.join("cgroup.procs"), further.id().to_string());
    assert_eq!(enter(&group).expect_err("it is full").raw_os_error(), Some(16));
    enter(&below).expect("there is room");
    // One that has left its group is not followed.
    let outside = group.parent().expect("a directory").parent().expect("the tree");
    std::fs::write(outside.join("cgroup.procs"), child.id().to_string()).expect("it is moved");
    assert!(entered().expect_err("refused").message().contains("is not below it"));
    trial.cgroup.kill().expect("killed");
    for mut process in [child, further] {
        let _ = process.kill();
        process.wait().expect("it is gone");
    }
}

#[test]
fn killing_leaves_no_process_even_below_and_frozen() {
    let Some(trial) = make("kill", &json!({})) else { return };
    let mut child = trial.start("trap '' TERM; for i in 1 2 3; do sleep 100 & done; wait");
    wait_for(|| trial.cgroup.processes().expect("a list").len() == 4);
    let below = trial.cgroup.directories().last().expect("a group").join("below");
    std::fs::create_dir(&below).expect("a group below");
    let one = trial.cgroup.processes().expect("a list").pop().expect("a process");
    std::fs::write(below.join("cgroup.procs"), one.to_string()).expect("it is moved");
    assert_eq!(trial.cgroup.processes().expect("a list").len(), 4, "those below count");
    trial.cgroup.freeze().expect("frozen");
    assert!(trial.cgroup.is_frozen().expect("a state"));
    trial.cgroup.kill().expect("killed");
    child.wait().expect("it is gone");
    assert_eq!(trial.cgroup.processes().expect("a list"), Vec::<u32>::new());
}

#[test]
fn frozen_processes_stand_still() {
    let Some(trial) = make("freeze", &json!({})) else { return };
    let mut child = trial.start("while :; do :; done");
    let used = || trial.cgroup.usage().cpu_usec.expect("CPU time is counted");
    wait_for(|| used() > 10_000);
    trial.cgroup.freeze().expect("frozen");
    let before = used();
    std::thread::sleep(Duration::from_millis(100));
    // The kernel may account for the last moments late; a running process would use 100 ms.
    assert!(used() < before + 20_000);
    trial.cgroup.thaw().expect("thawed");
    assert!(!trial.cgroup.is_frozen().expect("a state"));
    wait_for(|| used() > before + 10_000);
    trial.cgroup.kill().expect("killed");
    child.wait().expect("it is gone");
}

#[test]
fn a_group_in_use_is_not_taken_and_one_left_over_is_made_anew() {
    let Some(trial) = make("again", &json!({"memory": {"limit": 67_108_864}})) else { return };
    let mut child = trial.start("sleep 100");
    let error = refusal("again", &json!({})).expect("not skipped");
    assert_eq!((error.kind, error.pointer()), (Kind::State, Some("/linux/cgroupsPath")));
    assert!(error.message().ends_with("is in use"), "{error}");
    trial.cgroup.kill().expect("killed");
    child.wait().expect("it is gone");
    let again = make("again", &json!({})).expect("not skipped");
    let memory = again.read(&["memory.max", "memory.limit_in_bytes"]);
    assert_ne!(memory, "67108864", "nothing of the former limits is left");
}

#[test]
fn a_container_that_is_over_does_not_touch_the_next_one_at_its_path() {
    let Some(over) = make("next", &json!({})) else { return };
    let next = make("next", &json!({})).expect("not skipped");
    let mut child = next.start("exec sleep 100");
    assert_eq!(over.cgroup.processes().expect("a list"), Vec::<u32>::new());
    over.cgroup.kill().expect("nothing to kill");
    over.cgroup.remove().expect("nothing to remove");
    assert_eq!(next.cgroup.processes().expect("a list"), [child.id()]);
    next.cgroup.kill().expect("killed");
    child.wait().expect("it is gone");
    drop(next);
}

#[test]
fn groups_are_found_and_removed_by_what_was_kept() {
    let Some(trial) = make("kept", &json!({"pids": {"limit": 9}})) else { return };
    let kept = serde_json::to_string(trial.cgroup.record()).expect("it can be kept");
    let found = Cgroup::open(serde_json::from_str(&kept).expect("it can be read"));
    assert_eq!(found.record(), trial.cgroup.record());
    found.remove().expect("removed");
    found.remove().expect("gone is gone");
    assert_eq!(found.directories().filter(|directory| directory.exists()).count(), 0);
}

#[test]
fn the_directory_of_a_job_goes_with_its_last_task() {
    let Some(layout) = layout() else { return };
    let job = format!("test-{}", std::process::id());
    let make = |task: &str| {
        let path = format!("/jobc/{job}/{task}");
        let request = CgroupRequest { id: task, path: Some(&path), ..CgroupRequest::default() };
        Cgroup::create(&layout, &request).unwrap_or_else(|error| panic!("{error}")).0
    };
    let (first, second) = (make("main-0"), make("main-1"));
    let directory = first.directories().next().expect("a group").parent().expect("a directory").to_owned();
    first.remove().expect("removed");
    assert!(directory.exists(), "the other task is in it");
    second.remove().expect("removed");
    assert!(!directory.exists());
}

#[test]
fn a_hundred_containers_that_come_and_go_do_not_meet() {
    let Some(layout) = layout() else { return };
    let job = format!("race-{}", std::process::id());
    std::thread::scope(|scope| {
        for task in 0..4 {
            let (layout, job) = (&layout, &job);
            scope.spawn(move || {
                for _ in 0..25 {
                    let path = format!("/jobc/{job}/main-{task}");
                    let request = CgroupRequest { id: "race", path: Some(&path), ..CgroupRequest::default() };
                    let (cgroup, _) =
                        Cgroup::create(layout, &request).unwrap_or_else(|error| panic!("{error}"));
                    cgroup.remove().unwrap_or_else(|error| panic!("{error}"));
                }
            });
        }
    });
}

pub(super) fn wait_for(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}
