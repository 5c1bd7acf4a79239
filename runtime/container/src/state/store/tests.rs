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
        unenforced: Vec::new(),
        pid_namespace: false,
        poststop: false,
    }
}

/// Errors name the store's folder, which differs from run to run.
fn told(store: &Store, error: &Error) -> String {
    let text = format!("{error}\n{}", error.help.as_deref().unwrap_or_default());
    text.replace(store.root().to_str().expect("UTF-8"), "ROOT")
}

#[test]
fn a_container_is_there_from_create_to_remove() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(folder.path().join("deep/root"));
    assert_eq!(store.list().expect("no root is no containers").len(), 0);
    let entry = store.create(&id("a")).expect("a first one");
    let mode = |path: &Path| path.metadata().expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(entry.path()), 0o700);
    assert_eq!(mode(store.root()), 0o700);
    assert_snapshot!(told(&store, &store.create(&id("a")).expect_err("a second one")), @r"
    there is a container `a` already
    take another name, or remove it with `jobc oci delete --force a`
    ");
    assert_snapshot!(told(&store, &store.read(&id("a")).expect_err("nothing written")), @r"
    the container `a` was never made completely
    remove what is left with `jobc oci delete --force a`
    ");
    entry.write(&record("a")).expect("written");
    assert_eq!(mode(&entry.path().join("state.json")), 0o600);
    drop(entry);
    store.create(&id("b")).expect("another").write(&record("b")).expect("written");
    std::fs::create_dir(store.root().join("half")).expect("a folder");
    let names: Vec<String> = store.list().expect("read").into_iter().map(|record| record.id).collect();
    assert_eq!(names, ["a", "b"]);
    store.open(&id("a")).expect("there").remove().expect("removed");
    assert_snapshot!(told(&store, &store.open(&id("a")).expect_err("gone")), @r"
    container `a` does not exist
    `jobc oci list` shows those that do
    ");
}

#[test]
fn one_command_at_a_time_changes_a_container() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(folder.path());
    let entry = store.create(&id("a")).expect("a first one");
    let (sender, receiver) = std::sync::mpsc::channel();
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || sender.send(store.open(&id("a")).map(drop)).expect("somebody listens"))
    };
    assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err(), "the lock is held");
    entry.unlock();
    receiver.recv_timeout(PATIENCE).expect("an answer").expect("the lock is free");
    waiting.join().expect("no panic");
    // Who waited while the container was removed finds none, even where there is a new one of that name.
    entry.lock().expect("free");
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || store.open(&id("a")).map(drop))
    };
    std::thread::sleep(Duration::from_millis(50));
    entry.remove().expect("removed");
    let error = waiting.join().expect("no panic").expect_err("removed meanwhile");
    assert_snapshot!(error, @"container `a` does not exist");
}

#[test]
fn what_is_no_record_of_ours_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(folder.path());
    let entry = store.create(&id("a")).expect("a first one");
    entry.write_file("state.json", b"{\"version\": 1").expect("written");
    assert_snapshot!(told(&store, &entry.read().expect_err("cut short")), @"`ROOT/a/state.json` is not what this version of jobc writes: EOF while parsing an object at line 1 column 13");
    assert_eq!(store.list().expect("the others").len(), 0);
}

#[test]
fn a_root_that_cannot_be_made_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "").expect("written");
    let store = Store::new(folder.path().join("file/root"));
    assert_snapshot!(told(&store, &store.create(&id("a")).expect_err("a file is no folder")), @r"
    cannot make the state folder `ROOT/a`: not a directory (ENOTDIR)
    give a folder that you may write to with `--root`, or set `XDG_RUNTIME_DIR`
    ");
}
