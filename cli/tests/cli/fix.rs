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
