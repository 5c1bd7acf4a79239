//! `jobc run` of jobs: what counts as one, the target, and the report of each outcome. tests/jobs has the rest.

use serde_json::Value;

use crate::directory::{Directory, HELLO, Run, binary};

/// A job of the host's own files with one task.
fn job(name: &str, script: &str) -> String {
    format!("version: 1\nname: {name}\nimage: host\nroles:\n  main:\n    shell: sh\n    run: {script}\n")
}

#[test]
fn a_job_is_a_file_a_directory_or_a_built_plan() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build", "--target", "local"]).exits(0);
    let refused = |what: &[&str]| {
        let run =
            directory.jobc(&[&["run", "--pull", "never", "--allow-unenforced"], what].concat()).exits(125);
        run.says("`image`: the image `busybox:1.36` is not in the image store");
    };
    refused(&[]);
    refused(&["job.yaml"]);
    refused(&["."]);
    refused(&["out/hello/local"]);
    refused(&["out/hello/local/plan.json"]);
    directory
        .jobc(&["run", "--set", "count=1", "out/hello/local"])
        .exits(125)
        .says("`--set` does not apply to the directory of a built plan");
    let empty = Directory::new();
    empty.jobc(&["run"]).exits(125).says("no job.yaml in the current directory; name a job file");
}

/// What the compiler finds is shown as `jobc build` shows it, and nothing is started.
#[test]
fn a_job_with_errors_is_not_started() {
    let directory = Directory::with_job(&HELLO.replace("resources", "resource"));
    let built = directory.jobc(&["build", "--target", "local"]).exits(1);
    let run = directory.jobc(&["run"]).exits(125);
    assert_eq!(run.err, built.err);
    assert!(run.err.contains("job.yaml:8:5"), "{}", run.err);
    assert!(!directory.path().join(".records/jobc/jobs").exists(), "a record was made");
}

/// `jobc check` names them before, and is not stopped by them.
#[test]
fn a_check_notes_why_a_run_would_fail_on_this_host() {
    let text = "version: 1\nname: lacks\nimage: host\ndata: {in: {source: ./in, mount: /data}}\nroles:\n  \
                main: {run: [nonesuch, --lr], resources: {memory: 4096TiB}}\n  \
                cards: {run: [nvidia-smi], resources: {gpu: 99}}\n  \
                script: {shell: sh, run: cd /}\n  other: {image: ./x.tar, run: [x]}\n";
    let directory = Directory::with_job(text);
    let run = directory.jobc(&["check"]).exits(0);
    let notes: Vec<&str> = run
        .err
        .split("note: `jobc run` would fail on this host: ")
        .skip(1)
        .filter_map(|note| note.lines().next())
        .filter(|note| !note.contains("nvidia-smi"))
        .collect();
    let path = directory.path();
    assert_eq!(notes.len(), 5, "{}", run.err);
    assert!(notes[0].starts_with("role `cards` requests "), "{}", run.err);
    assert!(notes[0].contains(", and this host has "), "{}", run.err);
    assert_eq!(
        notes[1],
        format!("`roles.other.image`: cannot open `{path}/./x.tar`: no such file or directory (ENOENT)")
    );
    assert_eq!(notes[2], format!("`data.in.source`: cannot mount `{path}/in`: no such file or directory"));
    assert_eq!(notes[3], "cannot execute `nonesuch` of role `main`: no such file or directory");
    assert!(notes[4].starts_with("the job needs 4096 TiB of memory, this host has "), "{}", run.err);
    // `jobc run` reports the first of them.
    directory.jobc(&["run"]).exits(125).says("role `cards` requests ");
    for options in [&["--target", "local"][..], &["--backend", "oci"], &["job.yaml", "job.yaml"]] {
        let run = directory.jobc(&[&["check"], options].concat()).exits(0);
        assert!(!run.err.contains("note: "), "{options:?}: {}", run.err);
    }
    let json = directory.jobc(&["check", "--format", "json"]).exits(0);
    assert_eq!(json.err, "");
}

/// The output of the run follows, so a warning is one line, with the command that shows all of it.
#[test]
fn a_warning_before_a_run_is_one_line() {
    let directory = Directory::with_job(&job("host", "python3 train.py"));
    let short = "job.yaml:7:10: warning[J0352]: `train.py` of role `main` is not in the container: with `image: host`, \
                 commands start in `/`\n1 warning; ";
    for (options, check) in
        [(&[][..], "jobc check"), (&["job.yaml", "--target", "local"], "jobc check job.yaml --target local")]
    {
        let run = directory.jobc(&[&["run", "--dry-run"], options].concat());
        assert!(run.err.starts_with(&format!("{short}`{check}` shows it in full\n")), "{}", run.err);
        let words: Vec<&str> = check.split(' ').skip(1).collect();
        directory.jobc(&words).exits(0).says("help: write `image: {host: {cwd: true}}`");
    }
}

