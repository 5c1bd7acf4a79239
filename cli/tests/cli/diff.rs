//! `jobc diff`: what a change of a job changes, compared with a revision, built files and another job file.

use serde_json::Value;

use crate::directory::{Directory, HELLO, command};

const TARGETS: &str = "version: 1\ntargets:\n  lab: {backends: [kubernetes], kubernetes: {namespace: ml}}\n  here: {backends: [oci, cgroup]}\n";

/// A repository with the job in a directory of it.
fn repository() -> Directory {
    let directory = Directory::new();
    directory.write("jobs/job.yaml", HELLO);
    directory.write("jobs/targets.yaml", TARGETS);
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--message=first"],
        &["tag", "v1"],
    ] {
        let ran = directory.command("git").args(arguments).status().unwrap();
        assert!(ran.success(), "git {arguments:?}");
    }
    directory
}

fn changed() -> String {
    HELLO.replace("count: 2", "count: 3").replace("memory: 64MiB", "memory: 128MiB")
}

#[test]
fn a_job_is_compared_with_a_revision() {
    let directory = repository();
    assert_eq!(directory.jobc(&["diff", "--job", "jobs"]).exits(0).out, "no difference from `HEAD`\n");
    directory.write("jobs/job.yaml", &changed());
    let run = directory.jobc(&["diff", "v1", "--job", "jobs"]).exits(1);
    insta::assert_snapshot!(run.out);
    assert_eq!(
        directory.jobc(&["diff", "HEAD", "-j", "jobs/job.yaml"]).exits(1).out.lines().count(),
        run.out.lines().count()
    );
    // The repository is not changed.
    let status = directory.command("git").args(["status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), " M jobs/job.yaml\n");
}

#[test]
fn diff_prints_markdown_for_pull_requests() {
    let directory = repository();
    assert!(directory.jobc(&["diff", "--markdown", "-j", "jobs"]).exits(0).out.contains("no difference"));
    directory.write("jobs/job.yaml", &changed());
    insta::assert_snapshot!(
        directory.jobc(&["diff", "--markdown", "-j", "jobs", "--target", "lab"]).exits(1).out
    );
}

#[test]
fn a_job_is_compared_with_built_files_and_another_job() {
    let directory = Directory::with_job(HELLO);
    directory.write("targets.yaml", TARGETS);
    directory.jobc(&["build", "-o", "golden"]).exits(0);
    assert_eq!(directory.jobc(&["diff", "golden"]).exits(0).out, "no difference from `golden`\n");
    directory.write("other.yaml", HELLO);
    directory.jobc(&["diff", "other.yaml"]).exits(0);
    directory.write("job.yaml", &changed());
    let read = |base: &str| -> Value {
        serde_json::from_str(&directory.jobc(&["diff", base, "--format", "json"]).exits(1).out).unwrap()
    };
    let found = read("golden");
    assert_eq!(found, read("other.yaml"));
    let files = found["files"].as_array().unwrap();
    let job = files.iter().find(|file| file["file"] == "kubernetes/03-job-hello.yaml").unwrap();
    let change = &job["changes"][0];
    assert_eq!(
        (&change["place"], &change["old"], &change["new"]),
        (&"spec.completions".into(), &2.into(), &3.into())
    );
    assert_eq!(
        (&change["cause"]["spec"], &change["cause"]["start"][0]),
        (&"/roles/main/instances".into(), &7.into())
    );
    assert!(files.iter().any(|file| file["state"] == "added" && file["file"] == "oci/main-2/config.json"));
}

#[test]
fn errors_are_distinguished_from_differences() {
    let directory = repository();
    let diff = |arguments: &[&str]| directory.jobc(&[&["diff", "-j", "jobs"], arguments].concat());
    diff(&["v9"]).exits(3).says("or a revision of this repository");
    diff(&["--", "--upload-pack=x"]).exits(3).says("or a revision of this repository");
    directory.write("jobs/job.yaml", "version: 1\n");
    diff(&[]).exits(3).says("error");
    directory.jobc(&["diff", "-j", "none"]).exits(3).says("no such file");
    let outside = Directory::with_job(HELLO);
    let mut jobc = command(crate::directory::binary());
    let run = jobc
        .args(["diff"])
        .current_dir(outside.path())
        .env("GIT_CEILING_DIRECTORIES", outside.path().parent().unwrap());
    crate::directory::Run::of(run).exits(3).says("is not in a Git repository");
}

/// A job that is not in the revision is new as a whole.
#[test]
fn a_new_job_is_reported_as_new() {
    let directory = repository();
    directory.write("jobs/more/job.yaml", HELLO);
    let run = directory.jobc(&["diff", "-j", "jobs/more"]).exits(1);
    assert!(run.out.contains("kubernetes/03-job-hello.yaml is new"), "{}", run.out);
}
