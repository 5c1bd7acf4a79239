use insta::assert_snapshot;
use tempfile::TempDir;

use super::*;

/// A bundle in its own directory; `ROOT` replaces that directory in its output.
struct Case {
    directory: TempDir,
    bundle: Bundle,
}

fn case(config: &str) -> Case {
    let directory = tempfile::tempdir().expect("a directory");
    let dir = directory.path().join("task-0");
    std::fs::create_dir_all(dir.join("rootfs/etc")).expect("a root");
    let write =
        |name: &str, text: &str| std::fs::write(dir.join("rootfs/etc").join(name), text).expect("written");
    write("passwd", "root:x:0:0::/root:/bin/sh\nada:x:1001:1002::/home/ada:/bin/sh\n");
    write("group", "root:x:0:\nwheel:x:10:ada\nvideo:x:44:ada,root\n");
    std::fs::write(dir.join("config.json"), config).expect("written");
    let bundle = Bundle::open(&dir).expect("a bundle");
    Case { directory, bundle }
}

impl Case {
    fn allocate(&self, choice: Option<&str>) -> Result<Allocation> {
        let state = self.directory.path().join("state");
        std::fs::create_dir_all(&state).expect("a directory");
        let request = AllocationRequest { choice, ..AllocationRequest::new(&state) };
        Allocation::of(&self.bundle, request)
    }

    fn output(&self, text: &str) -> String {
        let directory = self.directory.path().canonicalize().expect("there");
        text.replace(directory.to_str().expect("UTF-8"), "ROOT")
    }

    fn refused(&self) -> String {
        let error = self.allocate(None).expect_err("refused");
        self.output(&format!("{error}\n{}", error.advice().as_deref().unwrap_or_default()))
    }
}

#[test]
fn the_copy_has_what_the_host_gives() {
    let case = case(
        r#"{
    "ociVersion": "1.1.0",
    "root": {"path": "rootfs", "readonly": true},
    "process": {"cwd": "/", "args": ["id"], "user": {"uid": 0, "gid": 0, "umask": 23}},
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/data", "type": "bind", "source": "../../data"},
        {"destination": "/out", "source": "../outputs/model", "options": ["rbind", "nosuid"]},
        {"destination": "/etc/hosts", "type": "bind", "source": "/etc/hosts"}
    ],
    "annotations": {"dev.jobc.user": "ada", "dev.jobc.output.model": "/out", "dev.jobc.network": "host"},
    "x-unknown": {"b": 1, "a": 2}
}"#,
    );
    let allocation = case.allocate(None).expect("given");
    assert_snapshot!(case.output(&allocation.to_string()), @r"
    root: ROOT/task-0/rootfs
    user: ada is 1001:1002, groups 10, 44, 1002
    output: ROOT/task-0/../outputs/model
    ");
    assert!(!case.directory.path().join("outputs").exists());
    allocation.create_outputs().expect("made");
    assert!(case.directory.path().join("outputs/model").is_dir());
    let (mut config, changed) = allocation.apply(&case.bundle).expect("applied");
    if !changed.is_empty() {
        jobc_test_skip::skip("root");
        return;
    }
    assert_eq!(config.spec.annotations(), case.bundle.config.spec.annotations());
    // They have no order.
    config.spec.set_annotations(None);
    let text = serde_json::to_string_pretty(&config.spec).expect("JSON");
    assert_snapshot!(case.output(&text), @r#"
    {
      "ociVersion": "1.1.0",
      "root": {
        "path": "ROOT/task-0/rootfs",
        "readonly": true
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
          "source": "ROOT/task-0/../../data"
        },
        {
          "destination": "/out",
          "source": "ROOT/task-0/../outputs/model",
          "options": [
            "rbind",
            "nosuid"
          ]
        },
        {
          "destination": "/etc/hosts",
          "type": "bind",
          "source": "/etc/hosts"
        }
      ],
      "process": {
        "user": {
          "uid": 1001,
          "gid": 1002,
          "umask": 23,
          "additionalGids": [
            10,
            44,
            1002
          ]
        },
        "args": [
          "id"
        ],
        "cwd": "/"
      }
    }
    "#);
}

