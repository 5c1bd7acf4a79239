//! What programs name of jobc's variables and files.

use std::collections::BTreeSet;
use std::path::Path;

use camino::Utf8Path;

use crate::walk::{Entry, walk};

/// The maximum size of a program: larger files are data.
const MAX_BYTES: u64 = 512 << 10;
/// The maximum number of files that are read of a directory.
const MAX_FILES: usize = 2_000;
/// The endings of programs; a file without one may be a program, too. Job files and what jobc writes are none.
const ENDINGS: [&str; 28] = [
    "py", "pyx", "ipynb", "sh", "bash", "zsh", "fish", "pl", "rb", "lua", "r", "R", "jl", "js", "mjs", "ts",
    "go", "rs", "c", "cc", "cpp", "cu", "cuh", "h", "hpp", "java", "kt", "scala",
];
/// The file beside which everything is written by jobc.
const BUILT: &str = "sourcemap.json";

/// What a program, or the programs in a directory that go with a job, name of jobc's variables and files.
///
/// Files that cannot be read name nothing: whoever sends them reports that.
pub fn mentions(path: &Utf8Path) -> BTreeSet<String> {
    let path = path.as_std_path();
    if path.is_file() {
        return in_file(path);
    }
    let found = walk(path, "").unwrap_or_default();
    let maps = found.entries.keys().filter(|path| path.file_name().is_some_and(|name| name == BUILT));
    let built: Vec<&Path> = maps.filter_map(|path| path.parent()).collect();
    let is_own = |path: &Path| !built.iter().any(|directory| path.starts_with(directory));
    let programs = found.entries.iter().filter(|(path, entry)| is_program(path, entry) && is_own(path));
    programs.take(MAX_FILES).flat_map(|(below, _)| in_file(&path.join(below))).collect()
}

fn is_program(path: &Path, entry: &Entry) -> bool {
    let is_small = matches!(entry, Entry::File(bytes) if *bytes <= MAX_BYTES);
    is_small && path.extension().is_none_or(|ending| ENDINGS.iter().any(|known| ending == *known))
}

fn in_file(path: &Path) -> BTreeSet<String> {
    let is_small = std::fs::metadata(path).is_ok_and(|status| status.len() <= MAX_BYTES);
    let bytes = if is_small { std::fs::read(path).unwrap_or_default() } else { vec![] };
    jobc_compiler::asks::mentions(&String::from_utf8_lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_name_variables() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        let write = |name: &str, text: &[u8]| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("train.py", b"rank = int(os.environ[\"JOBC_RANK\"])\n");
        write("lib/peers.py", b"open('/etc/jobc/job.json')");
        write("serve", b"#!/bin/sh\necho $JOBC_PORT_HTTP");
        write("data.bin", b"JOBC_INDEX");
        write("built/lab/sourcemap.json", b"{}");
        write("built/lab/slurm/role.sh", b"export JOBC_JOB=x");
        write("large.py", &b"JOBC_INDEX ".repeat(60 << 10));
        let names = |path: &str| mentions(&root.join(path)).into_iter().collect::<Vec<_>>();
        assert_eq!(names(""), ["/etc/jobc/job.json", "JOBC_PORT_HTTP", "JOBC_RANK"]);
        assert_eq!(names("train.py"), ["JOBC_RANK"]);
        assert!(names("none").is_empty() && names("large.py").is_empty());
    }
}
