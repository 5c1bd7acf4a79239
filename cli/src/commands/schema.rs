//! `jobc schema`: prints the JSON Schemas, or the path of a file with one.

use std::borrow::Cow;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::site::Site;
use jobc_schema::{JOB_SCHEMA, OUTPUT_SCHEMA, PLAN_SCHEMA, PLUGIN_SCHEMA, TARGETS_SCHEMA};

use crate::args::SchemaArg;
use crate::input::reason;
use crate::outcome::Outcome;
use crate::platform::{directories, openapi_document};
use crate::terminal;

pub(crate) fn run(name: SchemaArg, path: bool) -> Outcome {
    if name == SchemaArg::Openapi && openapi_document().is_none() {
        terminal::eprint("jobc: this build has no `jobc serve`, and no REST API\n");
        return Outcome::Errors;
    }
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

/// The comment by which editors find a schema: its address if this build has a site, else the file of a package of the
/// system. `None` without either: a job file is shared, and a path in the files of one user is useless to others.
pub(crate) fn modeline(name: SchemaArg) -> Option<String> {
    let address = match Site::of_build() {
        Some(site) => site.schema(file_name(name)),
        None => installed(name).filter(|path| is_of_system(path))?.into_string(),
    };
    Some(format!("# yaml-language-server: $schema={address}"))
}

/// Whether a path is the same on every host with the same package.
fn is_of_system(path: &Utf8Path) -> bool {
    ["/usr", "/opt"].iter().any(|root| path.starts_with(root))
}

fn file_name(name: SchemaArg) -> &'static str {
    match name {
        SchemaArg::Job => "job.v1.schema.json",
        SchemaArg::Targets => "targets.v1.schema.json",
        SchemaArg::Plan => "plan.v1.schema.json",
        SchemaArg::Plugin => "plugin.v1.schema.json",
        SchemaArg::Output => "output.v1.schema.json",
        SchemaArg::Openapi => "openapi.v1.json",
    }
}

/// The schema as it is published.
fn text(name: SchemaArg) -> Cow<'static, str> {
    let committed = match name {
        SchemaArg::Job => JOB_SCHEMA,
        SchemaArg::Targets => TARGETS_SCHEMA,
        SchemaArg::Plan => PLAN_SCHEMA,
        SchemaArg::Plugin => PLUGIN_SCHEMA,
        SchemaArg::Output => OUTPUT_SCHEMA,
        SchemaArg::Openapi => return openapi_document().unwrap_or_default().into(),
    };
    match Site::of_build() {
        Some(site) => site.with_address(committed, file_name(name)).into(),
        None => committed.into(),
    }
}

/// A file with the schema: the one that a package has installed for all users, else one in the user's data directory,
/// which is written.
///
/// A file in the home directory may belong to a short-lived environment, such as one of `uvx`.
fn file(name: SchemaArg) -> io::Result<Utf8PathBuf> {
    if let Some(path) = installed(name) {
        return Ok(path);
    }
    let text = text(name);
    let directory = directories::data()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no home directory"))?
        .join("schemas");
    let path = directory.join(file_name(name));
    if !has_text(&path, &text) {
        fs::create_dir_all(&directory)?;
        let new = directory.join(format!(".{}.{}", file_name(name), std::process::id()));
        let written = fs::write(&new, text.as_bytes()).and_then(|()| fs::rename(&new, &path));
        written.inspect_err(|_| drop(fs::remove_file(&new)))?;
    }
    Ok(path)
}

/// The file of a package with the schema of this version, as `packaging/stage` lays out packages.
fn installed(name: SchemaArg) -> Option<Utf8PathBuf> {
    let program = Utf8PathBuf::from_path_buf(std::env::current_exe().ok()?).ok()?;
    let path = program.parent()?.parent()?.join("share/jobc/schemas").join(file_name(name));
    let home = directories::home().and_then(|home| home.canonicalize_utf8().ok());
    (!home.is_some_and(|home| path.starts_with(home)) && has_text(&path, &text(name))).then_some(path)
}

fn has_text(path: &Utf8Path, text: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modeline_does_not_contain_a_user_specific_path() {
        for (path, of_system) in [
            ("/usr/share/jobc/schemas/job.v1.schema.json", true),
            ("/usr/local/share/jobc/schemas/job.v1.schema.json", true),
            ("/opt/homebrew/share/jobc/schemas/job.v1.schema.json", true),
            ("/home/ada/.venv/share/jobc/schemas/job.v1.schema.json", false),
            ("/tmp/venv/share/jobc/schemas/job.v1.schema.json", false),
            ("C:\\jobc\\share\\jobc\\schemas\\job.v1.schema.json", false),
        ] {
            assert_eq!(is_of_system(Utf8Path::new(path)), of_system, "{path}");
        }
    }
}
