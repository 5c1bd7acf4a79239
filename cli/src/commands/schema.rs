//! `jobc schema`: prints the JSON Schemas, or the path of a file with one.

use std::borrow::Cow;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::site::Site;
use jobc_schema::{JOB_SCHEMA, PLAN_SCHEMA, TARGETS_SCHEMA};

use crate::args::SchemaArg;
use crate::input::reason;
use crate::outcome::Outcome;
use crate::platform::directories;
use crate::terminal;

pub(crate) fn run(name: SchemaArg, path: bool) -> Outcome {
    if !path {
        terminal::print(&text(name));
        return Outcome::Success;
    }
    match file(name) {
        Ok(path) => {
            terminal::print(&format!("{path}\n"));
            Outcome::Success
        }
        Err(error) => {
            terminal::eprint(&format!("jobc: cannot write the schema to a file: {}\n", reason(&error)));
            Outcome::SystemError
        }
    }
}

/// The comment by which editors find a schema: its address if this build has a site, else its file; none if there is
/// no place for a file.
pub(crate) fn modeline(name: SchemaArg) -> Option<String> {
    let address = match Site::of_build() {
        Some(site) => site.schema(file_name(name)),
        None => directories::in_modeline(&file(name).ok()?)?,
    };
    Some(format!("# yaml-language-server: $schema={address}"))
}

fn file_name(name: SchemaArg) -> &'static str {
    match name {
        SchemaArg::Job => "job.v1.schema.json",
        SchemaArg::Targets => "targets.v1.schema.json",
        SchemaArg::Plan => "plan.v1.schema.json",
    }
}

/// The schema as it is published.
fn text(name: SchemaArg) -> Cow<'static, str> {
    let committed = match name {
        SchemaArg::Job => JOB_SCHEMA,
        SchemaArg::Targets => TARGETS_SCHEMA,
        SchemaArg::Plan => PLAN_SCHEMA,
    };
    match Site::of_build() {
        Some(site) => site.with_address(committed, file_name(name)).into(),
        None => committed.into(),
    }
}

/// A file with the schema: the one that a package has installed for all users, else one in the user's data directory,
/// which is written.
///
/// A file in the home directory belongs to an environment that may be gone tomorrow, such as one of `uvx`.
fn file(name: SchemaArg) -> io::Result<Utf8PathBuf> {
    let text = text(name);
    let has_text = |path: &Utf8Path| fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes());
    if let Some(path) = installed(file_name(name)).filter(|path| has_text(path)) {
        return Ok(path);
    }
    let directory = directories::data()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no home directory"))?
        .join("schemas");
    let path = directory.join(file_name(name));
    if !has_text(&path) {
        fs::create_dir_all(&directory)?;
        let new = directory.join(format!(".{}.{}", file_name(name), std::process::id()));
        let written = fs::write(&new, text.as_bytes()).and_then(|()| fs::rename(&new, &path));
        written.inspect_err(|_| drop(fs::remove_file(&new)))?;
    }
    Ok(path)
}

/// The place of a schema next to this program, as `packaging/stage` lays out packages.
fn installed(file: &str) -> Option<Utf8PathBuf> {
    let program = Utf8PathBuf::from_path_buf(std::env::current_exe().ok()?).ok()?;
    let path = program.parent()?.parent()?.join("share/jobc/schemas").join(file);
    let home = directories::home().and_then(|home| home.canonicalize_utf8().ok());
    (!home.is_some_and(|home| path.starts_with(home))).then_some(path)
}
