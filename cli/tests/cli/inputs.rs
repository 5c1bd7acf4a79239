//! What can be read, and the errors for the rest.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, HELLO, Run, binary};

/// Says what `check` says of a job file with these bytes.
#[track_caller]
fn says(bytes: &[u8], text: &str) {
    let directory = Directory::new();
    directory.write_bytes("job.yaml", bytes);
    directory.jobc(&["check"]).exits(2).says(text);
    directory.jobc(&["build"]).exits(2).says(text);
    directory.jobc(&["plan"]).exits(2).says(text);
    assert!(directory.out().is_empty());
}

#[test]
fn a_missing_file_is_a_usage_error() {
    let directory = Directory::new();
    directory.jobc(&["build"]).exits(2).says("no job.yaml in the current directory");
    directory.jobc(&["build", "absent.yaml"]).exits(2).says("cannot read `absent.yaml`: no such file");
    directory
        .jobc(&["build", "absent/job.yaml"])
        .exits(2)
        .says("cannot read `absent/job.yaml`: no such file");
    directory.write("empty/x", "");
    directory.jobc(&["build", "empty"]).exits(2).says("`empty` is a directory without a job.yaml");
    directory.write("empty/config.yaml", "lr: 0.1\n");
    directory.write("empty/train.yaml", HELLO);
    directory
        .jobc(&["build", "empty"])
        .exits(2)
        .says("without a job.yaml; name its job file, such as `empty/train.yaml`");
    directory.write("train.yaml", HELLO);
    directory.jobc(&["build"]).exits(2).says("name a job file, such as `train.yaml`, or create one");
    directory.write("job.yaml", HELLO);
    directory.jobc(&["build", "--targets", "absent.yaml"]).exits(2).says("cannot read `absent.yaml`");
}

