//! Volumes and files.

use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

use super::{bundle, report};
use crate::backend::{Backend, capability};
use crate::backends::fixture;
use crate::backends::oci::OciBackend;

#[test]
fn volumes_the_target_provides() {
    let volumes = json!({
        "imagenet": {"kind": "data", "source": {"kind": "nfs", "host": "filer", "path": "/imagenet"}},
        "scratch": {"kind": "output", "source": {"kind": "target"}}
    });
    let job = |storage: Value| {
        fixture::job(&json!({"volumes": volumes, "target": {"settings": {"oci": {"storage": storage}}}}))
    };
    let requested = |job: &JobPlan| {
        let found = capability::needs(job).into_iter().filter(|(_, at)| !at.as_str().starts_with("/roles"));
        found
            .map(|(c, at)| format!("{at}: {:?}", OciBackend.support_at(c, &at, job)))
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(
        [requested(&job(json!({}))), requested(&job(json!({"imagenet": "/mnt/imagenet"})))].join("\n\n")
    );
    let both = json!({"imagenet": "/mnt/imagenet", "scratch": "scratch"});
    let config = bundle(&json!({
        "volumes": volumes, "target": {"settings": {"oci": {"storage": both}}},
        "roles": {"main": {"mounts": [
            {"volume": "imagenet", "path": "/data", "writable": false}, {"volume": "scratch", "path": "/s", "writable": true}
        ]}}
    }));
    let mounts = config["mounts"].as_array().unwrap();
    let sources: Vec<_> = mounts[mounts.len() - 2..].iter().map(|mount| mount["source"].clone()).collect();
    assert_eq!(sources, ["/mnt/imagenet", "../../../../../scratch"]);
}

#[test]
fn a_file_never_leaves_its_bundle() {
    let changes =
        json!({"roles": {"main": {"files": [{"path": "/a/../../../etc/x", "content": "x", "mode": 420}]}}});
    let (files, _) = fixture::lower(&OciBackend, &fixture::job(&changes));
    assert_eq!(files[1].path, "main-0/files/a/etc/x");
}

#[test]
fn mounts_inside_read_only_volumes() {
    let volume = || json!({"kind": "data", "source": {"kind": "path", "path": "x"}});
    let job = |writable: bool| {
        json!({"volumes": {"outer": volume(), "inner": volume(), "near": volume()}, "roles": {"main": {
            "mounts": [
                {"volume": "inner", "path": "/data/inner", "writable": false},
                {"volume": "outer", "path": "/data/", "writable": writable},
                {"volume": "near", "path": "/database", "writable": true}
            ],
            "files": [{"path": "/data/conf.yaml", "content": "x", "mode": 420}]
        }}})
    };
    assert_eq!(report(&job(true)), "2 files");
    insta::assert_snapshot!(report(&job(false)));
}
