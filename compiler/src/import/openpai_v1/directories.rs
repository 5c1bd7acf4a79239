//! `dataDir`, `outputDir` and `codeDir`: host directories, or locations in the cluster's file system.

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Node};
use crate::import::fields::{Fields, wrong};
use crate::import::nodes::{entry, map, string};
use crate::source::Span;

/// Where OpenPAI 0.14 put the directory of `codeDir` before copying its content to the working directory.
const CODE: &str = "/pai/code";

/// The converted directories.
#[derive(Default)]
pub(super) struct Directories {
    /// `data`, `outputs`, and the variables with their locations.
    pub(super) volumes: Vec<Entry>,
    /// Shell lines that set variables to locations that only OpenPAI knows, and that copy the code.
    pub(super) setup: String,
}

/// Reads the directories.
///
/// A host directory is mounted at the same path in the container. A location in the cluster's file system, such as
/// `$PAI_DEFAULT_FS_URI/data`, is never mounted: the program reads it by its URI, which a variable contains.
/// `codeDir` was copied into the working directory under its own name; a host directory still is.
pub(super) fn read(job: &Fields<'_>, variables: Vec<Entry>, sink: &mut Sink) -> Directories {
    let mut directories = Directories::default();
    let (mut data, mut env) = (vec![], vec![]);
    for (name, variable) in
        [("dataDir", "PAI_DATA_DIR"), ("outputDir", "PAI_OUTPUT_DIR"), ("codeDir", "PAI_CODE_DIR")]
    {
        let Some((field, path)) = job.text(name, sink) else { continue };
        let (key, at) = (field.key_span, field.value.span);
        if path.contains('$') || path.contains("://") {
            directories.setup.push_str(&address(variable, path));
            sink.push(if name == "codeDir" {
                no_code(job, at, path)
            } else {
                only_there(name, variable, at)
            });
            continue;
        }
        if !path.starts_with('/') {
            wrong(field, "an absolute path, or an address", sink);
            continue;
        }
        let volume = |mount: &str| {
            map(at, vec![entry("source", key, string(at, path)), entry("mount", key, string(at, mount))])
        };
        match name {
            "dataDir" => data.push(entry("data", key, volume(path))),
            "codeDir" => {
                let directory = format!("{CODE}/{}", last(path));
                data.push(entry("code", key, volume(&directory)));
                directories.setup.push_str(&format!("cp -r {CODE}/* ./\n"));
            }
            _ => {
                let outputs = map(at, vec![entry("output", key, volume(path))]);
                directories.volumes.push(entry("outputs", key, outputs));
            }
        }
        env.push(entry(variable, key, string(at, path)));
    }
    if let Some(first) = data.first() {
        let (key, at) = (first.key_span, first.value.span);
        directories.volumes.insert(0, entry("data", key, map(at, data)));
    }
    env.extend(variables);
    if let Some(first) = env.first() {
        let at = first.key_span;
        directories.volumes.push(entry("env", at, map(at, env)));
    }
    directories
}

/// The line that sets a variable to a URI; double quotes let the shell expand OpenPAI's variables.
fn address(variable: &str, path: &str) -> String {
    let path = path.replace("$HDFS", "$PAI_DEFAULT_FS_URI");
    let path = path.replace('\\', "\\\\").replace('"', "\\\"").replace('`', "\\`");
    format!("export {variable}=\"{path}\"\n")
}

/// The last component of a directory's path.
fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

fn only_there(name: &str, variable: &str, at: Span) -> Diagnostic {
    let message = format!("`{name}` is a location that only an OpenPAI cluster has");
    Diagnostic::info(codes::OPENPAI_PLACE, message).at_span(at, "").note(format!(
        "the program finds the address in `{variable}`; for other targets write the path of a directory, such as `/tmp/data`"
    ))
}

/// The finding for code in a file system that is no longer supported, with the commands that use it.
fn no_code(job: &Fields<'_>, at: Span, path: &str) -> Diagnostic {
    let directory = last(path);
    let mut found = Diagnostic::warning(
        codes::OPENPAI_CODE,
        format!("nothing copies the code of `codeDir` into the tasks: only OpenPAI before 1.0 did, into `./{directory}`"),
    )
    .at_span(at, "");
    for role in job.node.get("taskRoles").map_or(&[][..], Node::items) {
        let Some(command) = role.get("command") else { continue };
        if command.as_str().is_some_and(|text| text.contains(directory)) {
            found = found.at_span(command.span, "looks for it");
        }
    }
    found.note("put the code into the image, clone it with `git` in `command`, or write the path of a directory of the host that has it")
}
