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
    // A foreign file is kept, and reported.
    directory.write("jobs/b/golden/renamed/lab/notes.txt", "mine");
    directory.write("jobs/b/job.yaml", HELLO);
    let run = directory.jobc(&["test", "--accept"]).exits(1);
    assert!(run.out.contains("contains `notes.txt`, which jobc did not write"), "{}", run.out);
    assert!(directory.path().join("jobs/b/golden/renamed/lab/notes.txt").is_file());
}

#[test]
fn a_job_is_tested_from_its_own_directory() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["test", "--accept"]).exits(0);
    assert_eq!(without_times(&directory.jobc(&["test"]).exits(0).out), "1 job file: 1 same in TIME s\n");
    assert_eq!(without_times(&directory.jobc(&["test", "."]).exits(0).out), "1 job file: 1 same in TIME s\n");
}

/// With one of two targets named, the golden files of the other are neither compared nor obsolete.
#[test]
fn other_files_are_left_alone() {
    let directory = repository();
    directory.jobc(&["test", "--target", "here"]).exits(0);
    directory.jobc(&["test", "--golden", "a/b"]).exits(2).says("write a name without `/`");
    directory.jobc(&["test", "none"]).exits(1);
    let empty = Directory::new();
    empty.jobc(&["test"]).exits(2).says("without a job.yaml");
}

/// How many jobs were not compiled.
fn cached(directory: &Directory, options: &[&str], exits: i32) -> u64 {
    let cache = directory.path().join(".cache").into_string();
    let mut command = directory.command(crate::directory::binary());
    command.args(["test", "--format", "json"]).args(options).env("XDG_CACHE_HOME", cache);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(exits), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    result["cached"].as_u64().unwrap()
}

#[test]
fn only_changed_jobs_are_compiled() {
    let directory = repository();
    assert_eq!(cached(&directory, &[], 0), 0);
    assert_eq!(cached(&directory, &[], 0), 2);
    assert_eq!(cached(&directory, &["--no-cache"], 0), 0);
    // Other options are other tests.
    assert_eq!(cached(&directory, &["--target", "lab"], 0), 0);
    assert_eq!(cached(&directory, &["--target", "lab"], 0), 2);
    // A comment makes one job new to the cache, and the targets file all.
    directory.write("jobs/a/job.yaml", &format!("# a comment\n{HELLO}"));
    assert_eq!(cached(&directory, &[], 0), 1);
    directory.write("targets.yaml", &format!("# a comment\n{TARGETS}"));
    assert_eq!(cached(&directory, &[], 0), 0);
    assert_eq!(cached(&directory, &[], 0), 2);
    // A file that was looked for.
    directory.write("jobs/jobc.lock", "");
    directory.write("jobs/targets.yaml", TARGETS);
    assert_eq!(cached(&directory, &[], 0), 0);
}

#[test]
fn the_cache_hides_no_difference() {
    let directory = repository();
    cached(&directory, &[], 0);
    let golden = "jobs/a/golden/hello/lab/plan.json";
    let plan = directory.read(golden);
    directory.write(golden, &plan.replace("hello", "other"));
    for _ in 0..2 {
        assert_eq!(cached(&directory, &[], 1), 1, "a difference is never kept");
    }
    directory.write(golden, &plan);
    assert_eq!(cached(&directory, &[], 0), 2);
    // A golden file more, or of another job.
    directory.write("jobs/a/golden/hello/lab/more.txt", "");
    assert_eq!(cached(&directory, &[], 1), 1);
    std::fs::remove_file(directory.path().join("jobs/a/golden/hello/lab/more.txt")).unwrap();
    directory.write("jobs/a/golden/gone/lab/plan.json", "{}");
    assert_eq!(cached(&directory, &[], 1), 1);
    std::fs::remove_dir_all(directory.path().join("jobs/a/golden/gone")).unwrap();
    // An entry that is damaged, or of another program.
    let entries: Vec<_> =
        directory.path().join(".cache/jobc/test").read_dir_utf8().unwrap().flatten().collect();
    assert_eq!(entries.len(), 2);
    let text = std::fs::read_to_string(entries[0].path()).unwrap();
    std::fs::write(entries[0].path(), text.replace("\"program\":\"", "\"program\":\"x")).unwrap();
    std::fs::write(entries[1].path(), "{").unwrap();
    assert_eq!(cached(&directory, &[], 0), 0);
}
