//! What can be read, and what is said of what cannot.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use snapbox::assert_data_eq;
use snapbox::str;

use crate::folder::{Folder, HELLO, Run, binary};

/// Says what `check` says of a job file with these bytes.
#[track_caller]
fn says(bytes: &[u8], text: &str) {
    let folder = Folder::new();
    folder.write_bytes("job.yaml", bytes);
    folder.jobc(&["check"]).exits(2).says(text);
    folder.jobc(&["build"]).exits(2).says(text);
    folder.jobc(&["plan"]).exits(2).says(text);
    assert!(folder.out().is_empty());
}

#[test]
fn a_file_that_is_not_there_is_wrong_use() {
    let folder = Folder::new();
    folder.jobc(&["build"]).exits(2).says("there is no job.yaml here");
    folder.jobc(&["build", "absent.yaml"]).exits(2).says("cannot read `absent.yaml`: no such file");
    folder.jobc(&["build", "absent/job.yaml"]).exits(2).says("cannot read `absent/job.yaml`: no such file");
    folder.write("empty/x", "");
    folder.jobc(&["build", "empty"]).exits(2).says("`empty` is a folder without a job.yaml");
    folder.write("job.yaml", HELLO);
    folder.jobc(&["build", "--targets", "absent.yaml"]).exits(2).says("cannot read `absent.yaml`");
}

