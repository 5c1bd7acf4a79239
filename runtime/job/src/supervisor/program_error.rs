//! The error of a program that cannot be executed, for users who wrote a command and not a config.json.

use std::path::PathBuf;

use jobc_container::bundle::Bundle;
use jobc_sys::error::{Error, Kind};
use rustix::io::Errno;

/// The place of the program in config.json.
const PROGRAM: &str = "/process/args/0";

/// Where programs are if the container has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The advice for a program that may not be executed.
const NOT_PERMITTED: &str =
    "make it executable with `chmod +x`, or write its interpreter before it, as in `python3 ./train.py`";

/// The error of a program that was not found in a container with these lower directories.
pub(super) fn not_found(error: Error, bundle: &Bundle, lowers: &[PathBuf]) -> Error {
    if error.kind != Kind::ProgramNotFound {
        return of_command(error, None);
    }
    let process = bundle.config.spec.process().as_ref();
    let program = process.and_then(|process| process.args().as_ref()?.first()).map_or("", String::as_str);
    if program.contains('/') {
        return of_command(error, Some("it must be in the container".to_owned()));
    }
    let env = process.and_then(|process| process.env().as_ref()).into_iter().flatten();
    let path = env.filter_map(|variable| variable.strip_prefix("PATH=")).next_back().unwrap_or(DEFAULT_PATH);
    of_command(error, Some(advice(program, path, lowers)))
}

/// What to do about a program that is in no directory of `PATH`.
pub(super) fn advice(program: &str, path: &str, lowers: &[PathBuf]) -> String {
    let name = if program == "bash" { "sh".to_owned() } else { format!("{program}3") };
    if is_in_path(&name, path, lowers) {
        let shell = if name == "sh" { ", or `shell: sh`" } else { "" };
        return format!("`{name}` is there: write `{name}` instead of `{program}`{shell}");
    }
    "it is in no directory of `PATH`: install it, or name an image that has it".to_owned()
}

pub(super) fn is_in_path(program: &str, path: &str, lowers: &[PathBuf]) -> bool {
    let mut places = path
        .split(':')
        .flat_map(|dir| lowers.iter().map(move |lower| lower.join(dir.trim_start_matches('/'))));
    places.any(|place| place.join(program).symlink_metadata().is_ok())
}

/// The error of a program that exists, and that the kernel did not execute.
pub(super) fn not_executed(error: Error) -> Error {
    let is_missing = error.kind == Kind::ProgramNotFound;
    let help = "the interpreter that its first line names must be in the container too";
    of_command(error, is_missing.then(|| help.to_owned()))
}

fn of_command(error: Error, help: Option<String>) -> Error {
    if error.pointer() != Some(PROGRAM) {
        return error;
    }
    let is_denied = error.errno() == Some(Errno::ACCESS);
    let help = help.or_else(|| is_denied.then(|| NOT_PERMITTED.to_owned()));
    Error { at: None, hints: help.map_or(error.hints, |help| vec![help]), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::with_help;

    fn check(args: &str, kind: Kind) -> String {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("opt/bin")).unwrap();
        std::fs::write(root.join("opt/bin/python3"), "").unwrap();
        std::fs::write(root.join("opt/bin/sh"), "").unwrap();
        let config = format!(
            r#"{{"ociVersion": "1.0.0", "root": {{"path": "x"}}, "process": {{"cwd": "/", "user": {{"uid": 0, "gid": 0}},
                "args": {args}, "env": ["PATH=/bin:/opt/bin"]}}}}"#
        );
        std::fs::write(root.join("config.json"), config).unwrap();
        let bundle = Bundle::open(root).unwrap();
        let error = Error::new(kind, "cannot execute it").at(PROGRAM).help("look at config.json");
        with_help(&not_found(error, &bundle, &[PathBuf::from("/nowhere"), root.to_owned()]))
    }

    #[test]
    fn a_missing_program_is_told_in_words_of_the_job() {
        assert_eq!(
            check(r#"["python", "x.py"]"#, Kind::ProgramNotFound),
            "cannot execute it; `python3` is there: write `python3` instead of `python`"
        );
        assert_eq!(
            check(r#"["bash", "-c", ""]"#, Kind::ProgramNotFound),
            "cannot execute it; `sh` is there: write `sh` instead of `bash`, or `shell: sh`"
        );
        assert_eq!(
            check(r#"["train"]"#, Kind::ProgramNotFound),
            "cannot execute it; it is in no directory of `PATH`: install it, or name an image that has it"
        );
        assert_eq!(
            check(r#"["./train"]"#, Kind::ProgramNotFound),
            "cannot execute it; it must be in the container"
        );
        assert_eq!(check(r#"["train"]"#, Kind::NotExecutable), "cannot execute it; look at config.json");
        let denied = Error::new(Kind::NotExecutable, "cannot execute `./a.py`").because(Errno::ACCESS);
        assert_eq!(not_executed(denied.at(PROGRAM)).advice().as_deref(), Some(NOT_PERMITTED));
        let other = Error::new(Kind::ProgramNotFound, "x").at("/root/path");
        assert_eq!(not_executed(other.clone()), other);
    }
}
