//! Configurations that other programs, and this project's examples, make: nothing may be wrong with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Config;

fn sound(text: &[u8], name: &str) {
    let config = Config::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(config.unknown, [""; 0], "{name}");
    assert_eq!(config.check(), [], "{name}");
}

/// Every config.json below a directory.
fn configurations(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            configurations(&path, found);
        } else if path.file_name().is_some_and(|name| name == "config.json") {
            found.push(path);
        }
    }
}

#[test]
fn the_bundles_of_the_examples() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = Vec::new();
    configurations(&examples, &mut found);
    assert!(found.len() >= 10, "{} configurations", found.len());
    for path in found {
        sound(&std::fs::read(&path).expect("a file"), &path.display().to_string());
    }
}

#[test]
fn what_other_runtimes_propose() {
    for (program, arguments) in
        [("runc", &["spec"][..]), ("runc", &["spec", "--rootless"]), ("crun", &["spec"])]
    {
        let directory = tempfile::tempdir().expect("a directory");
        match Command::new(program).args(arguments).current_dir(directory.path()).output() {
            Ok(output) => {
                assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
                let text = std::fs::read(directory.path().join("config.json")).expect("a proposal");
                sound(&text, &format!("{program} {arguments:?}"));
            }
            Err(_) => jobc_test_skip::skip(program),
        }
    }
}
