use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::AtomicBool;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::directory::Directory;
use crate::host_environment::HostEnvironments;
use jobc_fake_gpus::plan as sample;
use jobc_sys::id::JobId;

use crate::provision::{self, Job};
use crate::secrets::Secrets;
use crate::submission::Submission;

/// A job of one role `a` whose tasks have this config.json.
struct Case {
    dir: TempDir,
    provided: ProvisionedJob,
}

fn case(config: &Value, more: &Value, root: Option<&str>) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let directory =
        Directory { id: JobId { name: "a".to_owned(), run: 7 }, state: at("state"), record: at("record") };
    let mut role = json!({"name": "a", "instances": 2});
    for (key, value) in more["role"].as_object().into_iter().flatten() {
        role[key] = value.clone();
    }
    let mut plan = json!({"roles": [role]});
    for (key, value) in more["plan"].as_object().into_iter().flatten() {
        plan[key] = value.clone();
    }
    let plan = sample::plan(&plan);
    std::fs::write(at("job").join("key"), "s3cr3t\n").unwrap();
    let root_directory = at("job/root/etc");
    std::fs::write(root_directory.join("passwd"), "ada:x:1001:1002::/home/ada:/bin/sh\n").unwrap();
    let mut submission = Submission { directory: at("job"), ..Submission::default() };
    submission.roots.extend(root.map(|root| ("a".to_owned(), root.to_owned())));
    for index in 0..2 {
        let bundle = directory.bundle(&TaskId::new("a", index));
        std::fs::create_dir_all(&bundle).unwrap();
        std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    }
    let secrets = Secrets::read(&plan, &submission.directory).unwrap();
    let environments = HostEnvironments::default();
    let job = Job {
        directory: &directory,
        plan: &plan,
        submission: &submission,
        secrets: &secrets,
        environments: &environments,
    };
    let provided = provision::provide(&job, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    Case { dir, provided }
}

impl Case {
    fn task(&self, index: u32) -> TaskBundle {
        let container = self.dir.path().join(format!("container-{index}"));
        let _ = std::fs::create_dir(&container);
        prepare_task(&self.provided, &TaskId::new("a", index), &container).unwrap()
    }

    fn on_progress(&self, text: &str) -> String {
        let dir = self.dir.path().canonicalize().unwrap();
        let place = self.provided.place.path().to_str().unwrap();
        text.replace(place, "SECRETS").replace(dir.to_str().unwrap(), "ROOT")
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = self.provided.place.remove();
    }
}

/// What of a configuration these tests are about, in the order of keys.
fn shown(given: &TaskBundle) -> String {
    let value: Value = serde_json::from_slice(&given.bundle.text).unwrap();
    let spec = serde_json::to_value(&given.bundle.config.spec).unwrap();
    assert_eq!(value, spec, "the text is what the types say");
    let shown = json!({
        "root": value["root"], "process": value["process"], "mounts": value["mounts"],
        "cgroupsPath": value["linux"]["cgroupsPath"], "hostname": value["hostname"],
    });
    serde_json::to_string_pretty(&shown).unwrap()
}

