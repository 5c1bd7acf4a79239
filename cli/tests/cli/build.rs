//! `jobc build`: what is written where, what is left alone, `--check` and `--stdout`.

use std::fs;
use std::time::SystemTime;

use camino::Utf8PathBuf;
use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, HELLO, assert_same, contents};

#[test]
fn build_prints_a_table_of_written_files_and_totals() {
    let directory = Directory::with_job(HELLO);
    let run = directory.jobc(&["build"]).exits(0);
    assert_data_eq!(
        run.out,
        str![[r"
target  backend  files  written to
local   oci          2  out/hello/local/oci
local   cgroup      24  out/hello/local/cgroup
hello: 2 instances, 2 CPUs, 128 MiB of memory
built for this host; for others: `--target kubernetes`, `--target openpai`, or a targets file

"]]
    );
    assert_data_eq!(run.err, str![]);
    let run = directory
        .jobc(&["build", "--target", "local", "--target", "kubernetes", "--target", "openpai"])
        .exits(0);
    assert_data_eq!(
        run.out,
        str![[r"
target      backend     files  written to
local       oci             2  out/hello/local/oci (unchanged)
local       cgroup         24  out/hello/local/cgroup (unchanged)
kubernetes  kubernetes      2  out/hello/kubernetes/kubernetes
openpai     openpai         1  out/hello/openpai/openpai
hello: 2 instances, 2 CPUs, 128 MiB of memory

"]]
    );
    assert_data_eq!(run.err, str![]);
    let paths: Vec<Utf8PathBuf> = directory.out().into_keys().collect();
    for path in [
        "local/plan.json",
        "local/oci/main-1/config.json",
        "local/cgroup/main-0/v2/memory.max",
        "openpai/openpai/job.yaml",
    ] {
        assert!(paths.contains(&Utf8PathBuf::from("hello").join(path)), "{path} is not among {paths:?}");
    }
}

#[test]
fn a_second_build_reports_no_changes() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build"]).exits(0);
    let times = |directory: &Directory| -> Vec<(Utf8PathBuf, SystemTime)> {
        let out = directory.path().join("out");
        let time = |path: &Utf8PathBuf| fs::metadata(out.join(path)).unwrap().modified().unwrap();
        directory.out().into_keys().map(|path| (path.clone(), time(&path))).collect()
    };
    let before = times(&directory);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let run = directory.jobc(&["build"]).exits(0);
    let rows: Vec<&str> = run.out.lines().filter(|line| line.contains(" out/")).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.ends_with("(unchanged)")), "{}", run.out);
    assert_eq!(times(&directory), before);

    // Unchanged files also keep their time.
    directory.write("job.yaml", &HELLO.replace("64MiB", "65MiB"));
    let run = directory.jobc(&["build"]).exits(0);
    assert!(!run.out.contains("unchanged"), "{}", run.out);
    let after = times(&directory);
    let kept = |path: &str| {
        before.iter().chain(&after).filter(|(p, _)| p == path).map(|(_, time)| time).collect::<Vec<_>>()
    };
    let same = kept("hello/local/cgroup/main-0/v2/cpu.max");
    assert_eq!(same[0], same[1]);
    let changed = kept("hello/local/cgroup/main-0/v2/memory.max");
    assert_ne!(changed[0], changed[1]);
}

#[test]
fn check_prints_a_diff_only_if_files_differ() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build", "--check", "--backend", "cgroup"]).exits(1).says("nothing is built");
    assert!(directory.out().is_empty(), "`--check` writes nothing");

    directory.jobc(&["build"]).exits(0);
    let built = directory.out();
    let run = directory.jobc(&["build", "--check"]).exits(0);
    assert_eq!((run.out, run.err), (String::new(), String::new()));

    directory.write("job.yaml", &HELLO.replace("64MiB", "65MiB"));
    let run = directory.jobc(&["build", "--check"]).exits(1).says("run `jobc build` to write them");
    let diff = "\
--- out/hello/local/cgroup/main-0/v2/memory.max
+++ out/hello/local/cgroup/main-0/v2/memory.max
@@ -1 +1 @@
-67108864
+68157440
";
    assert!(run.out.contains(diff), "{}", run.out);
    assert_same(&directory.out(), &built);
}

