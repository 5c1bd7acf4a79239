//! The cases of diagnostic codes: `tests/errors/CODE/NAME.snap` holds the files of a job, then what the compiler says.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::Code;
use tempfile::TempDir;

use crate::sections::{Sections, sections};
use crate::{entries, workspace};

/// The sections of a case that the compiler gives; those before them are files.
const OUTPUT: [&str; 2] = ["options", "text"];

/// A case, with its files on disk.
pub struct Case {
    /// The code that the case must give.
    pub code: Code,
    /// The name of the snapshot.
    pub name: String,
    /// The job file.
    pub job: Utf8PathBuf,
    /// The files: path below the directory of the job file, and text.
    pub files: Sections,
}

/// All cases, in a temporary directory that lives as long as this.
pub struct Cases {
    /// The cases, by code and name.
    pub all: Vec<Case>,
    directory: TempDir,
}

impl Cases {
    /// Reads every case below `tests/errors/`.
    ///
    /// # Panics
    /// On a directory that is not named after a code, and on a file that is not a case.
    pub fn read() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(directory.path()).expect("a UTF-8 path");
        let mut all = Vec::new();
        for below in entries(&workspace().join("tests/errors")) {
            let name = below.file_name().expect("an entry has a name");
            let code = Code::parse(name).filter(|code| code.as_str() == name);
            let code = code.unwrap_or_else(|| panic!("{below}: `{name}` is not in the table of codes"));
            for path in entries(&below) {
                assert_eq!(path.extension(), Some("snap"), "{path}: not a snapshot");
                let name = path.file_stem().expect("a file has a name").to_owned();
                all.push(unpack(code, name, &path, &root.join(code.as_str())));
            }
        }
        Self { all, directory }
    }

    /// Where the files of the cases are.
    pub fn directory(&self) -> &Utf8Path {
        Utf8Path::from_path(self.directory.path()).expect("a UTF-8 path")
    }
}

fn unpack(code: Code, name: String, snapshot: &Utf8Path, directory: &Utf8Path) -> Case {
    let text = std::fs::read_to_string(snapshot).unwrap_or_else(|error| panic!("{snapshot}: {error}"));
    let mut files = sections(&text);
    let end = files.iter().position(|(name, _)| OUTPUT.contains(&name.as_str())).unwrap_or(files.len());
    files.truncate(end);
    let directory = directory.join(&name);
    for (path, text) in &files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("the directory can be made");
        std::fs::write(&path, text).expect("the file can be written");
    }
    let is_job = |path: &str| ["job.yaml", "job.json", "compose.yaml"].contains(&path);
    let job = files.iter().find(|(path, _)| is_job(path) || files.len() == 1);
    let (job, _) = job
        .unwrap_or_else(|| panic!("{snapshot}: has neither `==== job.yaml` nor one file before `==== text`"));
    Case { code, name, job: directory.join(job), files }
}