#[test]
fn a_directory_stands_for_its_job_file() {
    let directory = Directory::new();
    directory.write("a/job.yaml", HELLO);
    directory.write("b/job.json", r#"{"version": 1, "name": "hello", "image": "busybox:1.36", "roles": {"main": {"run": "true", "resources": {"cpu": 1, "memory": "64MiB"}}}}"#);
    directory.write("c/job.yml", HELLO);
    for name in ["a", "b", "c"] {
        directory.jobc(&["build", name]).exits(0);
        assert!(directory.path().join(name).join("out/hello/local/plan.json").exists(), "{name}");
    }
}

#[test]
fn text_in_another_encoding_is_named() {
    says(b"version: 1\nname: caf\xe9\n", "`job.yaml` is not UTF-8 from line 2 on");
    let utf16: Vec<u8> = "\u{feff}version: 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    says(&utf16, "`job.yaml` is UTF-16; save it as UTF-8");
    let utf16: Vec<u8> = "\u{feff}version: 1\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    says(&utf16, "`job.yaml` is UTF-16; save it as UTF-8");
}

#[test]
fn byte_order_marks_and_windows_line_ends_are_accepted() {
    let directory = Directory::with_job(&format!("\u{feff}{}", HELLO.replace('\n', "\r\n")));
    directory.jobc(&["build"]).exits(0);
    let plain = Directory::with_job(HELLO);
    plain.jobc(&["build"]).exits(0);
    assert_eq!(directory.read("out/hello/local/plan.json"), plain.read("out/hello/local/plan.json"));
}

#[test]
fn malformed_files_are_errors_not_crashes() {
    for text in [
        "",
        "\n\n",
        "# nothing\n",
        "null\n",
        "[]\n",
        "3\n",
        "\"job\"\n",
        "\0",
        "version: 1",
        "{",
        "- a\n- b\n",
    ] {
        let directory = Directory::with_job(text);
        let run = directory.jobc(&["check", "--format", "short"]).exits(1);
        assert!(run.err.contains("error[J"), "{text:?}: {}", run.err);
    }
}

#[test]
fn special_files_are_read_or_rejected() {
    let directory = Directory::with_job(HELLO);
    directory.bash("\"$JOBC\" plan <(cat job.yaml) >/dev/null").exits(0);
    directory.jobc(&["check", "/dev/null"]).exits(1);
    std::os::unix::fs::symlink("job.yaml", directory.path().join("link.yaml")).unwrap();
    directory.jobc(&["check", "link.yaml"]).exits(0);
    std::os::unix::fs::symlink("loop.yaml", directory.path().join("loop.yaml")).unwrap();
    directory.jobc(&["check", "loop.yaml"]).exits(2).says("cannot read `loop.yaml`");
}

#[test]
fn standard_input_is_a_job_file() {
    let directory = Directory::new();
    let from_stdin = |text: &str, arguments: &[&str]| {
        let mut child = directory
            .command(binary())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    };
    from_stdin(HELLO, &["build", "-"]).exits(0);
    assert!(directory.path().join("out/hello/local/plan.json").exists());
    let json = r#"{"version": 1, "name": "hello", "image": "busybox:1.36", /* why */ "roles": {"main": {"run": "true"}}}"#;
    from_stdin(json, &["check", "-"]).exits(0);
    let run = from_stdin("version: 2\n", &["check", "-", "--format", "short"]).exits(1);
    assert!(run.err.starts_with("<stdin>:1:"), "{}", run.err);
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    let directory = Directory::with_job(HELLO);
    let job = directory.path().join("job.yaml");
    let run = |arguments: &[&str]| as_nobody(&directory, arguments);
    fs::set_permissions(&job, fs::Permissions::from_mode(0o000)).unwrap();
    run(&["build", "job.yaml"]).exits(2).says("cannot read `job.yaml`: permission denied");
    fs::set_permissions(&job, fs::Permissions::from_mode(0o644)).unwrap();
    run(&["check", "job.yaml"]).exits(0);
    run(&["build", "job.yaml"]).exits(3).says("permission denied");
    assert!(directory.out().is_empty());
}

/// Runs the binary as a user without rights: root could read everything.
pub(crate) fn as_nobody(directory: &Directory, arguments: &[&str]) -> Run {
    let mut command = directory.command(binary());
    if rustix::process::geteuid().is_root() {
        // Other users may be unable to enter the build directory.
        let copy = directory.path().join(".jobc-of-the-test");
        if !copy.exists() {
            fs::copy(binary(), &copy).unwrap();
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        command = directory.command(copy.as_str());
        command.uid(65534).gid(65534);
    } else {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    }
    let run = Run::of(command.args(arguments));
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    run
}

#[test]
fn unicode_names_and_text_are_preserved() {
    let directory = Directory::new();
    let job = HELLO.replace("hello, count", "\"你好，世界 😀 — naïve\", count");
    directory.write("训练 任务/任务.yaml", &job);
    directory.jobc(&["build", "训练 任务/任务.yaml"]).exits(0);
    let plan = directory.read("训练 任务/out/hello/local/plan.json");
    assert!(plan.contains("你好，世界 😀 — naïve"), "{plan}");
    let run = directory.jobc(&["build", "-o", "輸出", "训练 任务/任务.yaml"]).exits(0);
    assert!(run.out.contains("輸出/local/oci"), "{}", run.out);

    directory.write("训练 任务/任务.yaml", &job.replace("memory: 64MiB", "mémoire: 64MiB"));
    let run = directory.jobc(&["check", "训练 任务/任务.yaml"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r#"
error[J0101]: unknown key `mémoire` in `resources` of role `main`
 --> 训练 任务/任务.yaml:8:25
  |
8 |     resources: {cpu: 1, mémoire: 64MiB, gpu: 0}
  |                         ^^^^^^^
  |
  = note: the keys known here are `cpu`, `memory`, `shm`, `disk`, `pids`, `hugepages`, `io`, `rdma`, `devices`, `ulimits`, `enforce`, `gpu`, `ports`

for more about an error, run `jobc explain J0101`
1 error

"#]]
    );
}

#[test]
fn json_may_hold_comments_and_says_where_it_is_wrong() {
    let directory = Directory::new();
    directory.write("job.json", "{\n  // the short template\n  \"jobName\": \"demo\", /* and */\n  \"image\": \"a/b:1\",\n  \"taskRoles\": [{\"taskNumber\": 1, \"cpuNumber\": 1, \"memoryMB\": 1024, \"gpuNumber\": 0, \"command\": \"true\"}]\n}\n");
    directory.jobc(&["build"]).exits(0);
    assert!(directory.path().join("out/demo/local/plan.json").exists());
    directory.write("job.json", "{\n  \"jobName\": \"demo\",\n  \"taskRoles\": [...]\n}\n");
    let run = directory.jobc(&["check", "--format", "short"]).exits(1);
    assert!(run.err.contains("job.json:3:16: error[J0018]"), "{}", run.err);
}

#[test]
fn targets_are_found_up_to_the_root_of_the_repository_and_not_beyond() {
    let directory = Directory::new();
    let targets = |name: &str| format!("version: 1\ntargets:\n  {name}: {{backends: [cgroup]}}\n");
    directory.write("targets.yaml", &targets("outside"));
    directory.write("repository/.git/HEAD", "");
    directory.write("repository/jobs/a/job.yaml", HELLO);
    directory.write("repository/jobs/b/job.yaml", HELLO);
    directory.write("repository/jobs/b/targets.yaml", &targets("beside"));
    let built = |job: &str| {
        directory.jobc(&["build", job]).exits(0);
        directory.path().join(job).parent().unwrap().join("out/hello").read_dir_utf8().unwrap().count()
    };
    assert_eq!(built("repository/jobs/a/job.yaml"), 1);
    assert!(directory.path().join("repository/jobs/a/out/hello/local").exists(), "no targets file counts");
    directory.write("repository/targets.yaml", &targets("root"));
    fs::remove_dir_all(directory.path().join("repository/jobs/a/out")).unwrap();
    assert_eq!(built("repository/jobs/a/job.yaml"), 1);
    assert!(directory.path().join("repository/jobs/a/out/hello/root").exists());
    assert_eq!(built("repository/jobs/b/job.yaml"), 1);
    assert!(directory.path().join("repository/jobs/b/out/hello/beside").exists());
}

#[test]
fn targets_are_found_outside_a_repository_where_only_the_user_writes() {
    let directory = Directory::new();
    let targets = "version: 1\ntargets:\n  mine: {backends: [cgroup]}\n";
    directory.write("project/targets.yaml", targets);
    directory.write("project/jobs/a/job.yaml", HELLO);
    directory.write("open/targets.yaml", targets);
    directory.write("open/a/job.yaml", HELLO);
    let open = directory.path().join("open");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    let built = |job: &str| {
        directory.jobc(&["build", job]).exits(0);
        directory.path().join(job).parent().unwrap().join("out/hello").read_dir_utf8().unwrap().count()
    };
    assert_eq!(built("project/jobs/a/job.yaml"), 1);
    assert!(directory.path().join("project/jobs/a/out/hello/mine").exists());
    assert_eq!(built("open/a/job.yaml"), 1);
    assert!(
        directory.path().join("open/a/out/hello/local").exists(),
        "anybody may have written `open/targets.yaml`"
    );
    // The home directory is the last one.
    let mut command = directory.command(binary());
    command
        .args(["build", "project/jobs/a/job.yaml", "-o", "home"])
        .env("HOME", directory.path().join("project/jobs"));
    Run::of(&mut command).exits(0);
    assert!(directory.path().join("home/local").exists());
    assert!(!directory.path().join("home/mine").exists());
}

#[test]
fn a_parameter_from_the_environment_is_recorded_by_its_name() {
    let directory = Directory::new();
    let job = HELLO
        .replace("count: 2}", "count: 2, batch: {default: {env: JOBC_TEST_BATCH, default: 256}}}")
        .replace("roles:", "env: {BATCH: \"${{ params.batch }}\"}\nroles:");
    directory.write("job.yaml", &job);
    let plan = |arguments: &[&str], value: Option<&str>| {
        let mut all = vec!["plan", "--format", "json"];
        all.extend(arguments);
        let mut command = directory.command(binary());
        command.args(&all).envs(value.map(|value| ("JOBC_TEST_BATCH", value)));
        let plan: serde_json::Value =
            serde_json::from_str(&Run::of(&mut command).exits(0).out).expect("a plan");
        let job = &plan["jobs"][0];
        (job["params"]["batch"].clone(), job["roles"][0]["env"]["BATCH"].clone())
    };
    let json = serde_json::Value::from;
    assert_eq!(plan(&[], Some("512")), (serde_json::json!({"env": "JOBC_TEST_BATCH"}), json("512")));
    assert_eq!(plan(&[], None), (serde_json::json!(256), json("256")));
    assert_eq!(plan(&["--set", "batch=64"], Some("512")), (serde_json::json!(64), json("64")));
}
