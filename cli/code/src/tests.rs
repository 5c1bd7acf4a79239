use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use camino::Utf8Path;
use jobc_compiler::files::{CodeError, PackedCode};

use super::*;

struct Code(tempfile::TempDir);

impl Code {
    fn new(files: &[(&str, &str)]) -> Self {
        let code = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            code.write(path, text);
        }
        code
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn pack(&self) -> Result<PackedCode, CodeError> {
        pack(Utf8Path::from_path(self.0.path()).unwrap(), ".")
    }

    /// What GNU tar lists: kind, path and target of a link.
    fn listed(&self) -> Vec<String> {
        let bytes = self.pack().unwrap().bytes;
        let mut tar = Command::new("tar")
            .args(["-tvzf", "-", "--quoting-style=escape", "--numeric-owner", "--utc"])
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut tar.stdin.take().unwrap(), &bytes).unwrap();
        let output = tar.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        // Mode, owner, size, date, time, name.
        text.lines()
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                assert_eq!(words[1], "0/0", "{line}");
                format!("{} {}", words[0], words[5..].join(" "))
            })
            .collect()
    }
}

#[test]
fn names_links_and_modes_are_kept() {
    let code = Code::new(&[("train.py", "1"), ("lib/模型.py", "2"), ("run.sh", "#!/bin/sh\n")]);
    let at = |path: &str| code.0.path().join(path);
    fs::set_permissions(at("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(at("train.py"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(at("empty")).unwrap();
    symlink("lib", at("directory")).unwrap();
    symlink("../train.py", at("lib/up.py")).unwrap();
    fs::write(code.0.path().join(std::ffi::OsStr::from_bytes(b"\xff")), "3").unwrap();
    let long = format!("{}/{}", "a".repeat(120), "b".repeat(120));
    code.write(&long, "4");
    let expected = [
        format!("drwxr-xr-x {}", "a".repeat(120)),
        format!("-rw-r--r-- {long}"),
        "lrwxrwxrwx directory -> lib".to_owned(),
        "drwxr-xr-x empty".to_owned(),
        "drwxr-xr-x lib".to_owned(),
        "lrwxrwxrwx lib/up.py -> ../train.py".to_owned(),
        "-rw-r--r-- lib/\\346\\250\\241\\345\\236\\213.py".to_owned(),
        "-rwxr-xr-x run.sh".to_owned(),
        "-rw-r--r-- train.py".to_owned(),
        "-rw-r--r-- \\377".to_owned(),
    ];
    assert_eq!(code.listed(), expected);
    assert_eq!(code.pack().unwrap().remarks, Vec::<String>::new());
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let files = [("a.py", "1"), ("b/c.py", "2")];
    let (first, second) = (Code::new(&files), Code::new(&[files[1], files[0]]));
    let old = fs::File::open(second.0.path().join("a.py")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::set_permissions(second.0.path().join("a.py"), fs::Permissions::from_mode(0o664)).unwrap();
    assert_eq!(first.pack().unwrap().bytes, second.pack().unwrap().bytes);
    second.write("a.py", "2");
    assert_ne!(first.pack().unwrap().bytes, second.pack().unwrap().bytes);
}

#[test]
fn patterns_leave_files_out() {
    let files = [
        ("train.py", ""),
        (".git/config", ""),
        (".env", "TOKEN=1"),
        ("out/train/plan.json", ""),
        ("lib/__pycache__/a.pyc", ""),
        ("data/big", ""),
        ("data/keep/small", ""),
        ("notes.md", ""),
    ];
    let code = Code::new(&files);
    let names = |code: &Code| -> Vec<String> {
        code.listed().iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
    };
    let usual = ["data", "data/big", "data/keep", "data/keep/small", "lib", "notes.md", "train.py"];
    assert_eq!(names(&code), usual);
    code.write(".dockerignore", "*.md\n");
    assert!(!names(&code).contains(&"notes.md".to_owned()));
    // It replaces the other one.
    code.write(".jobcignore", "data\n!data/keep\n!.env\n");
    assert_eq!(
        names(&code),
        [
            ".dockerignore",
            ".env",
            ".jobcignore",
            "data",
            "data/keep",
            "data/keep/small",
            "lib",
            "notes.md",
            "train.py"
        ]
    );
    code.write(".jobcignore", "[\n");
    let error = code.pack().unwrap_err();
    assert!(error.message.starts_with("cannot read `.jobcignore` of the code: "), "{error:?}");
}

#[test]
fn what_cannot_go_with_the_job_is_named() {
    let code = Code::new(&[("train.py", "")]);
    let _socket = UnixListener::bind(code.0.path().join("socket")).unwrap();
    symlink("/mnt/data", code.0.path().join("data")).unwrap();
    symlink("..", code.0.path().join("up")).unwrap();
    let mut remarks = code.pack().unwrap().remarks;
    remarks.sort();
    assert_eq!(
        remarks,
        [
            "`data` is a link to `/mnt/data`, outside of the code: it leads nowhere where the job runs",
            "`socket` does not go with the job: it is neither a file nor a directory nor a link",
            "`up` is a link to `..`, outside of the code: it leads nowhere where the job runs",
        ]
    );
}

#[test]
fn a_link_to_the_directory_is_followed_and_a_file_is_refused() {
    let code = Code::new(&[("src/train.py", "1")]);
    symlink("src", code.0.path().join("link")).unwrap();
    let at = |path: &str| pack(Utf8Path::from_path(code.0.path()).unwrap().join(path).as_path(), path);
    assert_eq!(at("link").unwrap(), at("src").unwrap());
    let why = |path: &str| at(path).unwrap_err().message;
    assert_eq!(why("absent"), "cannot read the code in `absent`: no such directory");
    assert_eq!(why("src/train.py"), "cannot read the code in `src/train.py`: it is a file");
}

#[test]
fn too_much_is_refused_before_it_is_read() {
    let code = Code::new(&[("train.py", ""), ("runs/a/notes", "")]);
    let sparse = |path: &str, bytes: u64| {
        fs::File::create(code.0.path().join(path)).unwrap().set_len(bytes).unwrap();
    };
    sparse("runs/a/last.ckpt", 1 << 31);
    sparse("runs/a/best.ckpt", 300 << 20);
    let started = std::time::Instant::now();
    let error = code.pack().unwrap_err();
    assert!(started.elapsed().as_millis() < 1000, "it took {:?}", started.elapsed());
    assert!(error.is_size);
    assert_eq!(error.message, "the code in `.` is 2348 MiB, and at most 100 MiB go with a job");
    let note = "the largest entries: `runs/a/last.ckpt` (2048 MiB), `runs/a/best.ckpt` (300 MiB)";
    assert!(error.note.ends_with(note), "{}", error.note);
}