#[test]
fn check_detects_extra_and_missing_files() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build"]).exits(0);
    directory.write("out/hello/local/oci/main-7/config.json", "{}");
    let run = directory.jobc(&["build", "--check"]).exits(1);
    assert_eq!(run.out, "only on disk: out/hello/local/oci/main-7/config.json\n");
    fs::remove_dir_all(directory.path().join("out/hello/local/oci/main-7")).unwrap();
    fs::remove_file(directory.path().join("out/hello/local/plan.json")).unwrap();
    let run = directory.jobc(&["build", "--check"]).exits(1);
    assert!(run.out.starts_with("--- /dev/null\n+++ out/hello/local/plan.json\n"), "{}", run.out);
}

#[test]
fn files_of_removed_tasks_are_deleted() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build", "--set", "count=3"]).exits(0);
    assert!(directory.path().join("out/hello/local/oci/main-2").exists());
    directory.jobc(&["build", "--set", "count=2"]).exits(0);
    assert!(!directory.path().join("out/hello/local/oci/main-2").exists());
    assert!(directory.path().join("out/hello/local/oci/main-1").exists());
}

#[test]
fn stdout_prints_what_a_build_writes_and_writes_nothing() {
    let directory = Directory::with_job(HELLO);
    let run = directory.jobc(&["build", "--stdout", "--backend", "kubernetes"]).exits(0);
    assert!(directory.out().is_empty());
    assert!(run.out.starts_with("---\n# kubernetes/"), "{}", run.out);
    assert!(!run.out.contains("==>"), "a YAML stream holds nothing else: {}", run.out);
    let all = directory.jobc(&["build", "--stdout"]).exits(0).out;
    directory.jobc(&["build"]).exits(0);
    for (path, bytes) in directory.out() {
        assert!(all.contains(std::str::from_utf8(&bytes).unwrap()), "{path} was not printed");
    }
}

#[test]
fn another_directory_gets_the_same_files() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build"]).exits(0);
    directory.jobc(&["build", "-o", "deep/../made"]).exits(0);
    assert_same(
        &contents(&directory.path().join("made/local/cgroup")),
        &contents(&directory.path().join("out/hello/local/cgroup")),
    );
    assert!(!directory.path().join("deep").exists());
    let elsewhere = Directory::new();
    let made = elsewhere.path().join("x");
    directory.jobc(&["build", "--output", made.as_str()]).exits(0);
    assert_same(
        &contents(&made.join("local/cgroup")),
        &contents(&directory.path().join("out/hello/local/cgroup")),
    );
}

/// A relative mount is found from the bundle, regardless of the output directory.
#[test]
fn mounts_of_relative_paths_point_back_to_the_job() {
    let directory = Directory::new();
    let job = HELLO.replace("params:", "data: {set: {source: ./data, mount: /data}}\nparams:");
    directory.write("here/job.yaml", &job);
    directory.write("here/data/file", "x");
    let matrix = job.replace("roles:", "matrix: {lr: [1, 2]}\nroles:");
    directory.write("sweep/job.yaml", &matrix);
    directory.write("sweep/data/file", "x");
    directory.jobc(&["build", "here/job.yaml", "-b", "oci"]).exits(0);
    directory.jobc(&["build", "here/job.yaml", "-b", "oci", "-o", "a/b"]).exits(0);
    directory.jobc(&["build", "sweep/job.yaml", "-b", "oci"]).exits(0);
    directory.jobc(&["build", "sweep/job.yaml", "-b", "oci", "-o", "c"]).exits(0);
    let mut bundles = 0;
    for path in contents(directory.path()).into_keys().filter(|path| path.file_name() == Some("config.json"))
    {
        let config: serde_json::Value = serde_json::from_str(&directory.read(path.as_str())).unwrap();
        let mount = config["mounts"]
            .as_array()
            .unwrap()
            .iter()
            .find(|m| m["destination"] == "/data")
            .expect("the mount");
        let source = directory.path().join(path.parent().unwrap()).join(mount["source"].as_str().unwrap());
        assert!(source.join("file").exists(), "{path}: {} is not the data", mount["source"]);
        bundles += 1;
    }
    assert_eq!(bundles, 4 + 8);
}

