//! `jobc diff`: what a change of a job changes, compared with a revision, built files and another job file.

use serde_json::Value;

use crate::directory::{Directory, HELLO, command};

const TARGETS: &str = "version: 1\ntargets:\n  lab: {backends: [kubernetes], kubernetes: {namespace: ml}}\n  here: {backends: [oci, cgroup]}\n";

/// A repository with the job in a directory of it.
fn repository() -> Directory {
    let directory = Directory::new();
    directory.write("jobs/job.yaml", HELLO);
    directory.write("jobs/targets.yaml", TARGETS);
    commit(&directory);
    directory
}

/// Makes a repository of what is in a directory.
fn commit(directory: &Directory) {
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--message=first"],
        &["tag", "v1"],
    ] {
        let ran = directory.command("git").args(arguments).status().unwrap();
        assert!(ran.success(), "git {arguments:?}");
    }
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
    let files = directory.jobc(&["diff", "v1", "--job", "jobs", "--artifacts"]).exits(1);
    insta::assert_snapshot!("changes_of_files_follow_those_of_the_job", files.out);
    assert!(files.out.starts_with(run.out.split("built files").next().unwrap()), "{}", files.out);
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
    let job = files.iter().find(|file| file["file"] == "kubernetes/02-job-hello.yaml").unwrap();
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
    assert!(run.out.starts_with("hello at here, lab: new\n"), "{}", run.out);
    let run = directory.jobc(&["diff", "-j", "jobs/more", "--artifacts"]).exits(1);
    assert!(run.out.contains("kubernetes/02-job-hello.yaml is new"), "{}", run.out);
}

/// The directories that a build without `-o` writes: of all jobs, of a job, of a target.
#[test]
fn a_job_is_compared_with_each_level_of_the_output() {
    let directory =
        Directory::with_job(&HELLO.replace("roles:\n", "data: {d: {source: ./d, mount: /d}}\nroles:\n"));
    directory.write("d/x", "x");
    directory.write(
        "targets.yaml",
        "version: 1\ntargets:\n  here: {backends: [oci]}\n  lab: {backends: [oci, cgroup]}\n",
    );
    directory.jobc(&["build"]).exits(0);
    directory.jobc(&["build", "-o", "flat"]).exits(0);
    let places = ["out", "out/hello", "out/hello/lab", "flat", "flat/lab"];
    for place in places {
        let run = directory.jobc(&["diff", place]).exits(0);
        assert_eq!(run.out, format!("no difference from `{place}`\n"));
        directory
            .jobc(&["diff", place, if place.ends_with("lab") { "out/hello/lab" } else { "out" }])
            .exits(0);
    }
    let job = directory.read("job.yaml");
    directory.write("job.yaml", &job.replace("count: 2", "count: 3"));
    let of_lab = directory.jobc(&["diff", "out/hello/lab"]).exits(1).out;
    assert!(of_lab.starts_with("hello at lab\n  params.count: 2 -> 3"), "{of_lab}");
    assert_eq!(directory.jobc(&["diff", "out", "--target", "lab"]).exits(1).out, of_lab);
    assert_eq!(directory.jobc(&["diff", "flat/lab"]).exits(1).out, of_lab);
    // A renamed job is known by its target in a directory without directories of jobs.
    directory.write("job.yaml", &job.replace("name: hello", "name: other"));
    assert!(directory.jobc(&["diff", "flat"]).exits(1).out.contains("name: hello -> other"));
    directory.jobc(&["diff", "out"]).exits(3).says(
        "`out` has no files of the job `other` for the target `here`, but of `hello` for `here` and 1 more; name the job",
    );
    directory
        .jobc(&["diff", "d"])
        .exits(3)
        .says("`d` has neither a job file nor files that `jobc build` has written");
}

