//! `jobc run` of jobs: what is taken for one, for which target, and how each ending is told. tests/jobs has the rest.

use serde_json::Value;

use crate::folder::{Folder, HELLO, Run};

/// A job of the machine's own files with one task.
fn job(name: &str, script: &str) -> String {
    format!("version: 1\nname: {name}\nimage: host\nroles:\n  main:\n    shell: sh\n    run: {script}\n")
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root runs jobs everywhere; tests/jobs runs them as other users");
    }
    root
}

#[test]
fn a_job_is_a_file_a_folder_or_a_built_plan() {
    let folder = Folder::with_job(HELLO);
    folder.jobc(&["build", "--target", "local"]).exits(0);
    let refused = |what: &[&str]| {
        let run = folder.jobc(&[&["run", "--pull", "never"], what].concat()).exits(125);
        run.says("`image`: the image `busybox:1.36` is not here");
    };
    refused(&[]);
    refused(&["job.yaml"]);
    refused(&["."]);
    refused(&["out/hello/local"]);
    refused(&["out/hello/local/plan.json"]);
    folder
        .jobc(&["run", "--set", "count=1", "out/hello/local"])
        .exits(125)
        .says("`--set` means nothing for the folder of a built plan");
    let empty = Folder::new();
    empty.jobc(&["run"]).exits(125).says("there is no job.yaml here; name a job file");
}

/// What the compiler finds is shown as `jobc build` shows it, and nothing is started.
#[test]
fn a_job_with_errors_is_not_started() {
    let folder = Folder::with_job(&HELLO.replace("resources", "resource"));
    let built = folder.jobc(&["build", "--target", "local"]).exits(1);
    let run = folder.jobc(&["run"]).exits(125);
    assert_eq!(run.err, built.err);
    assert!(run.err.contains("job.yaml:8:5"), "{}", run.err);
    assert!(!folder.path().join(".records/jobc/jobs").exists(), "a record was made");
}

#[test]
fn one_target_with_the_oci_backend_is_chosen() {
    if !is_root() {
        return;
    }
    let targets = |text: &str| {
        let folder = Folder::with_job(&HELLO.replace("busybox:1.36", "host"));
        folder.write("targets.yaml", &format!("version: 1\n{text}"));
        folder
    };
    let kubernetes = "lab: {backends: [kubernetes]}";
    let chosen = |folder: &Folder, options: &[&str], target: &str| {
        folder.jobc(&[&["run"], options].concat()).exits(0);
        let record: Value =
            serde_json::from_str(&folder.jobc(&["inspect", "--format", "json", "hello"]).exits(0).out)
                .unwrap();
        assert_eq!(record["target"], *target, "{options:?}");
    };
    let two = targets(&format!(
        "default: [here]\ntargets: {{here: {{backends: [oci]}}, there: {{backends: [oci]}}, {kubernetes}}}\n"
    ));
    chosen(&two, &[], "here");
    chosen(&two, &["--target", "there"], "there");
    two.jobc(&["run", "--target", "lab"]).exits(125).says("no target has the backends asked for: `oci`");
    two.jobc(&["run", "--target", "her"]).exits(125).says("did you mean `here`?");
    let unclear = targets("targets: {here: {backends: [oci]}, there: {backends: [oci]}}\n");
    unclear.jobc(&["run"]).exits(125).says("the job could run for `here` and `there`; choose one");
    // None of the file's fits, so it is the built-in one.
    chosen(&targets(&format!("targets: {{{kubernetes}}}\n")), &[], "local");
}

/// The streams, the line about the end, and the exit code of each ending.
#[test]
fn each_ending_has_its_line_and_its_code() {
    if !is_root() {
        return;
    }
    let run = |name: &str, script: &str, more: &str| -> (Folder, Run) {
        let folder = Folder::with_job(&(job(name, script) + more));
        let run = folder.jobc(&["run"]);
        (folder, run)
    };
    let (_, well) = run("ends-well", "echo out; echo err >&2", "");
    let well = well.exits(0).says("jobc: ends-well.1: succeeded");
    assert_eq!(well.out, "out\n");
    assert!(well.err.contains("\nerr\n"), "{}", well.err);
    let (_, badly) = run("ends-badly", "exit 9", "");
    badly.exits(1).says("failed: `main` reached min_failed 1 (main-0: exit 9)");
    let (_, late) = run("ends-late", "sleep 60", "timeout: 1s\ngrace_period: 1s\n");
    late.exits(124).says("timed out after 1s");
    let folder = Folder::with_job(&job("ends-absent", "[absent-program]").replace("    shell: sh\n", ""));
    folder.jobc(&["run"]).exits(1).says("exit 127").says("cannot execute `absent-program`");
    let nothing = Folder::with_job(
        &(job("ends-unbegun", "echo never") + "data: {in: {source: ./absent, mount: /in}}\n"),
    );
    nothing.jobc(&["run"]).exits(125).says("could not start").says("it is not there");
}

#[test]
fn a_detached_job_is_found_by_its_id() {
    if !is_root() {
        return;
    }
    let folder = Folder::with_job(&job("left-alone", "echo done"));
    let id = folder.jobc(&["run", "--detach"]).exits(0).out;
    assert!(id.starts_with("left-alone.") && id.ends_with('\n'), "{id}");
    let id = id.trim();
    folder.jobc(&["wait", id]).exits(0);
    assert_eq!(folder.jobc(&["logs", id]).exits(0).out, "done\n");
    folder.jobc(&["inspect", "left-alon"]).exits(2).says("did you mean `left-alone`?");
    folder.jobc(&["rm", id]).exits(0);
    folder.jobc(&["inspect", id]).exits(2);
}
