//! `jobc check --fix`: files after the fixes.

use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, HELLO};

const WRONG: &str = "version: 1\r\nname: hello\r\nimage: busybox:1.36\r\nroles:\r\n  main:\r\n    # 世界\r\n    resources: {cpus: 1, memory: 64}\r\n    run: echo hello\r\n    instnces: 2\r\n";

#[test]
fn safe_fixes_are_applied_and_other_findings_shown() {
    let directory = Directory::with_job(WRONG);
    let run = directory.jobc(&["check", "--fix"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r#"
job.yaml:7:17: fixed: write `cpu`
job.yaml:9:5: fixed: write `instances`
error[J0105]: `memory`: `64` has no unit
 --> job.yaml:7:33
  |
7 |     resources: {cpu: 1, memory: 64}␍
  |                                 ^^
  |
  = note: write `64GiB` or `64MiB`
help: write `64GiB`
  |
7 |     resources: {cpu: 1, memory: 64GiB}␍
  |                                   +++
help: write `64MiB`
  |
7 |     resources: {cpu: 1, memory: 64MiB}␍
  |                                   +++

for more about an error, run `jobc explain J0105`
1 error
1 finding can be fixed with `--fix --unsafe-fixes`, which applies guesses; review the changes

"#]]
    );
    assert_eq!(directory.read("job.yaml"), WRONG.replace("cpus", "cpu").replace("instnces", "instances"));
}

#[test]
fn guesses_are_applied_when_asked_for() {
    let directory = Directory::with_job(WRONG);
    directory.jobc(&["check", "--unsafe-fixes"]).exits(0).says("fixed: ").says("no findings");
    let fixed = WRONG.replace("cpus", "cpu").replace("instnces", "instances").replace("64}", "64GiB}");
    assert_eq!(directory.read("job.yaml"), fixed);
    directory.jobc(&["check", "--fix", "--unsafe-fixes"]).exits(0);
    let run = directory.jobc(&["check", "--fix"]).exits(0);
    assert!(run.err.starts_with("no findings\n"), "{}", run.err);
}

#[test]
fn tabs_are_replaced_if_any_width_nests_the_same() {
    let tabs = HELLO.replace("  ", "\t");
    let directory = Directory::with_job(&tabs);
    assert_ne!(tabs, HELLO);
    directory.jobc(&["check", "--fix"]).exits(0).says("fixed: indent with spaces");
    assert_eq!(directory.read("job.yaml"), HELLO);
}

#[test]
fn targets_files_are_fixed_too_and_links_stay() {
    let directory = Directory::with_job(HELLO);
    directory.write("real.yaml", "version: 1\ntargets:\n  lab: {backend: [oci]}\n");
    std::os::unix::fs::symlink("real.yaml", directory.path().join("targets.yaml")).unwrap();
    directory
        .jobc(&["check", "--target", "lab", "--fix"])
        .exits(0)
        .says("targets.yaml:3:9: fixed: write `backends`");
    assert_eq!(directory.read("real.yaml"), "version: 1\ntargets:\n  lab: {backends: [oci]}\n");
    assert!(directory.path().join("targets.yaml").is_symlink());
}

/// Each fix leads to the next one, and the last to a job that is built.
#[test]
fn a_target_for_slurm_is_fixed_with_and_without_a_job() {
    let directory = Directory::with_job(HELLO);
    directory.write("targets.yaml", "version: 1\ntargets:\n  lab:\n    backend: slurm\n    partition: gpu\n");
    directory.jobc(&["check", "--unsafe-fixes", "targets.yaml"]).exits(0).says("no findings");
    let fixed = directory.read("targets.yaml");
    assert!(fixed.ends_with("    backends: [slurm]\n    slurm:\n      partition: gpu\n"), "{fixed}");
    directory.jobc(&["check", "--fix"]).exits(0).says("fixed: write `backends: [oci, slurm]`");
    directory.jobc(&["build", "--target", "lab"]).exits(0);
    directory.jobc(&["build", "targets.yaml"]).exits(1).says("the file is a targets file, not a job file");
}

/// A Compose file is read as it is, and `jobc import` rewrites it; `--fix` leaves it alone.
#[test]
fn a_compose_file_becomes_a_job() {
    let directory = Directory::new();
    let service = "services:\n  train:\n    image: busybox:1.36\n    command: echo hello\n    cpus: 1\n    mem_limit: 64m\n    tty: true\n";
    directory.write("compose.yaml", service);
    directory
        .jobc(&["check", "--unsafe-fixes", "compose.yaml"])
        .exits(0)
        .says("`tty` needs no field in a job file");
    assert_eq!(directory.read("compose.yaml"), service);
    directory.jobc(&["build", "compose.yaml"]).exits(0);
    directory.jobc(&["import", "compose.yaml", "-o", "job.yaml"]).exits(0).says("wrote job.yaml");
    let job = directory.read("job.yaml");
    for field in ["image: busybox:1.36", "cpu: 1", "memory: 64MiB"] {
        assert!(job.contains(field), "{field} is not in:\n{job}");
    }
    directory.jobc(&["build"]).exits(0);
    let explained = directory.jobc(&["import", "--explain", "compose.yaml"]).exits(0).out;
    assert!(explained.contains("roles.train.resources.memory"), "{explained}");
    directory.write("other.yaml", "a: 1\n");
    directory.jobc(&["import", "other.yaml"]).exits(1).says("in none of the formats that are read");
    let line = ["import", "--", "docker", "run", "-m", "1g", "busybox:1.36", "true"];
    let written = directory.jobc(&line).exits(0).out;
    assert!(written.contains("memory: 1GiB"), "{written}");
}

#[test]
fn stdin_cannot_be_fixed() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["check", "--fix", "-"]).exits(2).says("`--fix` cannot write to stdin; name a file");
    directory.jobc(&["check", "--unsafe-fixes", "--watch"]).exits(2);
    directory.jobc(&["check", "--fix", "--watch"]).exits(2);
}