#[test]
fn one_target_with_the_oci_backend_is_chosen() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let targets = |text: &str| {
        let directory = Directory::with_job(&HELLO.replace("busybox:1.36", "host"));
        directory.write("targets.yaml", &format!("version: 1\n{text}"));
        directory
    };
    let kubernetes = "lab: {backends: [kubernetes]}";
    let chosen = |directory: &Directory, options: &[&str], target: &str| {
        directory.jobc(&[&["run"], options].concat()).exits(0);
        let record: Value =
            serde_json::from_str(&directory.jobc(&["inspect", "--format", "json", "hello"]).exits(0).out)
                .unwrap();
        assert_eq!(record["target"], *target, "{options:?}");
    };
    let two = targets(&format!(
        "default: [here]\ntargets: {{here: {{backends: [oci]}}, there: {{backends: [oci]}}, {kubernetes}}}\n"
    ));
    chosen(&two, &[], "here");
    chosen(&two, &["--target", "there"], "there");
    two.jobc(&["run", "--target", "lab"]).exits(125).says("`jobc submit --target lab` sends a job there");
    two.jobc(&["run", "--target", "her"]).exits(125).says("did you mean `here`?");
    let by_variable = |target: &str, chosen: &str| {
        Run::of(two.command(binary()).arg("run").env("JOBC_TARGET", target)).exits(0);
        let record = two.jobc(&["inspect", "--format", "json", "hello"]).exits(0).out;
        assert_eq!(serde_json::from_str::<Value>(&record).unwrap()["target"], *chosen, "{target}");
    };
    by_variable("there", "there");
    // A default that cannot run here is passed over.
    by_variable("lab", "here");
    let unclear = targets("targets: {here: {backends: [oci]}, there: {backends: [oci]}}\n");
    unclear.jobc(&["run"]).exits(125).says("several targets are possible: `here` and `there`");
    // No target of the file fits, so it is the built-in one.
    chosen(&targets(&format!("targets: {{{kubernetes}}}\n")), &[], "local");
}

/// The streams, the line about the end, and the exit code of each ending.
#[test]
fn each_outcome_has_its_message_and_exit_code() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let run = |name: &str, script: &str, more: &str| -> (Directory, Run) {
        let directory = Directory::with_job(&(job(name, script) + more));
        let run = directory.jobc(&["run"]);
        (directory, run)
    };
    let (_, well) = run("ends-well", "echo out; echo err >&2", "");
    let well = well.exits(0).says("jobc: ends-well.1: succeeded");
    assert_eq!(well.out, "out\n");
    assert!(well.err.lines().any(|line| line == "err"), "{}", well.err);
    let (_, badly) = run("ends-badly", "exit 9", "");
    badly.exits(1).says("failed: main-0: exit 9");
    let (_, late) = run("ends-late", "sleep 60", "timeout: 1s\ngrace_period: 1s\n");
    late.exits(124).says("timed out after 1s");
    let directory =
        Directory::with_job(&job("ends-absent", "[absent-program]").replace("    shell: sh\n", ""));
    directory.jobc(&["run"]).exits(1).says("exit 127").says("cannot execute `absent-program`");
    let nothing = Directory::with_job(
        &(job("ends-unbegun", "echo never") + "data: {in: {source: ./absent, mount: /in}}\n"),
    );
    nothing.jobc(&["run"]).exits(125).says("could not start").says("no such file or directory");
}

#[test]
fn this_host_is_a_target_like_the_others() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = Directory::with_job(&job("submitted-here", "echo hello"));
    let id = directory.jobc(&["submit", "--target", "local"]).exits(0).out;
    let id = id.trim();
    directory.jobc(&["wait", id]).exits(0);
    assert_eq!(directory.jobc(&["logs", id]).exits(0).out, "hello\n");
    // No cluster hides the jobs of this host.
    let mut all = directory.command(binary());
    all.args(["ps", "--all", "-A"]).env("HOME", directory.path()).env_remove("KUBECONFIG");
    let all = Run::of(all.env_remove("KUBERNETES_SERVICE_HOST")).exits(0);
    assert!(all.out.contains(id), "{}", all.out);
    all.says("there is no kubeconfig");
    let followed = directory.jobc(&["submit", "--target", "local", "--follow"]).exits(0);
    assert!(followed.out.contains("hello"), "{}", followed.out);
    let refused = directory.jobc(&["submit", "--target", "local", "--replace"]).exits(2);
    refused.says("`--replace` does not apply to this host");
}

#[test]
fn a_detached_job_is_found_by_its_id() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = Directory::with_job(&job("left-alone", "echo done"));
    let id = directory.jobc(&["run", "--detach"]).exits(0).out;
    assert!(id.starts_with("left-alone.") && id.ends_with('\n'), "{id}");
    let id = id.trim();
    directory.jobc(&["wait", id]).exits(0);
    assert_eq!(directory.jobc(&["logs", id]).exits(0).out, "done\n");
    directory.jobc(&["inspect", "left-alon"]).exits(2).says("did you mean `left-alone`?");
    directory.jobc(&["rm", id]).exits(0);
    directory.jobc(&["inspect", id]).exits(2);
}
