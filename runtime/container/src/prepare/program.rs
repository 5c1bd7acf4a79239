//! The program itself: where it is looked for, its arguments, its environment.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::path::PathBuf;

use oci_spec::runtime::Process;

use super::steps::c_string;
use crate::labels::Label;
use crate::seccomp::Program as Filter;
use crate::secret::SecretEnvironment;
use crate::start::Program;
use crate::trampoline::birth::ProgramProcess;
use crate::user;
use jobc_sys::error::{Error, Kind, Result};

/// The search path when the environment has no `PATH`, as in execvp(3).
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// `root` are the layers, lowest first, where the container's /etc/passwd is found by this process: the home of its
/// user, where it is not given.
pub(super) fn prepare_program(
    process: &Process,
    filter: Option<Filter>,
    label: Option<Label>,
    root: &[PathBuf],
    secret_environment: SecretEnvironment,
) -> Result<Program> {
    let texts = |list: &Option<Vec<String>>, place: &str| -> Result<Vec<CString>> {
        list.iter()
            .flatten()
            .enumerate()
            .map(|(index, text)| c_string(text.as_str(), &format!("{place}/{index}")))
            .collect()
    };
    let arguments = texts(process.args(), "/process/args")?;
    let mut environment = last_of_each(texts(process.env(), "/process/env")?);
    let given = environment.iter().map(CString::as_c_str).chain(secret_environment.iter());
    if !given.into_iter().any(|variable| variable.to_bytes().starts_with(b"HOME=")) {
        let home = user::home(root, process.user().uid());
        environment.push(c_string([b"HOME=", home.as_bytes()].concat(), "/process/env")?);
    }
    let name = arguments.first().filter(|name| !name.is_empty()).ok_or_else(|| {
        Error::new(Kind::Config, "no program to start")
            .at("/process/args")
            .help("write `args: [\"/bin/sh\"]`, for example")
    })?;
    Ok(Program {
        candidates: candidates(name, &environment)?,
        arguments,
        environment,
        secret_environment,
        filter,
        label,
        process: ProgramProcess::Same,
    })
}

/// Of variables of one name the last, in their order: programs read the first of them or the last, and runc and crun
/// keep the last.
fn last_of_each(mut environment: Vec<CString>) -> Vec<CString> {
    let name =
        |variable: &CString| variable.as_bytes().split(|&byte| byte == b'=').next().map(<[u8]>::to_vec);
    let mut seen = BTreeSet::new();
    environment.reverse();
    environment.retain(|variable| seen.insert(name(variable)));
    environment.reverse();
    environment
}

/// The candidate paths of a name: itself where it has a slash, else one for each directory of `PATH`.
fn candidates(name: &CString, environment: &[CString]) -> Result<Vec<CString>> {
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![name.clone()]);
    }
    let path = environment.iter().rev().find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(DEFAULT_PATH.as_bytes())
        .split(|&byte| byte == b':')
        .map(|directory| {
            let directory = if directory.is_empty() { &b"."[..] } else { directory };
            c_string([directory, b"/", name.as_bytes()].concat(), "/process/args/0")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_values_of_a_variable_is_kept() {
        let list = |words: &[&str]| words.iter().map(|word| CString::new(*word).unwrap()).collect::<Vec<_>>();
        let found = last_of_each(list(&["A=1", "PATH=/bin", "A=2", "A", "B=x=y", "B=x=z"]));
        assert_eq!(found, list(&["PATH=/bin", "A", "B=x=z"]));
    }
}
