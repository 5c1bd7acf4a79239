//! `jobc image build`: what is wrong is shown, and another builder gets the same file.

use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;
use snapbox::assert_data_eq;
use snapbox::str;

use crate::folder::{Folder, Run, binary};

/// Runs the binary with a store of its own, and only the programs of these folders.
fn image(folder: &Folder, arguments: &[&str], programs: &str) -> Run {
    let mut command = folder.command(binary());
    command
        .arg("image")
        .args(arguments)
        .env("JOBC_IMAGE_ROOT", folder.path().join("store"))
        .env("PATH", programs);
    Run::of(&mut command)
}

#[test]
fn every_mistake_of_a_dockerfile_is_shown_at_its_place() {
    let folder = Folder::new();
    folder.write("Dockerfile", "FROM scratch AS one\nRUNN x\nCOPY --from=two a /\nENV A=1 B\n");
    let run = image(&folder, &["build", "."], "/nowhere").exits(1);
    assert_data_eq!(
        run.err,
        str![[r#"
error[J0601]: `RUNN` is no instruction
 --> ./Dockerfile:2:1
  |
2 | RUNN x
  | ^^^^
  |
  = note: did you mean `RUN`? A line goes on in the next where it ends with `/`

error[J0601]: `B` is no `NAME=VALUE`
 --> ./Dockerfile:4:9
  |
4 | ENV A=1 B
  |         ^
  |
  = note: a value with blanks needs quotes: `NAME="a b"`

for more about an error, run `jobc explain J0601`
2 errors

"#]]
    );
    assert_eq!(run.out, "");
    assert!(
        image(&folder, &["build", "--format", "json", "."], "/nowhere").exits(1).err.contains("\"J0601\"")
    );
    folder.write_bytes("Dockerfile", b"FROM scratch\nRUN \xffx\n");
    let run = image(&folder, &["build", "."], "/nowhere").exits(1);
    assert!(run.err.contains("this is not UTF-8") && run.err.contains("Dockerfile:2:5"), "{}", run.err);
}

#[test]
fn what_cannot_be_meant_is_wrong_use() {
    let folder = Folder::new();
    let check = |arguments: &[&str], expected: &str| {
        let run = image(&folder, arguments, "/nowhere").exits(2);
        assert!(run.err.contains(expected), "{arguments:?}: {}", run.err);
    };
    check(&["build", "."], "cannot read `./Dockerfile`");
    check(&["build", "https://example.com/x.git"], "a context of another machine is not supported");
    folder.write("Dockerfile", "FROM scratch\n");
    check(&["build", "-t", "Name", "."], "names of images are in lower case");
    check(&["build", "--secret", "src=x", "."], "the secret `src=x` has no name");
    check(&["build", "--platform", "linux", "."], "platform");
    check(&["build", "--builder", "buildah", "."], "`buildah` is not installed");
    check(&["build", "--builder", "docker", "."], "`docker` is not installed");
}

#[test]
fn an_image_is_built_and_named() {
    let folder = Folder::new();
    folder.write(
        "Dockerfile",
        "ARG V=1\nFROM scratch AS first\nCOPY . /all/\nFROM first\nARG V\nENV A=$V\nLABEL a=b\n",
    );
    folder.write("Dockerfile.dockerignore", "*\n!hello\n");
    folder.write(".dockerignore", "hello\n");
    folder.write("hello", "hi\n");
    let words = ["build", "-t", "local/a:1", "-t", "local/b", "--build-arg", "V=2", "--label", "c=d", "."];
    let built = image(&folder, &words, "/nowhere").exits(0);
    assert_eq!(built.out.lines().count(), 2, "{}", built.out);
    assert!(built.err.contains("COPY . /all/"), "{}", built.err);
    let inspected = image(&folder, &["inspect", "local/b"], "/nowhere").exits(0);
    for part in ["\"A=2\"", "\"a\": \"b\"", "\"c\": \"d\""] {
        assert!(inspected.out.contains(part), "{part} is not in {}", inspected.out);
    }
    // The same again is found, and nothing else than its digest is said where that is asked for.
    let again =
        image(&folder, &["build", "--quiet", "--build-arg", "V=2", "--label", "c=d", "."], "/nowhere")
            .exits(0);
    assert!(again.out.starts_with("sha256:") && again.err.is_empty(), "{}{}", again.out, again.err);
    let json = image(&folder, &["build", "--format", "json", "--target", "first", "."], "/nowhere").exits(0);
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
fn what_goes_wrong_while_building_is_told_with_its_line() {
    let folder = Folder::new();
    let check = |dockerfile: &str, expected: &str| {
        folder.write("Dockerfile", dockerfile);
        let run = image(&folder, &["build", "."], "/nowhere").exits(1);
        assert!(run.err.contains(expected), "{expected} is not in {}", run.err);
        assert_eq!(run.out, "");
    };
    check("FROM scratch\n\nCOPY nowhere /\n", "error: ./Dockerfile:3: `nowhere` is not there");
    check("FROM scratch\nARG M=x\nCOPY --chmod=$M . /\n", "./Dockerfile:3:14");
    check("FROM scratch\nWORKDIR ${N:?say where}\n", "`N`: say where");
    folder.write(".dockerignore", "ok\n[\n");
    check("FROM scratch\n", "./.dockerignore:2:1");
}

/// A program that says how it was called, and then does what it is told.
fn program(folder: &Folder, name: &str, then: &str) {
    folder.write(&format!("bin/{name}"), &format!("#!/bin/sh\necho \"{name} $*\" >>\"$LOG\"\n{then}\n"));
    let path = folder.path().join("bin").join(name);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn another_builder_gets_the_same_file_and_arguments() {
    let folder = Folder::new();
    let log = folder.path().join("log");
    program(&folder, "buildah", "[ \"$1\" != --version ] && { cat >\"$LOG.in\"; exit 3; }; exit 0");
    folder.write("Dockerfile", "FROM scratch\nRUN --security=insecure x\n");
    let programs = format!("{}:/usr/bin:/bin", folder.path().join("bin"));
    let run = |arguments: &[&str]| {
        std::fs::write(&log, "").unwrap();
        let mut command = folder.command(binary());
        command.arg("image").args(arguments).env("JOBC_IMAGE_ROOT", folder.path().join("store"));
        command
            .env("PATH", &programs)
            .env("LOG", &log)
            .env("TMPDIR", folder.path())
            .env_remove("SOURCE_DATE_EPOCH");
        let run = Run::of(&mut command).exits(1);
        let log = std::fs::read_to_string(&log).unwrap();
        let own = without_folder(&log, folder.path());
        (run, own)
    };
    // By itself only where that one can do what this program cannot.
    let (by_itself, log_of) =
        run(&["build", "--target", "x", "--build-arg", "A=b c", "-t", "n:1", "--timestamp", "5", "."]);
    assert!(by_itself.err.contains("there is no stage `x` to build") && log_of.is_empty(), "{log_of}");
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
    let left = std::fs::read_dir(folder.path()).unwrap().filter_map(Result::ok);
    assert!(
        left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().starts_with("jobc-build-"))
    );
}

/// Docker before version 23 has BuildKit and does not take it by itself.
#[test]
fn an_old_docker_is_told_of_buildkit() {
    let folder = Folder::new();
    folder.write("Dockerfile", "FROM scratch\n");
    let programs = format!("{}:/usr/bin:/bin", folder.path().join("bin"));
    let check = |version: &str, given: Option<&str>, expected: &str| {
        let then = format!(
            "[ \"$1\" = --version ] && echo '{version}' && exit 0\necho \"by $DOCKER_BUILDKIT\"; exit 3"
        );
        program(&folder, "docker", &then);
        let mut command = folder.command(binary());
        command
            .args(["image", "build", "--builder", "docker", "."])
            .env("LOG", "/dev/null")
            .env("PATH", &programs);
        command.env("JOBC_IMAGE_ROOT", folder.path().join("store")).env("TMPDIR", folder.path());
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
fn an_image_is_saved_and_brought_in_elsewhere() {
    let folder = Folder::new();
    folder.write("Dockerfile", "FROM scratch\nCOPY Dockerfile /\n");
    let built = image(&folder, &["build", "-t", "local/a:1", "."], "/nowhere").exits(0);
    let archive = folder.path().join("a.tar");
    let saved = image(&folder, &["save", "local/a:1", "-o", archive.as_str()], "/nowhere").exits(0);
    assert!(saved.out.starts_with(archive.as_str()), "{}", saved.out);
    let bytes = std::fs::read(&archive).unwrap();
    let mut command = folder.command(binary());
    command
        .args(["image", "save", "--quiet", "local/a:1"])
        .env("JOBC_IMAGE_ROOT", folder.path().join("store"));
    assert!(command.output().unwrap().stdout == bytes, "the same in a pipe");
    // A device is written to and stays one.
    image(&folder, &["save", "local/a:1", "-o", "/dev/null"], "/nowhere").exits(0);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    let mut command = folder.command(binary());
    command.args(["image", "import", archive.as_str()]).env("JOBC_IMAGE_ROOT", folder.path().join("other"));
    Run::of(&mut command).exits(0);
    let mut command = folder.command(binary());
    command.args(["image", "ls", "--format", "json"]).env("JOBC_IMAGE_ROOT", folder.path().join("other"));
    let listed: serde_json::Value = serde_json::from_str(&Run::of(&mut command).exits(0).out).unwrap();
    assert_eq!(listed[0]["name"], "docker.io/local/a:1");
    assert!(built.out.trim_end().ends_with(listed[0]["digest"].as_str().unwrap()), "{}", built.out);
    // What fails leaves no file.
    let other = folder.path().join("none/b.tar");
    let run = image(&folder, &["save", "local/a:1", "-o", other.as_str()], "/nowhere").exits(3);
    assert!(run.err.contains("cannot write"), "{}", run.err);
    let run = image(&folder, &["save", "local/b:1", "-o", archive.as_str()], "/nowhere").exits(2);
    assert!(run.err.contains("there is no image `local/b:1` here"), "{}", run.err);
    assert!(std::fs::read(&archive).unwrap() == bytes);
}

/// The log with the name of the file for the image's id left out.
fn without_folder(log: &str, folder: &Utf8Path) -> String {
    let begin = format!("--iidfile {folder}/jobc-build-");
    match log.split_once(&begin) {
        Some((before, after)) => {
            let after = after.split_once("/id").map_or("", |(_, after)| after);
            format!("{before}--iidfile ID{after}")
        }
        None => log.to_owned(),
    }
}

/// The real one, where it is installed: what it built lies in the store.
#[test]
fn what_buildah_builds_is_brought_in() {
    let folder = Folder::new();
    folder.write("Dockerfile", "FROM scratch\nARG V=1\nCOPY hello /\nENV A=$V\n");
    folder.write("hello", "hi\n");
    let programs = std::env::var("PATH").unwrap_or_default();
    if std::process::Command::new("buildah").arg("--version").output().is_err() {
        assert_ne!(std::env::var("JOBC_ORACLES").as_deref(), Ok("required"), "buildah is not installed");
        eprintln!("skipped: buildah is not installed");
        return;
    }
    let root = folder.path().join("containers");
    let mut command = folder.command(binary());
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
    command.env("JOBC_IMAGE_ROOT", folder.path().join("store")).env("PATH", &programs);
    // A store of its own, and no overlay, which may not be mounted in a folder for tests.
    command
        .env("STORAGE_DRIVER", "vfs")
        .env("CONTAINERS_STORAGE_CONF", "/dev/null")
        .env("XDG_DATA_HOME", &root);
    let run = Run::of(&mut command).exits(0);
    assert!(run.out.contains("\"names\":[\"docker.io/local/t:1\"]"), "{}{}", run.out, run.err);
    let inspected = image(&folder, &["inspect", "local/t:1"], &programs).exits(0);
    assert!(inspected.out.contains("\"A=2\""), "{}", inspected.out);
}
