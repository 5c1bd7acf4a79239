//! On a directory that stands for a resctrl file system: the kernel of few hosts has one.

use std::fs;

use serde_json::{Value, json};

use super::*;

/// What mkdir(2) does in the file system: a class comes with its files.
fn make(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::write(path.join("tasks"), "")?;
    if path.parent().is_some_and(|parent| parent.ends_with("mon_groups")) {
        return Ok(());
    }
    fs::create_dir(path.join("mon_groups"))?;
    fs::write(path.join("schemata"), "L3:0=7ff;1=7ff\nMB:0=100;1=100\n")
}

struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("resctrl");
        make(&root).unwrap();
        fs::create_dir(root.join("info")).unwrap();
        fs::write(root.join("info/last_cmd_status"), "ok\n").unwrap();
        Self(directory)
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("resctrl")
    }

    fn create(&self, written: &Value) -> std::result::Result<ClassRecord, String> {
        let written = serde_json::from_value(written.clone()).expect("a section");
        create_in(&self.root(), &written, "box", &make)
            .map_err(|error| format!("{error}").replace(&self.root().display().to_string(), "ROOT"))
    }

    fn schemata(&self, class: &str) -> String {
        fs::read_to_string(self.root().join(class).join("schemata")).unwrap()
    }
}

#[test]
fn a_class_without_a_name_is_the_containers_own() {
    let scene = Scene::new();
    let written = json!({
        "schemata": ["L2:0=f"], "memBwSchema": "MB:0=20", "l3CacheSchema": "L3:0=7f0", "enableMonitoring": true
    });
    let record = scene.create(&written).unwrap();
    assert_eq!((record.class.clone(), record.created), (scene.root().join("box"), true));
    assert_eq!(record.monitor, Some(scene.root().join("box/mon_groups/box")));
    // Its first line is overwritten in a plain file; the order is that of the specification.
    assert!(scene.schemata("box").starts_with("L3:0=7f0\nMB:0=20\nL2:0=f\n"), "{}", scene.schemata("box"));
    for fd in record.tasks().unwrap() {
        rustix::io::write(&fd, b"0").unwrap();
    }
    for name in ["box/tasks", "box/mon_groups/box/tasks"] {
        assert_eq!(fs::read_to_string(scene.root().join(name)).unwrap(), "0", "{name}");
    }
    // The kernel removes the files with the directory.
    for name in ["box/mon_groups/box/tasks", "box/tasks", "box/schemata"] {
        fs::remove_file(scene.root().join(name)).unwrap();
    }
    let _ = record.remove();
    assert!(!scene.root().join("box/mon_groups/box").exists());
}

#[test]
fn a_named_class_stays_its_owners() {
    let scene = Scene::new();
    let named = |more: Value| {
        let mut written = json!({"closID": "gold"});
        written.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        written
    };
    let mut output = vec![scene.create(&named(json!({}))).unwrap_err()];
    let made = scene.create(&named(json!({"schemata": ["MB:0=50;1=50"]}))).unwrap();
    assert!(!made.created && made.monitor.is_none());
    assert!(scene.schemata("gold").starts_with("MB:0=50;1=50\n"));
    made.remove().unwrap();
    assert!(scene.root().join("gold").exists());
    // A class that exists is compared, in the kernel's own form, and not written.
    fs::write(scene.root().join("gold/schemata"), "    MB:0= 50;1=100\n    L3:0=00f;1=7ff\n").unwrap();
    let before = scene.schemata("gold");
    for same in [json!({}), json!({"l3CacheSchema": "L3:1=7FF;0=0f"}), json!({"memBwSchema": "MB:0=50"})] {
        scene.create(&named(same)).unwrap();
    }
    for other in [
        json!({"l3CacheSchema": "L3:0=ff"}),
        json!({"schemata": ["MB:2=50"]}),
        json!({"schemata": ["L2:0=1"]}),
    ] {
        output.push(scene.create(&named(other)).unwrap_err());
    }
    assert_eq!(scene.schemata("gold"), before);
    let default = scene.create(&json!({"closID": "/", "enableMonitoring": true})).unwrap();
    assert_eq!((default.class, default.created), (scene.root(), false));
    assert_eq!(default.monitor, Some(scene.root().join("mon_groups/box")));
    insta::assert_snapshot!(output.join("\n"));
}

#[test]
fn after_an_error_nothing_is_left() {
    let scene = Scene::new();
    let bare = |path: &Path| fs::create_dir(path);
    let written = serde_json::from_value(json!({"schemata": ["L3:0=f"]})).unwrap();
    fs::write(scene.root().join("info/last_cmd_status"), "Mask f out of range\n").unwrap();
    let error = create_in(&scene.root(), &written, "box", &bare).unwrap_err();
    assert_eq!(error.advice().as_deref(), Some("the kernel says: Mask f out of range"));
    assert!(!scene.root().join("box").exists());
}

#[test]
fn the_section_is_checked() {
    let errors = |section: Value| -> Vec<String> {
        let linux: Linux = serde_json::from_value(json!({"intelRdt": section})).expect("a section");
        check(&linux).iter().map(ToString::to_string).collect()
    };
    assert!(errors(json!({})).is_empty());
    assert!(
        errors(json!({"closID": "/", "l3CacheSchema": "L3CODE:0=f", "memBwSchema": "MB:0=20"})).is_empty()
    );
    let wrong = [
        json!({"closID": ".."}),
        json!({"closID": "a/b"}),
        json!({"closID": "info"}),
        json!({"closID": "x", "l3CacheSchema": "L2:0=f", "memBwSchema": "MB:0=1\nL3:0=1", "schemata": ["a", "b\nc"]}),
    ];
    insta::assert_snapshot!(wrong.map(errors).concat().join("\n"));
}

#[test]
fn a_host_without_the_file_system_is_an_error() {
    if find().is_some() {
        jobc_test_skip::skip("a host without resctrl");
        return;
    }
    let written = serde_json::from_value(json!({"closID": "x"})).unwrap();
    let error = create(&written, "box").unwrap_err();
    assert_eq!(error.to_string(), "config.json: /linux/intelRdt: no resctrl file system is mounted");
}
