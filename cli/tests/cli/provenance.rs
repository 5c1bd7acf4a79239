//! `jobc build --provenance`: what files were made of, which comparisons ignore.

use serde_json::Value;

use crate::directory::{Directory, HELLO};

const TARGETS: &str = "version: 1\ntargets:\n  lab: {backends: [kubernetes], kubernetes: {namespace: ml}}\n  here: {backends: [oci, cgroup, dockerfile]}\n  pai: {backends: [openpai]}\n";

fn git(directory: &Directory, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
    let ran = directory.command("git").args(identity).args(arguments).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

fn repository() -> Directory {
    let directory = Directory::with_job(HELLO);
    directory.write("targets.yaml", TARGETS);
    directory.write(".gitignore", "built/\nplain/\nran\n");
    git(&directory, &["init", "--quiet", "--initial-branch=main"]);
    git(&directory, &["add", "--all"]);
    git(&directory, &["commit", "--quiet", "--message=first"]);
    git(&directory, &["remote", "add", "origin", "https://me:secret@git.example/team/jobs.git"]);
    directory
}

/// The annotations of the bundle.
fn annotations(directory: &Directory) -> Value {
    directory.jobc(&["build", "--provenance", "-o", "built"]).exits(0);
    let config: Value = serde_json::from_str(&directory.read("built/here/oci/main-0/config.json")).unwrap();
    config["annotations"].clone()
}

#[test]
fn files_record_their_provenance() {
    let directory = repository();
    let commit = git(&directory, &["rev-parse", "HEAD"]);
    let found = annotations(&directory);
    assert_eq!(found["dev.jobc.source-revision"], commit.trim());
    assert_eq!(found["dev.jobc.source-dirty"], "false");
    assert_eq!(found["dev.jobc.source-url"], "https://git.example/team/jobs.git");
    assert_eq!(found["dev.jobc.version"], env!("CARGO_PKG_VERSION"));
    let object = directory.read("built/lab/kubernetes/02-job-hello.yaml");
    assert!(object.contains(&format!("jobc.dev/source-revision: {}", commit.trim())), "{object}");
    assert!(!object.contains("secret"), "{object}");
    directory.write("job.yaml", &format!("{HELLO}# changed\n"));
    let changed = annotations(&directory);
    assert_eq!(changed["dev.jobc.source-dirty"], "true");
    assert_eq!(changed["dev.jobc.plan-digest"], found["dev.jobc.plan-digest"]);
}

#[test]
fn comparisons_ignore_provenance() {
    let directory = repository();
    directory.jobc(&["build", "--provenance", "-o", "built"]).exits(0);
    directory.jobc(&["build", "-o", "plain"]).exits(0);
    let object = "lab/kubernetes/02-job-hello.yaml";
    assert_ne!(directory.read(&format!("built/{object}")), directory.read(&format!("plain/{object}")));
    assert_eq!(directory.jobc(&["diff", "built"]).exits(0).out, "no difference from `built`\n");
    directory.jobc(&["build", "--check", "-o", "built"]).exits(0);
    directory.jobc(&["build", "--check", "--provenance", "-o", "built"]).exits(0);
    directory.jobc(&["build", "--check", "--provenance", "-o", "plain"]).exits(1);
}

#[test]
fn a_repository_starts_no_programs() {
    let directory = repository();
    let run = "echo >> ran; cat";
    for (key, value) in [
        ("core.fsmonitor", "echo >> ran; false"),
        ("filter.x.clean", run),
        ("filter.x.process", run),
        ("filter.x.required", "true"),
        ("core.sshCommand", run),
    ] {
        git(&directory, &["config", key, value]);
    }
    directory.write(".git/info/attributes", "* filter=x\n");
    // Git compares its content: size and time differ from those in the index.
    directory.write("job.yaml", &format!("{HELLO}# changed\n"));
    assert_eq!(annotations(&directory)["dev.jobc.source-dirty"], "true");
    assert!(!directory.path().join("ran").exists());
}

#[test]
fn provenance_works_without_a_repository() {
    let directory = Directory::with_job(HELLO);
    directory.write("targets.yaml", TARGETS);
    let found = annotations(&directory);
    assert!(found["dev.jobc.plan-digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(found["dev.jobc.source-revision"], Value::Null);
}
