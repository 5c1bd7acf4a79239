//! `jobc test`: golden files of a repository's jobs.

use serde_json::Value;

use crate::directory::{Directory, HELLO};

const TARGETS: &str = "version: 1\ntargets:\n  lab: {backends: [kubernetes], kubernetes: {namespace: ml}}\n  here: {backends: [oci]}\n";

/// Two jobs with golden files.
fn repository() -> Directory {
    let directory = Directory::new();
    // The root of a repository: above it, no targets file is looked for.
    directory.write(".git/HEAD", "");
    directory.write("targets.yaml", TARGETS);
    directory.write("jobs/a/job.yaml", HELLO);
    directory.write("jobs/b/job.yaml", &HELLO.replace("name: hello", "name: other"));
    directory.jobc(&["test", "--accept"]).exits(0);
    directory
}

/// The text with TIME in the place of every duration.
fn without_times(text: &str) -> String {
    let replace = |text: &str, before: &str, after: &str| {
        let mut parts = text.split(before);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (_, rest) = part.split_once(after).unwrap();
            out += &format!("{before}TIME{after}{rest}");
        }
        out
    };
    let last = text.lines().last().unwrap_or_default();
    if last.contains(" in ") {
        let at = text.len() - last.len() - 1;
        return format!("{}{}", &text[..at], replace(&text[at..], " in ", " s"));
    }
    replace(text, " time=\"", "\"")
}

#[test]
fn jobs_are_compared_with_their_golden_files() {
    let directory = repository();
    assert!(directory.path().join("jobs/a/golden/hello/lab/plan.json").is_file());
    let run = directory.jobc(&["test"]).exits(0);
    assert_eq!(without_times(&run.out), "2 job files: 2 same in TIME s\n");
    directory.write(
        "jobs/b/job.yaml",
        &HELLO.replace("name: hello", "name: other").replace("count: 2", "count: 3"),
    );
    directory.write("jobs/c/job.yaml", &HELLO.replace("name: hello", "name: third"));
    directory.write("jobs/d/job.yaml", "version: 1\nname: d\n");
    let run = directory.jobc(&["test", "--target", "lab", "--junit", "reports/jobc.xml"]).exits(1);
    insta::assert_snapshot!("changes", without_times(&run.out));
    let report = std::fs::read_to_string(directory.path().join("reports/jobc.xml")).unwrap();
    insta::assert_snapshot!("junit", without_times(&report));
    // A comment changes nothing.
    directory.write("jobs/a/job.yaml", &format!("# a comment\n{HELLO}"));
    // A part of the repository.
    assert_eq!(
        without_times(&directory.jobc(&["test", "jobs/a"]).exits(0).out),
        "1 job file: 1 same in TIME s\n"
    );
}

#[test]
fn differences_are_accepted() {
    let directory = repository();
    directory.write("jobs/b/job.yaml", &HELLO.replace("name: hello", "name: renamed"));
    let found: Value =
        serde_json::from_str(&directory.jobc(&["test", "--format", "json"]).exits(1).out).unwrap();
    assert_eq!((&found["same"], &found["changed"]), (&1.into(), &1.into()));
    assert_eq!(found["results"][1]["obsolete"], serde_json::json!(["other/here", "other/lab"]));
    let run = directory.jobc(&["test", "--accept"]).exits(0);
    assert!(run.out.contains("accepted  jobs/b/job.yaml"), "{}", run.out);
    assert!(!directory.path().join("jobs/b/golden/other").exists());
    directory.jobc(&["test"]).exits(0);
    // A file that somebody else has put there is kept, and reported.
    directory.write("jobs/b/golden/renamed/lab/notes.txt", "mine");
    directory.write("jobs/b/job.yaml", HELLO);
    let run = directory.jobc(&["test", "--accept"]).exits(1);
    assert!(run.out.contains("contains `notes.txt`, which jobc did not write"), "{}", run.out);
    assert!(directory.path().join("jobs/b/golden/renamed/lab/notes.txt").is_file());
}

/// With one of two targets named, the golden files of the other are neither compared nor obsolete.
#[test]
fn the_rest_is_left_alone() {
    let directory = repository();
    directory.jobc(&["test", "--target", "here"]).exits(0);
    directory.jobc(&["test", "--golden", "a/b"]).exits(2).says("write a name without `/`");
    directory.jobc(&["test", "none"]).exits(1);
    let empty = Directory::new();
    empty.jobc(&["test"]).exits(2).says("without a job.yaml");
}