#[test]
fn a_task_gets_what_only_this_run_knows() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let config = json!({
        "ociVersion": "1.1.0",
        "hostname": "a-0",
        "root": {"path": "rootfs", "readonly": true},
        "process": {"cwd": "/", "args": ["id"], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/data", "type": "bind", "source": "../../../../job/data", "options": ["rbind", "rro"]},
            {"destination": "/etc/jobc/job.json", "type": "bind", "source": "files/job.json"},
        ],
        "linux": {"cgroupsPath": "/jobc/a/a-0"},
        "annotations": {
            "dev.jobc.image": "x", "dev.jobc.from-image": "env,path,cwd", "dev.jobc.user": "ada",
            "dev.jobc.secret.env.TOKEN": "key", "dev.jobc.secret.file./etc/key": "key",
            "dev.jobc.secret.mode./etc/key": "0400", "dev.jobc.disk": "1048576",
        },
    });
    let more = json!({
        "role": {"env": {"TOKEN": {"secret": "key"}},
            "files": [{"path": "/etc/key", "content": {"secret": "key"}, "mode": 256}]},
        "plan": {"secrets": {"key": {"file": "key"}}},
    });
    let case = case(&config, &more, Some("root"));
    let given = case.task(0);
    assert_snapshot!(case.on_progress(&shown(&given)), @r#"
    {
      "root": {
        "path": "ROOT/container-0/root/root",
        "readonly": true
      },
      "process": {
        "user": {
          "uid": 1001,
          "gid": 1002,
          "additionalGids": [
            1002
          ]
        },
        "args": [
          "id"
        ],
        "env": [
          "PATH=/bin"
        ],
        "cwd": "/"
      },
      "mounts": [
        {
          "destination": "/proc",
          "type": "proc",
          "source": "proc"
        },
        {
          "destination": "/data",
          "type": "bind",
          "source": "ROOT/job/data",
          "options": [
            "rbind",
            "rro"
          ]
        },
        {
          "destination": "/etc/jobc/job.json",
          "type": "bind",
          "source": "ROOT/state/build/oci/a-0/files/job.json"
        },
        {
          "destination": "/etc/key",
          "type": "bind",
          "source": "SECRETS/files/a/0",
          "options": [
            "rbind",
            "nosuid",
            "nodev",
            "noexec",
            "ro"
          ]
        }
      ],
      "cgroupsPath": "/jobc/a.7/a-0",
      "hostname": "a-0"
    }
    "#);
    assert_eq!(format!("{:?}", given.secret_environment), r#"["TOKEN=***"]"#);
    assert!(!String::from_utf8_lossy(&given.bundle.text).contains("s3cr3t"));
    assert!(!format!("{given:?} {:?}", case.provided).contains("s3cr3t"));
    let file = case.provided.place.path().join("files/a/0");
    assert_eq!(std::fs::read(&file).unwrap(), b"s3cr3t\n");
    let status = std::fs::metadata(&file).unwrap();
    assert_eq!((status.uid(), status.gid(), status.mode() & 0o7777), (1001, 1002, 0o400));
    // Tasks start with the same files and write to their own layers.
    let (Root::Overlay { lowers, on, upper, .. }, Root::Overlay { lowers: others, on: beside, .. }) =
        (given.root, case.task(1).root)
    else {
        panic!("no layers")
    };
    assert!(
        lowers == others
            && on != beside
            && upper == jobc_container::root::UpperLayer::Memory { size: Some(1 << 20) }
    );
    // A second attempt, whose directory exists.
    case.task(0);
}

#[test]
fn the_image_of_an_unpacked_bundle_fills_what_is_open() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let config = json!({
        "ociVersion": "1.1.0",
        "process": {"cwd": "/", "args": ["sh", "-c", "exit 127"], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
        "annotations": {"dev.jobc.image": "x", "dev.jobc.from-image": "env,path,cwd,user,command"},
    });
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("rootfs")).unwrap();
    let unpacked = json!({
        "ociVersion": "1.0.0", "root": {"path": "rootfs"},
        "process": {"cwd": "/workspace", "args": ["/entry", "serve"], "env": ["PATH=/opt", "LANG=C"],
            "user": {"uid": 5, "gid": 6, "additionalGids": [7]}},
    });
    std::fs::write(dir.path().join("config.json"), unpacked.to_string()).unwrap();
    let case = case(&config, &json!({}), dir.path().to_str());
    let given = case.task(1);
    assert_eq!(given.root.directories(), [dir.path().canonicalize().unwrap().join("rootfs")]);
    let process = serde_json::to_value(given.bundle.config.spec.process()).unwrap();
    assert_snapshot!(process.to_string(), @r#"{"user":{"uid":5,"gid":6,"additionalGids":[7]},"args":["/entry","serve"],"env":["PATH=/opt","LANG=C","PYTHONUNBUFFERED=1"],"cwd":"/workspace"}"#);
}

#[test]
fn files_that_only_their_owner_may_use_are_those_of_the_task_s_user() {
    let config = json!({
        "ociVersion": "1.1.0", "process": {"cwd": "/", "args": ["id"], "user": {"uid": 1001, "gid": 1002}},
        "mounts": [
            {"destination": "/key", "type": "bind", "source": "files/key", "options": ["rbind", "ro"]},
            {"destination": "/tool", "type": "bind", "source": "files/tool", "options": ["rbind", "ro"]},
            {"destination": "/open", "type": "bind", "source": "files/open", "options": ["rbind", "ro"]},
        ],
        "annotations": {"dev.jobc.image": "x", "dev.jobc.from-image": "env", "dev.jobc.user": "ada"},
    });
    let case = case(&config, &json!({}), Some("root"));
    let files = case.provided.directory.bundle(&TaskId::new("a", 0)).join("files");
    std::fs::create_dir(&files).unwrap();
    for (name, mode) in [("key", 0o600), ("tool", 0o744), ("open", 0o644)] {
        std::fs::write(files.join(name), name).unwrap();
        std::fs::set_permissions(files.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let container = case.dir.path().join("container-0");
    std::fs::create_dir(&container).unwrap();
    let given = prepare_task(&case.provided, &TaskId::new("a", 0), &container);
    if rustix::process::geteuid().is_root() {
        given.unwrap();
        let owner = |name: &str| {
            let status = std::fs::metadata(files.join(name)).unwrap();
            (status.uid(), status.gid())
        };
        assert_eq!(owner("key"), (1001, 1002));
        assert_eq!(owner("tool"), (1001, 1002));
        assert_eq!(owner("open"), (0, 0));
    } else {
        let error = given.unwrap_err().to_string();
        assert!(error.contains("user 1001 of the container cannot read `/key`"), "{error}");
    }
}

#[test]
fn sources_are_found_from_the_bundle_by_name() {
    let at =
        |source: &str| absolute(Path::new("/state/build/oci/a-0"), Path::new(source)).display().to_string();
    assert_eq!(at("files/x"), "/state/build/oci/a-0/files/x");
    assert_eq!(at("../volumes/d"), "/state/build/oci/volumes/d");
    assert_eq!(at("../../../../home/ada/data"), "/home/ada/data");
    assert_eq!(at("./x/../y"), "/state/build/oci/a-0/x/../y");
    assert_eq!(at("../../../../../../x"), "/../../x");
    assert_eq!(at("/etc/hosts"), "/etc/hosts");
}

#[test]
fn a_long_or_strange_path_is_a_root_too() {
    let dir = tempfile::tempdir().unwrap();
    let strange = dir.path().join("a:b,c").join("x".repeat(200)).join("y".repeat(100));
    std::fs::create_dir_all(strange.join("etc")).unwrap();
    let config = json!({
        "ociVersion": "1.1.0", "process": {"cwd": "/", "args": ["id"], "user": {"uid": 0, "gid": 0}},
        "annotations": {"dev.jobc.image": "x", "dev.jobc.from-image": "env"},
    });
    let case = case(&config, &json!({}), strange.to_str());
    let root = case.task(0).root;
    let path = root.directories()[0].as_os_str().as_encoded_bytes();
    assert!(path.len() < 250 && !path.contains(&b':'), "{root:?}");
    assert!(root.directories()[0].join("etc").is_dir());
}

#[test]
fn a_directory_of_a_volume_is_mounted_without_following_links() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("runs");
    let mounts = json!([{"volume": "runs", "path": "/output", "writable": true, "subpath": "lr-0.1"}]);
    let volumes = json!({"runs": {"kind": "output", "source": {"kind": "path", "path": place}}});
    let config = json!({"ociVersion": "1.0.2", "mounts": [
        {"destination": "/output", "type": "bind", "source": place.join("lr-0.1"), "options": ["rbind"]}]});
    let case =
        case(&config, &json!({"role": {"mounts": mounts}, "plan": {"volumes": volumes}}), Some("host"));
    assert!(place.join("lr-0.1").is_dir(), "it is created");
    let subpaths = &case.provided.subpaths["a"];
    let mut bundle = case.task(0).bundle;
    provision::mount_linkless(subpaths, &mut bundle).unwrap();
    let source = bundle.config.spec.mounts().as_ref().unwrap()[0].source().clone().unwrap();
    assert_eq!(source, place.canonicalize().unwrap().join("lr-0.1"));
    assert!(bundle.linkless.contains(std::path::Path::new("/output")));
    std::fs::rename(place.join("lr-0.1"), place.join("moved")).unwrap();
    std::os::unix::fs::symlink("/etc", place.join("lr-0.1")).unwrap();
    let error = provision::mount_linkless(subpaths, &mut bundle).unwrap_err();
    assert!(error.to_string().contains("is a symbolic link"), "{error}");
}
