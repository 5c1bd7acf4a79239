use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;

use super::*;

fn id(name: &str) -> Id {
    Id::new(name).expect("a name")
}

fn record(name: &str) -> Record {
    Record {
        version: 1,
        id: name.to_owned(),
        bundle: "/bundle".into(),
        created: 0,
        owner: 0,
        process: None,
        cgroup: None,
        unit: None,
        class: None,
        unenforced: Vec::new(),
        pid_namespace: false,
        removed_by_creator: false,
        poststop: false,
        hooks_inherit_environment: false,
    }
}

/// Errors name the store's directory, which differs from run to run.
fn output(store: &Store, error: &Error) -> String {
    let text = format!("{error}\n{}", error.advice().as_deref().unwrap_or_default());
    text.replace(store.root().to_str().expect("UTF-8"), "ROOT")
}

#[test]
fn a_container_is_there_from_create_to_remove() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::new(directory.path().join("deep/root"));
    assert_eq!(store.list().expect("no root is no containers").len(), 0);
    let entry = store.create(&id("a")).expect("a first one");
    let mode = |path: &Path| path.metadata().expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(entry.path()), 0o700);
    assert_eq!(mode(store.root()), 0o700);
    assert_snapshot!(output(&store, &store.create(&id("a")).expect_err("a second one")), @r"
    container `a` already exists
    use another name, or remove it with `jobc oci delete --force a`
    ");
    assert_snapshot!(output(&store, &store.read(&id("a")).expect_err("nothing written")), @r"
    the creation of container `a` was not completed
    remove what is left with `jobc oci delete --force a`
    ");
    entry.write(&record("a")).expect("written");
    assert_eq!(mode(&entry.path().join("state.json")), 0o600);
    drop(entry);
    store.create(&id("b")).expect("another").write(&record("b")).expect("written");
    std::fs::create_dir(store.root().join("half")).expect("a directory");
    let names: Vec<String> = store.list().expect("read").into_iter().map(|record| record.id).collect();
    assert_eq!(names, ["a", "b"]);
    store.open(&id("a")).expect("there").remove().expect("removed");
    assert_snapshot!(output(&store, &store.open(&id("a")).expect_err("gone")), @r"
    container does not exist: `a`
    `jobc oci list` shows the existing ones
    ");
}

#[test]
fn one_command_at_a_time_changes_a_container() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::new(directory.path());
    let entry = store.create(&id("a")).expect("a first one");
    let (sender, receiver) = std::sync::mpsc::channel();
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || sender.send(store.open(&id("a")).map(drop)).expect("somebody listens"))
    };
    assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err(), "the lock is held");
    entry.unlock();
    receiver.recv_timeout(LOCK_TIMEOUT).expect("an answer").expect("the lock is free");
    waiting.join().expect("no panic");
    // A process that waited during the removal finds no container, even if a new one has that name.
    entry.lock().expect("free");
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || store.open(&id("a")).map(drop))
    };
    std::thread::sleep(Duration::from_millis(50));
    entry.remove().expect("removed");
    let error = waiting.join().expect("no panic").expect_err("removed meanwhile");
    assert_snapshot!(error, @"container does not exist: `a`");
}

#[test]
fn invalid_records_are_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::new(directory.path());
    let entry = store.create(&id("a")).expect("a first one");
    entry.write_file("state.json", b"{\"version\": 1").expect("written");
    assert_snapshot!(output(&store, &entry.read().expect_err("cut short")), @"`ROOT/a/state.json` was not written by this version of jobc: EOF while parsing an object at line 1 column 13");
    assert_eq!(store.list().expect("the others").len(), 0);
}

#[test]
fn a_root_that_cannot_be_made_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("file"), "").expect("written");
    let store = Store::new(directory.path().join("file/root"));
    assert_snapshot!(output(&store, &store.create(&id("a")).expect_err("a file is not a directory")), @r"
    cannot make the state directory `ROOT/a`: not a directory (ENOTDIR)
    pass a writable directory with `--root`, or set `XDG_RUNTIME_DIR`
    ");
}
