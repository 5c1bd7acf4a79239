//! Tests that cannot run on this host return early, and their harness counts them as passed. Each says here what it
//! needs, and `./test` prints and counts it. Which tests are shortened without `./test --all` is asked here too.
#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

/// Records that the current test needs what this host does not have; the test returns.
///
/// Writes a line `skipped: NAME: needs WHAT` to standard error, and appends it to the file that `JOBC_SKIPPED` names.
///
/// # Panics
/// If that file cannot be written.
pub fn skip(needs: &str) {
    // The harness names a test's thread after it.
    let thread = std::thread::current();
    let line = format!("skipped: {}: needs {needs}\n", thread.name().unwrap_or("a thread of a test"));
    eprint!("{line}");
    if let Some(path) = std::env::var_os("JOBC_SKIPPED") {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("JOBC_SKIPPED={}: {error}", path.display()));
    }
}

/// Whether slow tests run in full, as in `./test --all`, which sets the environment variable `JOBC_ALL`; otherwise a test
/// of hundreds of cases takes some of each kind.
pub fn in_full() -> bool {
    std::env::var_os("JOBC_ALL").is_some()
}

/// Whether slow tests run in full; otherwise the current test is skipped.
pub fn is_in_full() -> bool {
    let full = in_full();
    if !full {
        skip("`./test --all`");
    }
    full
}

/// Whether root runs the current test; otherwise it is skipped.
pub fn is_root() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        skip("root");
    }
    root
}

/// Whether a program is in `PATH`; otherwise the current test is skipped.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    if !found {
        skip(name);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Only [`a_skipped_test_is_named_with_what_it_needs`] runs it.
    #[test]
    #[ignore = "run by another test"]
    fn needs_a_unicorn() {
        super::skip("a unicorn");
    }

    #[test]
    fn a_skipped_test_is_named_with_what_it_needs() {
        let path = std::env::temp_dir().join(format!("jobc-skipped-{}", std::process::id()));
        for _ in 0..2 {
            let test = std::env::current_exe().expect("this program");
            let mut command = Command::new(test);
            command.args(["--ignored", "--exact", "tests::needs_a_unicorn"]).env("JOBC_SKIPPED", &path);
            assert!(command.output().expect("it starts").status.success());
        }
        let text = std::fs::read_to_string(&path).expect("written");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(text, "skipped: tests::needs_a_unicorn: needs a unicorn\n".repeat(2));
    }
}