#[test]
fn the_hosts_own_files_are_a_root() {
    let case = case(
        r#"{"ociVersion": "1.1.0", "process": {"cwd": "/", "user": {"uid": 0, "gid": 0}},
        "annotations": {"dev.jobc.image": "host", "dev.jobc.disk": "1048576", "dev.jobc.user": "root"}}"#,
    );
    std::fs::remove_dir_all(case.bundle.dir.join("rootfs")).expect("ours");
    let allocation = case.allocate(None).expect("given");
    let text = allocation.to_string();
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(first, "root: / under a writable layer in memory of 1048576 bytes");
    assert!(text.contains("user: root is 0:0"), "{text}");
}

#[test]
fn a_missing_device_is_refused_at_its_place() {
    let with = |annotations: &str| {
        case(&format!(
            r#"{{"ociVersion": "1.1.0", "root": {{"path": "rootfs"}}, "annotations": {annotations}}}"#
        ))
    };
    assert_snapshot!(with(r#"{"dev.jobc.gpus": "0,1"}"#).refused(), @r"
    config.json: /annotations/dev.jobc.gpus: GPUs are not supported for a single bundle
    name them, as in `--devices 0,1`; `jobc gpu ls` lists them
    ");
    assert_snapshot!(with(r#"{"dev.jobc.secret.env.TOKEN": "token", "dev.jobc.ssh": "root:22"}"#).refused(), @r"
    config.json: /annotations/dev.jobc.secret.env.TOKEN: secrets are not supported for a single bundle
    name the directory with their values: `--secrets DIR`
    ");
    assert_snapshot!(with(r#"{"dev.jobc.secret.file./etc/key": "key"}"#).refused(), @r"
    config.json: /annotations/dev.jobc.secret.file.~1etc~1key: secrets are not supported for a single bundle
    name the directory with their values: `--secrets DIR`
    ");
    assert_snapshot!(with(r#"{"dev.jobc.volume.data": "https://example.org/data.csv"}"#).refused(), @r"
    config.json: /annotations/dev.jobc.volume.data: the volume `data` is not fetched
    fetch `https://example.org/data.csv` to `ROOT/task-0/../volumes/data`
    ");
    assert_snapshot!(with(r#"{"dev.jobc.user": "nobody-here"}"#).refused(), @r"
    config.json: /annotations/dev.jobc.user: no user `nobody-here` in the container's /etc/passwd
    write its number, or a name the image has
    ");
}

#[test]
fn secrets_come_from_files_of_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let case = case(
        r#"{"ociVersion": "1.1.0", "root": {"path": "rootfs"}, "process": {"cwd": "/", "args": ["id"], "user": {"uid": 0, "gid": 0}},
    "annotations": {"dev.jobc.secret.env.TOKEN": "token", "dev.jobc.secret.file./etc/key": "key",
        "dev.jobc.secret.mode./etc/key": "0400", "dev.jobc.secret.from.token": "env:TOKEN"}}"#,
    );
    let (state, secrets) = (case.directory.path().join("state"), case.directory.path().join("secrets"));
    for directory in [&state, &secrets] {
        std::fs::create_dir(directory).expect("a directory");
    }
    let write = |name: &str, mode: u32| {
        std::fs::write(secrets.join(name), "s3cret\n").expect("written");
        std::fs::set_permissions(secrets.join(name), std::fs::Permissions::from_mode(mode)).expect("set");
    };
    let allocate = || {
        let request = AllocationRequest { secrets: Some(&secrets), ..AllocationRequest::new(&state) };
        Allocation::of(&case.bundle, request)
    };
    let refused = || case.output(&allocate().expect_err("refused").to_string());
    assert_snapshot!(refused(), @"cannot read the secret `token` from `ROOT/secrets/token`: no such file or directory (ENOENT)");
    write("token", 0o600);
    write("key", 0o640);
    assert_snapshot!(refused(), @"cannot read the secret `key` from `ROOT/secrets/key`: other users may read it");
    write("key", 0o400);
    let allocation = allocate().expect("given");
    assert_eq!(format!("{:?}", allocation.secret_environment), r#"["TOKEN=***"]"#);
    let (config, _) = allocation.apply(&case.bundle).expect("a configuration");
    let config = serde_json::to_string(&config.spec).expect("JSON");
    assert!(config.contains("secrets/key") && !config.contains("s3cret"), "{config}");
}