#[test]
fn a_folder_stands_for_its_job_file() {
    let folder = Folder::new();
    folder.write("a/job.yaml", HELLO);
    folder.write("b/job.json", r#"{"version": 1, "name": "hello", "image": "busybox:1.36", "roles": {"main": {"run": "true", "resources": {"cpu": 1, "memory": "64MiB"}}}}"#);
    folder.write("c/job.yml", HELLO);
    for name in ["a", "b", "c"] {
        folder.jobc(&["build", name]).exits(0);
        assert!(folder.path().join(name).join("out/hello/local/plan.json").exists(), "{name}");
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
fn what_windows_and_editors_leave_in_a_file_is_read() {
    let folder = Folder::with_job(&format!("\u{feff}{}", HELLO.replace('\n', "\r\n")));
    folder.jobc(&["build"]).exits(0);
    let plain = Folder::with_job(HELLO);
    plain.jobc(&["build"]).exits(0);
    assert_eq!(folder.read("out/hello/local/plan.json"), plain.read("out/hello/local/plan.json"));
}

#[test]
fn odd_files_are_errors_and_no_crash() {
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
        let folder = Folder::with_job(text);
        let run = folder.jobc(&["check", "--format", "short"]).exits(1);
        assert!(run.err.contains("error[J"), "{text:?}: {}", run.err);
    }
}

#[test]
fn what_is_no_regular_file_is_read_or_refused() {
    let folder = Folder::with_job(HELLO);
    folder.bash("$JOBC plan <(cat job.yaml) >/dev/null").exits(0);
    folder.jobc(&["check", "/dev/null"]).exits(1);
    std::os::unix::fs::symlink("job.yaml", folder.path().join("link.yaml")).unwrap();
    folder.jobc(&["check", "link.yaml"]).exits(0);
    std::os::unix::fs::symlink("loop.yaml", folder.path().join("loop.yaml")).unwrap();
    folder.jobc(&["check", "loop.yaml"]).exits(2).says("cannot read `loop.yaml`");
}

#[test]
fn standard_input_is_a_job_file() {
    let folder = Folder::new();
    let from_stdin = |text: &str, arguments: &[&str]| {
        let mut child = folder
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
    assert!(folder.path().join("out/hello/local/plan.json").exists());
    let json = r#"{"version": 1, "name": "hello", "image": "busybox:1.36", /* why */ "roles": {"main": {"run": "true"}}}"#;
    from_stdin(json, &["check", "-"]).exits(0);
    let run = from_stdin("version: 2\n", &["check", "-", "--format", "short"]).exits(1);
    assert!(run.err.starts_with("<stdin>:1:"), "{}", run.err);
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    let folder = Folder::with_job(HELLO);
    let job = folder.path().join("job.yaml");
    let run = |arguments: &[&str]| as_nobody(&folder, arguments);
    fs::set_permissions(&job, fs::Permissions::from_mode(0o000)).unwrap();
    run(&["build", "job.yaml"]).exits(2).says("cannot read `job.yaml`: permission denied");
    fs::set_permissions(&job, fs::Permissions::from_mode(0o644)).unwrap();
    run(&["check", "job.yaml"]).exits(0);
    run(&["build", "job.yaml"]).exits(3).says("permission denied");
    assert!(folder.out().is_empty());
}

/// Runs the binary as a user without rights: root could read everything.
pub(crate) fn as_nobody(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = folder.command(binary());
    if rustix::process::geteuid().is_root() {
        // The build folder may lie where others cannot go.
        let copy = folder.path().join(".jobc-of-the-test");
        if !copy.exists() {
            fs::copy(binary(), &copy).unwrap();
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        command = folder.command(copy.as_str());
        command.uid(65534).gid(65534);
    } else {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    }
    let run = Run::of(command.args(arguments));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    run
}

#[test]
fn names_and_texts_of_the_world_are_kept() {
    let folder = Folder::new();
    let job = HELLO.replace("hello, count", "\"你好，世界 😀 — naïve\", count");
    folder.write("训练 任务/任务.yaml", &job);
    folder.jobc(&["build", "训练 任务/任务.yaml"]).exits(0);
    let plan = folder.read("训练 任务/out/hello/local/plan.json");
    assert!(plan.contains("你好，世界 😀 — naïve"), "{plan}");
    let run = folder.jobc(&["build", "-o", "輸出", "训练 任务/任务.yaml"]).exits(0);
    assert!(run.out.contains("輸出/local/oci"), "{}", run.out);

    folder.write("训练 任务/任务.yaml", &job.replace("memory: 64MiB", "mémoire: 64MiB"));
    let run = folder.jobc(&["check", "训练 任务/任务.yaml"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r"
error[J0101]: unknown key `mémoire` in `resources` of role `main`
 --> 训练 任务/任务.yaml:8:25
  |
8 |     resources: {cpu: 1, mémoire: 64MiB, gpu: 0}
  |                         ^^^^^^^
  |
  = note: the keys known here are `cpu`, `memory`, `shm`, `disk`, `pids`, `hugepages`, `rdma`, `ulimits`, `gpu`, `ports`

for more about an error, run `jobc explain J0101`
1 error

"]]
    );
}

#[test]
fn json_may_hold_comments_and_says_where_it_is_wrong() {
    let folder = Folder::new();
    folder.write("job.json", "{\n  // the short template\n  \"jobName\": \"demo\", /* and */\n  \"image\": \"a/b:1\",\n  \"taskRoles\": [{\"taskNumber\": 1, \"cpuNumber\": 1, \"memoryMB\": 1024, \"gpuNumber\": 0, \"command\": \"true\"}]\n}\n");
    folder.jobc(&["build"]).exits(0);
    assert!(folder.path().join("out/demo/local/plan.json").exists());
    folder.write("job.json", "{\n  \"jobName\": \"demo\",\n  \"taskRoles\": [...]\n}\n");
    let run = folder.jobc(&["check", "--format", "short"]).exits(1);
    assert!(run.err.contains("job.json:3:16: error[J0018]"), "{}", run.err);
}

#[test]
fn targets_are_found_up_to_the_root_of_the_repository_and_not_beyond() {
    let folder = Folder::new();
    let targets = |name: &str| format!("version: 1\ntargets:\n  {name}: {{backends: [cgroup]}}\n");
    folder.write("targets.yaml", &targets("outside"));
    folder.write("repository/.git/HEAD", "");
    folder.write("repository/jobs/a/job.yaml", HELLO);
    folder.write("repository/jobs/b/job.yaml", HELLO);
    folder.write("repository/jobs/b/targets.yaml", &targets("beside"));
    folder.write("stray/job.yaml", HELLO);
    let built = |job: &str| {
        folder.jobc(&["build", job]).exits(0);
        folder.path().join(job).parent().unwrap().join("out/hello").read_dir_utf8().unwrap().count()
    };
    assert_eq!(built("repository/jobs/a/job.yaml"), 3, "no targets file counts");
    folder.write("repository/targets.yaml", &targets("root"));
    fs::remove_dir_all(folder.path().join("repository/jobs/a/out")).unwrap();
    assert_eq!(built("repository/jobs/a/job.yaml"), 1);
    assert!(folder.path().join("repository/jobs/a/out/hello/root").exists());
    assert_eq!(built("repository/jobs/b/job.yaml"), 1);
    assert!(folder.path().join("repository/jobs/b/out/hello/beside").exists());
    assert_eq!(built("stray/job.yaml"), 3, "outside of a repository only the folder itself counts");
}
