//! A directory of a test's own, and the binary run in it.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

/// The smallest job that every backend but the Dockerfile one writes something for.
pub(crate) const HELLO: &str = "\
version: 1
name: hello
image: busybox:1.36
params: {greeting: hello, count: 2}
roles:
  main:
    instances: ${{ params.count }}
    resources: {cpu: 1, memory: 64MiB, gpu: 0}
    run: echo ${{ params.greeting }}
";

/// A directory that is removed with the value; it is outside the repository, so that no `targets.yaml` is found.
pub(crate) struct Directory {
    path: Utf8PathBuf,
    _keep: tempfile::TempDir,
}

/// The result of a run of the binary.
pub(crate) struct Run {
    /// The exit code; nothing where a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The examples of the repository.
pub(crate) fn examples() -> Vec<Utf8PathBuf> {
    let directory = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut found: Vec<Utf8PathBuf> = directory
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| ["job.yaml", "job.json"].iter().any(|job| path.join(job).is_file()))
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// The files of the cases below `tests/errors`, in order: `CODE/NAME/FILE`, and the text.
///
/// A case is a snapshot whose sections before the compiler's output are its files.
pub(crate) fn files_of_cases() -> Vec<(Utf8PathBuf, String)> {
    let directory = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/errors");
    let mut found = vec![];
    for (path, bytes) in contents(&directory) {
        let case = path.with_extension("");
        let text = String::from_utf8(bytes).unwrap();
        for section in text.split("\n==== ").skip(1) {
            let (name, text) = section.split_once('\n').unwrap_or((section, ""));
            if ["options", "short", "text"].contains(&name) {
                break;
            }
            let end = if text.is_empty() { "" } else { "\n" };
            found.push((case.join(name), format!("{text}{end}")));
        }
    }
    assert!(!found.is_empty(), "{directory} has no cases");
    found
}

/// The path of the binary under test.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_jobc")
}

/// A command without environment variables that change its output.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "JOBC_COLOR", "COLUMNS", "CI"] {
        command.env_remove(name);
    }
    for name in ["JOBC_ALLOW_UNENFORCED", "JOBC_IMAGE_ROOT", "JOBC_REGISTRIES", "JOBC_TARGET"] {
        command.env_remove(name);
    }
    // No settings of the user who runs the tests.
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_CACHE_HOME", "/dev/null/none");
    command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

/// Every file below a directory, links and directories without files left out.
pub(crate) fn contents(directory: &Utf8Path) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in next.read_dir_utf8().into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.into_path());
            } else {
                let path = entry.path().strip_prefix(directory).unwrap().to_owned();
                files.insert(path, fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

/// Asserts that two directories are equal, and names the files that differ.
#[track_caller]
pub(crate) fn assert_same(now: &BTreeMap<Utf8PathBuf, Vec<u8>>, then: &BTreeMap<Utf8PathBuf, Vec<u8>>) {
    type Files = BTreeMap<Utf8PathBuf, Vec<u8>>;
    let missing = |a: &Files, b: &Files| -> Vec<Utf8PathBuf> {
        a.iter().filter(|(path, bytes)| b.get(*path) != Some(*bytes)).map(|(path, _)| path.clone()).collect()
    };
    let (now, then) = (missing(now, then), missing(then, now));
    assert!(now.is_empty() && then.is_empty(), "new or changed: {now:?}\ngone or changed: {then:?}");
}

impl Directory {
    /// An empty directory.
    pub(crate) fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(keep.path().canonicalize().unwrap()).unwrap();
        Self { path, _keep: keep }
    }

    /// A directory with one job file.
    pub(crate) fn with_job(text: &str) -> Self {
        let directory = Self::new();
        directory.write("job.yaml", text);
        directory
    }

    /// A copy of an example, without its golden output.
    pub(crate) fn example(name: &str) -> Self {
        let directory = Self::new();
        let from = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
        let files = contents(&from);
        assert!(!files.is_empty(), "there is no example `{name}`");
        for (path, bytes) in files.iter().filter(|(path, _)| !path.starts_with("out")) {
            directory.write_bytes(path.as_str(), bytes);
        }
        directory
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Writes a file, with its directory.
    pub(crate) fn write(&self, path: &str, text: &str) {
        self.write_bytes(path, text.as_bytes());
    }

    /// Writes a file that need not be text.
    pub(crate) fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Reads a file.
    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.path.join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Every file below `out/`.
    pub(crate) fn out(&self) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
        contents(&self.path.join("out"))
    }

    /// A command that runs here.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        // Records of jobs go with the test.
        command.current_dir(&self.path).env("XDG_STATE_HOME", self.path.join(".records"));
        // Jobs of other users of this host take nothing from those of tests.
        command.env("JOBC_LOCK_DIR", self.path.join(".records/lock"));
        command
    }

    /// Runs the binary here.
    pub(crate) fn jobc(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(binary()).args(arguments))
    }

    /// Runs a line of bash here; `$JOBC` is the binary.
    pub(crate) fn bash(&self, line: &str) -> Run {
        Run::of(self.command("bash").args(["-c", line]).env("JOBC", binary()))
    }
}

impl Run {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("jobc prints UTF-8");
        Self { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// Asserts the exit code, and shows the output if it differs.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "\n--- out\n{}\n--- err\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked") && !self.err.contains("internal error"), "{}", self.err);
        self
    }

    /// Asserts that a text was printed on standard error.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "`{text}` is not in:\n{}", self.err);
        self
    }
}