/// Both sides are given: job files, directories of built files, revisions.
#[test]
fn two_sides_are_compared() {
    let directory = repository();
    directory.write("a.yaml", HELLO);
    directory.write("b.yaml", &changed().replace("name: hello", "name: other"));
    let field = "  roles.main.resources.memory: 64 MiB -> 128 MiB";
    let run = directory.jobc(&["diff", "a.yaml", "b.yaml", "--target", "local"]).exits(1);
    assert!(run.out.starts_with("other at local\n  name: hello -> other"), "{}", run.out);
    assert!(run.out.contains(field), "{}", run.out);
    assert!(!run.out.contains("is new"), "{}", run.out);
    directory.jobc(&["build", "a.yaml", "-o", "out-a"]).exits(0);
    directory.jobc(&["build", "a.yaml", "-o", "deep/er/out-a"]).exits(0);
    directory.write("b.yaml", &changed());
    directory.jobc(&["build", "b.yaml", "-o", "out-b"]).exits(0);
    for sides in [["out-a", "deep/er/out-a"], ["out-a", "a.yaml"], ["a.yaml", "deep/er/out-a"]] {
        let run = directory.jobc(&["diff", sides[0], sides[1]]).exits(0);
        assert_eq!(run.out, format!("no difference from `{}`\n", sides[0]));
    }
    for sides in [["out-a", "out-b"], ["a.yaml", "out-b"], ["deep/er/out-a", "b.yaml"]] {
        let run = directory.jobc(&["diff", sides[0], sides[1]]).exits(1);
        assert!(run.out.contains(field), "{sides:?}: {}", run.out);
    }
    directory.write("jobs/job.yaml", &changed());
    let run = directory.jobc(&["diff", "HEAD", "v1", "--job", "jobs"]).exits(0);
    assert_eq!(run.out, "no difference from `HEAD`\n");
    directory
        .jobc(&["diff", "HEAD", "v9", "--job", "jobs"])
        .exits(3)
        .says("or a revision of this repository");
    directory.jobc(&["diff", "a.yaml", "b.yaml", "--job", "jobs"]).exits(3).says("leave one out");
}

/// Paths back to the job depend on where files are built, and are not a difference.
#[test]
fn the_depth_of_built_files_is_no_difference() {
    let directory = Directory::new();
    let job = HELLO.replace("roles:\n", "data: {d: {source: ./d, mount: /d}}\nroles:\n");
    directory.write("job.yaml", &job);
    directory.write("d/x", "x");
    for place in ["built", "some/where/else", "../aside"] {
        directory.jobc(&["build", "-o", place, "--target", "local"]).exits(0);
        let run = directory.jobc(&["diff", place, "--target", "local"]).exits(0);
        assert!(run.out.starts_with("no difference"), "{}", run.out);
    }
    // The files of a revision are in another place, too.
    commit(&directory);
    let run = directory.jobc(&["diff", "HEAD", "built", "--target", "local"]).exits(0);
    assert_eq!(run.out, "no difference from `HEAD`\n");
}

/// The combinations of a role's matrix and of a job's are one line.
#[test]
fn equal_changes_of_combinations_are_merged() {
    let job = |memory: &str| {
        let matrix = "roles:\n  train:\n    matrix: {lr: [1, 2, 3]}\n    run: echo ${{ matrix.lr }}\n    resources: {cpu: 1, memory: ";
        format!(
            "version: 1\nname: sweep\nimage: busybox:1.36\nmatrix: {{seed: [1, 2]}}\n{matrix}{memory}}}\n"
        )
    };
    let directory = Directory::with_job(&job("32GiB"));
    directory.write("new.yaml", &job("64GiB"));
    let run = directory.jobc(&["diff", "job.yaml", "new.yaml", "--target", "kubernetes"]).exits(1);
    insta::assert_snapshot!(run.out);
}

/// A batch script and the job file that was made of it are the same job, until one of them changes.
#[test]
fn a_batch_script_is_compared_with_its_job_file() {
    const SCRIPT: &str = "#!/bin/bash\n#SBATCH -J pair -N 2 --ntasks-per-node=1 -c 4 --mem=8G -t 30\n#SBATCH -p gpu\nsrun ./train\n";
    let directory = Directory::new();
    directory.write("pair.sbatch", SCRIPT);
    directory.jobc(&["import", "pair.sbatch", "-o", "job.yaml", "--targets", "targets.yaml"]).exits(0);
    let same = directory.jobc(&["diff", "pair.sbatch", "job.yaml"]).exits(0);
    assert_eq!(same.out, "no difference from `pair.sbatch`\n");
    directory.write("pair.sbatch", &SCRIPT.replace("--mem=8G", "--mem=16G").replace("-N 2", "-N 3"));
    let run = directory.jobc(&["diff", "pair.sbatch", "job.yaml"]).exits(1);
    for change in ["instances", "memory"] {
        assert!(run.out.contains(change), "{}", run.out);
    }
    assert!(!run.out.contains("timeout"), "{}", run.out);
}
