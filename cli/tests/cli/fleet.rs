//! `examples/fleet`: what a team does with its twenty jobs.

use crate::directory::Directory;

const MEMORY: &str = "memory: 512GiB";

/// The fleet in a repository.
fn fleet() -> Directory {
    let directory = Directory::example("fleet");
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--message=first"],
    ] {
        let ran = directory.command("git").args(arguments).status().unwrap();
        assert!(ran.success(), "git {arguments:?}");
    }
    directory
}

#[test]
fn all_jobs_match_their_golden_files() {
    let directory = fleet();
    let run = directory.jobc(&["test", "jobs/tools/clean", "jobs/detection/detr-base"]).exits(0);
    assert!(run.out.starts_with("2 job files: 2 same in "), "{}", run.out);
    directory.jobc(&["test", "jobs"]).exits(1);
    directory.jobc(&["test", "--accept", "jobs"]);
    let run = directory.jobc(&["test", "jobs"]).exits(0);
    assert!(run.out.starts_with("20 job files: 20 same in "), "{}", run.out);
    directory.jobc(&["check", "--deny-warnings", "jobs"]).exits(0);
}

#[test]
fn a_change_of_a_template_shows_its_consequences() {
    let directory = fleet();
    let same = directory.jobc(&["diff", "--job", "jobs"]).exits(0);
    assert_eq!(same.out, "no difference from `HEAD`\n");
    let template = directory.read("templates/train.yaml");
    assert!(template.contains(MEMORY));
    directory.write("templates/train.yaml", &template.replace(MEMORY, "memory: 384GiB"));
    let run = directory.jobc(&["diff", "--job", "jobs"]).exits(1);
    insta::assert_snapshot!(run.out);
    directory.jobc(&["test", "jobs"]).exits(1);
}

#[test]
fn added_and_removed_jobs_are_reported() {
    let directory = fleet();
    directory.write("jobs/tools/hello/job.yaml", "version: 1\nname: hello\nimage: busybox:1.36\nroles: {main: {resources: {cpu: 1, memory: 64MiB}, run: echo hello}}\n");
    std::fs::remove_file(directory.path().join("jobs/tools/clean/job.yaml")).unwrap();
    let run = directory.jobc(&["diff", "--job", "jobs"]).exits(1);
    insta::assert_snapshot!(run.out);
    // Two directories, without Git.
    let run = directory.jobc(&["diff", "jobs/data", "--job", "jobs/evaluation", "--format", "json"]).exits(1);
    let changes: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let state = |job: &str| {
        let files = changes["files"].as_array().unwrap().iter();
        files.filter(|file| file["job"] == job).map(|file| file["state"].as_str().unwrap()).next()
    };
    assert_eq!((state("benchmark"), state("labels")), (Some("added"), Some("removed")));
    directory
        .jobc(&["diff", "targets.yaml", "--job", "jobs"])
        .exits(3)
        .says("name a directory or a revision");
    directory.jobc(&["diff", "no-revision", "--job", "jobs"]).exits(3);
}
