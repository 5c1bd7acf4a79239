//! `jobc image build`: errors are shown, and another builder gets the same file.

use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;
use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, Run, binary};

/// Runs the binary with its own store, and only the programs of these directories.
fn image(directory: &Directory, arguments: &[&str], programs: &str) -> Run {
    let mut command = directory.command(binary());
    command
        .arg("image")
        .args(arguments)
        .env("JOBC_IMAGE_ROOT", directory.path().join("store"))
        .env("PATH", programs);
    Run::of(&mut command)
}

#[test]
fn every_mistake_of_a_dockerfile_is_shown_at_its_place() {
    let directory = Directory::new();
    directory.write("Dockerfile", "FROM scratch AS one\nRUNN x\nCOPY --from=two a /\nENV A=1 B\n");
    let run = image(&directory, &["build", "."], "/nowhere").exits(1);
    assert_data_eq!(
        run.err,
        str![[r#"
error[J0601]: unknown instruction `RUNN`
 --> ./Dockerfile:2:1
  |
2 | RUNN x
  | ^^^^
  |
  = note: did you mean `RUN`? A line that ends with `/` continues on the next line
help: write `RUN`
  |
2 - RUNN x
2 + RUN x
  |

error[J0601]: `B` is not `NAME=VALUE`
 --> ./Dockerfile:4:9
  |
4 | ENV A=1 B
  |         ^
  |
  = note: a value with spaces needs quotes: `NAME="a b"`

for more about an error, run `jobc explain J0601`
2 errors

"#]]
    );
    assert_eq!(run.out, "");
    assert!(
        image(&directory, &["build", "--format", "json", "."], "/nowhere").exits(1).err.contains("\"J0601\"")
    );
    directory.write_bytes("Dockerfile", b"FROM scratch\nRUN \xffx\n");
    let run = image(&directory, &["build", "."], "/nowhere").exits(1);
    assert!(run.err.contains("this is not UTF-8") && run.err.contains("Dockerfile:2:5"), "{}", run.err);
}

#[test]
fn contradictory_options_are_usage_errors() {
    let directory = Directory::new();
    let check = |arguments: &[&str], expected: &str| {
        let run = image(&directory, arguments, "/nowhere").exits(2);
        assert!(run.err.contains(expected), "{arguments:?}: {}", run.err);
    };
    check(&["build", "."], "cannot read `./Dockerfile`");
    check(&["build", "https://example.com/x.tar.gz"], "`https://example.com/x.tar.gz` is not supported");
    check(
        &["build", "git://example.com/x.git"],
        "the protocol of `git://example.com/x.git` is not supported",
    );
    check(&["build", "https://example.com/x.git#a..b"], "invalid git reference `a..b`");
    check(&["build", "--allow", "everything", "."], "network.host");
    check(&["build", "--ssh", "=x", "."], "the SSH agent `=x` has no id");
    check(&["build", "--ssh", "default=/nowhere/x", "."], "the SSH agent or key `/nowhere/x` cannot be read");
    directory.write("Dockerfile", "FROM scratch\n");
    check(&["build", "-t", "Name", "."], "image names must be lowercase");
    check(&["build", "--secret", "src=x", "."], "the secret `src=x` has no name");
    check(&["build", "--platform", "linux", "."], "platform");
    check(&["build", "--builder", "buildah", "."], "`buildah` is not installed");
    check(&["build", "--builder", "docker", "."], "`docker` is not installed");
}

#[test]
fn an_image_is_built_and_named() {
    let directory = Directory::new();
    directory.write(
        "Dockerfile",
        "ARG V=1\nFROM scratch AS first\nCOPY . /all/\nFROM first\nARG V\nENV A=$V\nLABEL a=b\n",
    );
    directory.write("Dockerfile.dockerignore", "*\n!hello\n");
    directory.write(".dockerignore", "hello\n");
    directory.write("hello", "hi\n");
    let words = ["build", "-t", "local/a:1", "-t", "local/b", "--build-arg", "V=2", "--label", "c=d", "."];
    let built = image(&directory, &words, "/nowhere").exits(0);
    assert_eq!(built.out.lines().count(), 2, "{}", built.out);
    assert!(built.err.contains("COPY . /all/"), "{}", built.err);
    let inspected = image(&directory, &["inspect", "local/b"], "/nowhere").exits(0);
    for part in ["\"A=2\"", "\"a\": \"b\"", "\"c\": \"d\""] {
        assert!(inspected.out.contains(part), "{part} is not in {}", inspected.out);
    }
    // The same build is found again, and prints only its digest if that is requested.
    let again =
        image(&directory, &["build", "--quiet", "--build-arg", "V=2", "--label", "c=d", "."], "/nowhere")
            .exits(0);
    assert!(again.out.starts_with("sha256:") && again.err.is_empty(), "{}{}", again.out, again.err);
    let json =
        image(&directory, &["build", "--format", "json", "--target", "first", "."], "/nowhere").exits(0);
    let events: Vec<serde_json::Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        events.iter().any(|event| event["text"] == "COPY . /all/" && event["cached"] == true),
        "{}",
        json.out
    );
    assert_eq!(events.last().unwrap()["event"], "image");
}

#[test]
fn build_errors_are_reported_with_their_lines() {
    let directory = Directory::new();
    let check = |dockerfile: &str, expected: &str| {
        directory.write("Dockerfile", dockerfile);
        let run = image(&directory, &["build", "."], "/nowhere").exits(1);
        assert!(run.err.contains(expected), "{expected} is not in {}", run.err);
        assert_eq!(run.out, "");
    };
    check("FROM scratch\n\nCOPY nowhere /\n", "error: ./Dockerfile:3: `nowhere`: no such file or directory");
    check("FROM scratch\nARG M=x\nCOPY --chmod=$M . /\n", "./Dockerfile:3:14");
    check("FROM scratch\nWORKDIR ${N:?say where}\n", "`N`: say where");
    directory.write(".dockerignore", "ok\n[\n");
    check("FROM scratch\n", "./.dockerignore:2:1");
    std::fs::write(directory.path().join(".dockerignore"), b"*\xff.o\n[\xff\n").expect("a file");
    check("FROM scratch\n", "./.dockerignore:2:1");
}

/// A program that prints its arguments, and then executes a script.
fn program(directory: &Directory, name: &str, then: &str) {
    directory.write(&format!("bin/{name}"), &format!("#!/bin/sh\necho \"{name} $*\" >>\"$LOG\"\n{then}\n"));
    let path = directory.path().join("bin").join(name);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn another_builder_gets_the_same_file_and_arguments() {
    let directory = Directory::new();
    let log = directory.path().join("log");
    program(&directory, "buildah", "[ \"$1\" != --version ] && { cat >\"$LOG.in\"; exit 3; }; exit 0");
    directory.write("Dockerfile", "FROM scratch\nRUN --security=insecure x\n");
    let programs = format!("{}:/usr/bin:/bin", directory.path().join("bin"));
    let run = |arguments: &[&str]| {
        std::fs::write(&log, "").unwrap();
        let mut command = directory.command(binary());
        command.arg("image").args(arguments).env("JOBC_IMAGE_ROOT", directory.path().join("store"));
        command
            .env("PATH", &programs)
            .env("LOG", &log)
            .env("TMPDIR", directory.path())
            .env_remove("SOURCE_DATE_EPOCH");
        let run = Run::of(&mut command).exits(1);
        let log = std::fs::read_to_string(&log).unwrap();
        let own = without_directory(&log, directory.path());
        (run, own)
    };
    // By default only if that builder can do what this program cannot.
    let (by_itself, log_of) =
        run(&["build", "--target", "x", "--build-arg", "A=b c", "-t", "n:1", "--timestamp", "5", "."]);
    assert!(by_itself.err.contains("unknown stage `x`") && log_of.is_empty(), "{log_of}");
    let (by_itself, log_of) = run(&["build", "--build-arg", "A=b c", "-t", "n:1", "--timestamp", "5", "."]);
    assert!(
        by_itself.err.contains("`--security=insecure` is not supported, so buildah builds"),
        "{}",
        by_itself.err
    );
    assert_eq!(
        log_of,
        "buildah --version\nbuildah build --iidfile ID --file ./Dockerfile --build-arg A=b c --tag docker.io/library/n:1 \
         --layers --timestamp 5 .\n"
    );
    let (embedded, log_of) = run(&["build", "--builder", "embedded", "."]);
    assert!(embedded.err.contains("J0612") && log_of.is_empty());
    let (_, log_of) =
        run(&["build", "--builder", "buildah", "--no-cache", "-f", "-", "--secret", "id=A,env=LOG", "."]);
    assert_eq!(log_of, "buildah build --iidfile ID --file - --secret id=A,env=LOG --no-cache .\n");
    // Nothing of it is left.
    let left = std::fs::read_dir(directory.path()).unwrap().filter_map(Result::ok);
    assert!(
        left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().starts_with("jobc-build-"))
    );
}

/// Docker before version 23 has BuildKit and does not take it by itself.
#[test]
fn an_old_docker_gets_the_buildkit_variable() {
    let directory = Directory::new();
    directory.write("Dockerfile", "FROM scratch\n");
    let programs = format!("{}:/usr/bin:/bin", directory.path().join("bin"));
    let check = |version: &str, given: Option<&str>, expected: &str| {
        let then = format!(
            "[ \"$1\" = --version ] && echo '{version}' && exit 0\necho \"by $DOCKER_BUILDKIT\"; exit 3"
        );
        program(&directory, "docker", &then);
        let mut command = directory.command(binary());
        command
            .args(["image", "build", "--builder", "docker", "."])
            .env("LOG", "/dev/null")
            .env("PATH", &programs);
        command.env("JOBC_IMAGE_ROOT", directory.path().join("store")).env("TMPDIR", directory.path());
        match given {
            Some(given) => command.env("DOCKER_BUILDKIT", given),
            None => command.env_remove("DOCKER_BUILDKIT"),
        };
        let run = Run::of(&mut command).exits(1);
        assert_eq!(run.err.trim_end(), expected, "{version}");
    };
    check("Docker version 20.10.24+dfsg1, build 297e128", None, "by 1");
    check("Docker version 20.10.24+dfsg1, build 297e128", Some("0"), "by 0");
    check("Docker version 28.2.2, build e6534b4", None, "by");
    check("podman version 4.3.1", None, "by");
}

/// An image goes from one store to another in a file, or through a pipe.
#[test]
fn a_saved_image_can_be_imported_elsewhere() {
    let directory = Directory::new();
    directory.write("Dockerfile", "FROM scratch\nCOPY Dockerfile /\n");
    let built = image(&directory, &["build", "-t", "local/a:1", "."], "/nowhere").exits(0);
    let archive = directory.path().join("a.tar");
    let saved = image(&directory, &["save", "local/a:1", "-o", archive.as_str()], "/nowhere").exits(0);
    assert!(saved.out.starts_with(archive.as_str()), "{}", saved.out);
    let bytes = std::fs::read(&archive).unwrap();
    let mut command = directory.command(binary());
    command
        .args(["image", "save", "--quiet", "local/a:1"])
        .env("JOBC_IMAGE_ROOT", directory.path().join("store"));
    assert!(command.output().unwrap().stdout == bytes, "the same in a pipe");
    // A device is written to and stays one.
    image(&directory, &["save", "local/a:1", "-o", "/dev/null"], "/nowhere").exits(0);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    let mut command = directory.command(binary());
    command
        .args(["image", "import", archive.as_str()])
        .env("JOBC_IMAGE_ROOT", directory.path().join("other"));
    Run::of(&mut command).exits(0);
    let mut command = directory.command(binary());
    command.args(["image", "ls", "--format", "json"]).env("JOBC_IMAGE_ROOT", directory.path().join("other"));
    let listed: serde_json::Value = serde_json::from_str(&Run::of(&mut command).exits(0).out).unwrap();
    assert_eq!(listed[0]["name"], "docker.io/local/a:1");
    assert!(built.out.trim_end().ends_with(listed[0]["digest"].as_str().unwrap()), "{}", built.out);
    // What fails leaves no file.
    let other = directory.path().join("none/b.tar");
    let run = image(&directory, &["save", "local/a:1", "-o", other.as_str()], "/nowhere").exits(3);
    assert!(run.err.contains("cannot write"), "{}", run.err);
    let run = image(&directory, &["save", "local/b:1", "-o", archive.as_str()], "/nowhere").exits(2);
    assert!(run.err.contains("the image `local/b:1` is not in the image store"), "{}", run.err);
    assert!(std::fs::read(&archive).unwrap() == bytes);
}

/// The log with the name of the file for the image's id left out.
fn without_directory(log: &str, directory: &Utf8Path) -> String {
    let begin = format!("--iidfile {directory}/jobc-build-");
    match log.split_once(&begin) {
        Some((before, after)) => {
            let after = after.split_once("/id").map_or("", |(_, after)| after);
            format!("{before}--iidfile ID{after}")
        }
        None => log.to_owned(),
    }
}

/// The real one, if it is installed: its image is in the store.
#[test]
fn images_built_by_buildah_are_imported() {
    let directory = Directory::new();
    directory.write("Dockerfile", "FROM scratch\nARG V=1\nCOPY hello /\nENV A=$V\n");
    directory.write("hello", "hi\n");
    let programs = std::env::var("PATH").unwrap_or_default();
    if std::process::Command::new("buildah").arg("--version").output().is_err() {
        assert_ne!(std::env::var("JOBC_ORACLES").as_deref(), Ok("required"), "buildah is not installed");
        jobc_test_skip::skip("buildah");
        return;
    }
    let root = directory.path().join("containers");
    let mut command = directory.command(binary());
    command.args([
        "image",
        "build",
        "--builder",
        "buildah",
        "-t",
        "local/t:1",
        "--build-arg",
        "V=2",
        "--format",
        "json",
        ".",
    ]);
    command.env("JOBC_IMAGE_ROOT", directory.path().join("store")).env("PATH", &programs);
    // Its own store, and no overlay, which may not be mounted in a directory for tests.
    command
        .env("STORAGE_DRIVER", "vfs")
        .env("CONTAINERS_STORAGE_CONF", "/dev/null")
        .env("XDG_DATA_HOME", &root);
    let run = Run::of(&mut command).exits(0);
    assert!(run.out.contains("\"names\":[\"docker.io/local/t:1\"]"), "{}{}", run.out, run.err);
    let inspected = image(&directory, &["inspect", "local/t:1"], &programs).exits(0);
    assert!(inspected.out.contains("\"A=2\""), "{}", inspected.out);
}

#[test]
fn a_damaged_archive_is_exit_code_2() {
    let directory = Directory::new();
    let short = [&b"a"[..], &[0; 200]].concat();
    for (name, bytes, words) in [
        ("short.tar", &short[..], "is not a readable archive"),
        ("truncated.tar.xz", b"\xfd7zXZ\0", "it ends too early"),
        ("truncated.tar.bz2", b"BZh9", "it ends too early"),
        ("files.zip", b"PK\x03\x04", "it is a zip archive"),
    ] {
        directory.write_bytes(name, bytes);
        directory
            .jobc(&["image", "--image-root", "images", "import", name, "--tag", "a:1"])
            .exits(2)
            .says(words);
    }
}

#[test]
fn an_interrupted_import_says_so() {
    let directory = Directory::new();
    // It waits for its standard input.
    let mut child = directory
        .command(binary())
        .args(["image", "import", "-"])
        .env("JOBC_IMAGE_ROOT", directory.path().join("store"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let threads = format!("/proc/{}/task", child.id());
    while std::fs::read_dir(&threads).unwrap().count() < 2 {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "jobc: interrupted; nothing was imported\n");
    assert_eq!(image(&directory, &["ls", "--format", "json"], "/nowhere").exits(0).out.trim(), "[]");
}