#[test]
fn each_job_of_a_matrix_gets_a_directory() {
    let directory = Directory::with_job(&HELLO.replace("roles:", "matrix: {lr: [1, 2]}\nroles:"));
    directory.jobc(&["build", "-b", "cgroup"]).exits(0);
    directory.jobc(&["build", "-b", "cgroup", "-o", "made"]).exits(0);
    for job in ["hello-0", "hello-1"] {
        assert!(directory.path().join("out").join(job).join("local/plan.json").exists(), "{job}");
        assert!(directory.path().join("made").join(job).join("local/plan.json").exists(), "{job}");
    }
}

#[test]
fn foreign_files_are_never_removed() {
    let directory = Directory::with_job(HELLO);
    directory.write("out/hello/local/thesis.tex", "mine");
    directory.jobc(&["build"]).exits(3).says("`thesis.tex`, which jobc did not write");
    assert_eq!(directory.read("out/hello/local/thesis.tex"), "mine");

    // A root file system that someone put into a bundle, as container tools expect.
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build"]).exits(0);
    directory.write("out/hello/local/oci/main-0/rootfs/bin/sh", "mine");
    directory.write("job.yaml", &HELLO.replace("64MiB", "65MiB"));
    directory.jobc(&["build"]).exits(3).says("rootfs");
    assert_eq!(directory.read("out/hello/local/oci/main-0/rootfs/bin/sh"), "mine");

    let directory = Directory::with_job(HELLO);
    directory.write("out/hello/local", "a file");
    directory.jobc(&["build"]).exits(3).says("is a file");
    assert_eq!(directory.read("out/hello/local"), "a file");
}

#[test]
fn an_edited_file_is_written_again() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build"]).exits(0);
    let before = directory.out();
    directory.write("out/hello/local/plan.json", "{}");
    directory.jobc(&["build"]).exits(0);
    assert_same(&directory.out(), &before);
}

#[test]
fn check_before_the_first_build_prints_one_line() {
    let directory = Directory::with_job(HELLO);
    let run = directory.jobc(&["build", "--check", "--target", "local"]).exits(1);
    assert_eq!(run.out, "");
    assert_eq!(run.err, "jobc: nothing is built in `out/hello/local` yet; run `jobc build` to write it\n");
    directory.jobc(&["build", "--target", "local"]).exits(0);
    directory.jobc(&["build", "--check", "--target", "local"]).exits(0);
}

#[test]
fn an_output_path_that_is_a_file_is_a_usage_error() {
    let directory = Directory::with_job(HELLO);
    directory.write("file", "");
    directory.jobc(&["build", "-o", "file"]).exits(2).says("`-o file` is a file");
}

/// A sweep may have thousands of jobs.
#[test]
fn a_large_matrix_is_listed_in_part() {
    let matrix = "matrix: {axes: {n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}\nroles:\n";
    let directory = Directory::with_job(&HELLO.replace("roles:\n", matrix));
    let run = directory.jobc(&["build", "--target", "kubernetes"]).exits(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 19, "{}", run.out);
    assert!(lines[8].ends_with("out/hello-7/kubernetes/kubernetes"), "{}", lines[8]);
    assert_eq!(lines[9], "and 2 more jobs");
    assert_eq!(lines[18], "all 10 jobs: 20 instances, 20 CPUs, 1.2 GiB of memory");
}

#[test]
fn the_example_matches_its_golden_output() {
    let directory = Directory::example("torchrun-4x8");
    let run = directory.jobc(&["build"]).exits(0);
    assert_data_eq!(
        run.out,
        str![[r#"
target  backend     files  written to
local   dockerfile      3  out/gpt-small/local/dockerfile
local   oci             4  out/gpt-small/local/oci
local   cgroup         48  out/gpt-small/local/cgroup
lab     kubernetes      1  out/gpt-small/lab/kubernetes
pai     openpai         1  out/gpt-small/pai/openpai
gpt-small: 4 instances, 256 CPUs, 2 TiB of memory, 32 GPUs
the same GPUs with Docker (options of `docker run`; `jobc plan --docker` prints all of it):
  train: --gpus '"device=0,1,2,3,4,5,6,7"'
  `jobc run` assigns free GPUs of the host; with Docker, choose the numbers yourself

"#]]
    );
    let golden = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/torchrun-4x8/out");
    // The test of the examples says which files are kept.
    let (built, golden) = (directory.out(), contents(&golden));
    assert!(!golden.is_empty());
    let of_golden = built.into_iter().filter(|(path, _)| golden.contains_key(path)).collect();
    assert_same(&of_golden, &golden);
}