/// `jobc import DIRECTORY`: each file of another tool in a table, and a job file of each that is converted.
#[test]
fn a_directory_is_imported() {
    const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: main, image: 'python:3.12-slim', command: [python]}]}\n";
    let directory = Directory::new();
    let pods = format!("{}---\n{}", POD.replace("NAME", "one"), POD.replace("NAME", "two"));
    directory.write("k8s/pods.yaml", &pods);
    directory.write("k8s/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n");
    directory.write("slurm/train.sbatch", "#!/bin/bash\n#SBATCH -N 2 -p gpu\nsrun hostname\n");
    directory.write("notes.yaml", "a: 1\n");
    directory.write(".hidden/pod.yaml", POD);
    let run = directory.jobc(&["import", ".", "-o", "jobs"]).exits(0).says("3 of 3 jobs are converted");
    assert!(run.out.contains("k8s/pods.yaml (one)") && !run.out.contains("service"), "{}", run.out);
    assert!(directory.read("jobs/k8s/pods/two/job.yaml").contains("name: two"));
    assert!(directory.read("jobs/slurm/train/targets.yaml").contains("partition: gpu"));
    directory.jobc(&["check", "jobs/k8s/pods/one/job.yaml"]).exits(0);
    directory.jobc(&["import", ".", "-o", "jobs"]).exits(2).says("--force");

    directory.write("k8s/broken.yaml", &POD.replace("command", "comand"));
    let json = directory.jobc(&["import", "k8s", "--format", "json"]).exits(1).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["jobs"][0]["converted"], false, "{json}");
    assert_eq!(json["jobs"][0]["findings"][2]["line"], 4, "{json}");
    assert_eq!(json["jobs"][1]["name"], "one", "{json}");

    directory.jobc(&["import", "k8s/pods.yaml"]).exits(1).says("J0636");
    let one = directory.jobc(&["import", "k8s/pods.yaml", "--name", "two"]).exits(0).out;
    assert!(one.contains("name: two"), "{one}");
    directory.jobc(&["import", "k8s/pods.yaml", "--name", "three"]).exits(1).says("no job `three`");
    directory.jobc(&["import", "k8s", "--explain"]).exits(2).says("is for one file");
    directory.write("empty/a.txt", "");
    directory.jobc(&["import", "empty"]).exits(2).says("no file of another tool");
}
