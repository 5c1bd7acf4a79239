//! A secret's value never gets anywhere: not into a file, not onto a terminal.

use crate::directory::{Directory, Run, binary, contents, examples};

/// The values that must never be printed.
const VALUE: &str = "hunter2-Zm9vYmFy";

/// Secrets at every allowed place.
const EVERYWHERE: &str = "\
version: 1
name: secretive
image:
  from: busybox:1.36
  secrets: [pip]
  run: [\"true\"]
secrets:
  pip: {env: PIP_TOKEN}
  key: {file: ./key.pem}
  wandb: {env: WANDB_API_KEY}
  shared: {store: {name: vault, key: token}}
registries:
  registry.example.com: {username: robot, password: {secret: key}}
roles:
  main:
    resources: {cpu: 1, memory: 64MiB, gpu: 0}
    env: {WANDB_API_KEY: \"${{ secrets.wandb }}\", TOKEN: \"${{ secrets.shared }}\"}
    files: {/root/.ssh/id: {secret: key, mode: \"0600\"}}
    run: env
";

/// Runs the binary where every secret has the value.
fn run(directory: &Directory, arguments: &[&str]) -> Run {
    let names = ["PIP_TOKEN", "WANDB_API_KEY", "JUPYTER_TOKEN", "HF_TOKEN"];
    Run::of(directory.command(binary()).args(arguments).envs(names.map(|name| (name, VALUE))))
}

#[track_caller]
fn assert_silent(run: &Run) {
    assert!(!run.out.contains(VALUE) && !run.err.contains(VALUE), "{}\n{}", run.out, run.err);
}

/// Builds in every way and looks at each byte that came of it.
fn check(directory: &Directory, job: &str) {
    directory.write("key.pem", VALUE);
    let before = contents(directory.path());
    for arguments in [
        &["build", job][..],
        &["build", job, "--stdout"],
        &["plan", job],
        &["check", job, "--format", "json"],
        &["build", job, "--allow-lossy"],
    ] {
        assert_silent(&run(directory, arguments));
    }
    for (path, bytes) in contents(directory.path()).into_iter().filter(|(path, _)| !before.contains_key(path))
    {
        assert!(!String::from_utf8_lossy(&bytes).contains(VALUE), "{path} holds the value of a secret");
    }
}

#[test]
fn no_output_holds_a_value() {
    let directory = Directory::with_job(EVERYWHERE);
    run(&directory, &["build", "--target", "kubernetes", "--allow-lossy"]).exits(0);
    check(&directory, "job.yaml");
}

#[test]
fn no_example_leaks() {
    for example in examples() {
        let name = example.file_name().unwrap();
        let directory = Directory::example(name);
        check(&directory, if directory.path().join("job.json").exists() { "job.json" } else { "job.yaml" });
    }
}

/// A secret in a place where it would leak is an error that does not leak it either.
#[test]
fn no_finding_holds_a_value() {
    for (from, to) in [
        ("run: env", "run: echo ${{ secrets.wandb }}"),
        ("run: env", "run: env\n    workdir: /${{ secrets.key }}"),
        ("TOKEN: \"${{ secrets.shared }}\"", "TOKEN: \"Bearer ${{ secrets.wandb }}\""),
        ("{env: WANDB_API_KEY}", "{env: WANDB_API_KEY, file: key.pem}"),
        ("{secret: key}", "{secret: kye}"),
    ] {
        assert!(EVERYWHERE.contains(from));
        let directory = Directory::with_job(&EVERYWHERE.replace(from, to));
        directory.write("key.pem", VALUE);
        for format in ["text", "short", "json", "sarif", "github"] {
            let run = run(&directory, &["check", "--format", format]).exits(1);
            assert_silent(&run);
        }
        assert!(directory.out().is_empty());
    }
}
