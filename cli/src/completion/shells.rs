//! The completion scripts of the shells.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use super::VARIABLE;

/// The name of the program, which scripts run by `PATH`.
const PROGRAM: &str = "jobc";

/// The shells that can ask for completions.
pub(super) fn all() -> Shells<'static> {
    Shells(&[&WholeWords, &Elvish, &Fish, &Powershell, &Autoloaded])
}

/// The script of a shell.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    let shells = all();
    if let Some(shell) = shells.completer(&shell.to_string()) {
        let written = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.expect("memory can be written");
    }
    String::from_utf8_lossy(&script).into_owned()
}

/// Bash, whose words end at `:` and `=`: names of images and `--option=value` are put together again.
struct WholeWords;

const BASH: &str = include_str!("shells/jobc.bash");

impl EnvCompleter for WholeWords {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<(), io::Error> {
        let script = BASH.replace("VARIABLE", var).replace("COMMAND", bin).replace("PROGRAM", completer);
        buf.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), io::Error> {
        Bash.write_complete(cmd, args, current_dir, buf)
    }
}

/// Zsh, which runs a file of completions at the first Tab: that Tab completes, too.
struct Autoloaded;

impl EnvCompleter for Autoloaded {
    fn name(&self) -> &'static str {
        Zsh.name()
    }

    fn is(&self, name: &str) -> bool {
        Zsh.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<(), io::Error> {
        Zsh.write_registration(var, name, bin, completer, buf)?;
        writeln!(buf, "if [[ $funcstack[1] == _{bin} ]]; then _clap_dynamic_completer_{name} \"$@\"; fi")
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), io::Error> {
        Zsh.write_complete(cmd, args, current_dir, buf)
    }
}
