//! `dataDir`, `outputDir` and `codeDir`: directories of the host, or places of the cluster's file system.

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::Entry;
use crate::import::fields::{Fields, wrong};
use crate::import::nodes::{entry, map, string};

/// What becomes of the directories.
pub(super) struct Directories {
    /// `data`, `outputs` and the variables with their places.
    pub(super) volumes: Vec<Entry>,
    /// Shell lines that set variables with locations that only OpenPAI knows.
    pub(super) setup: String,
}

/// Reads the directories.
///
/// A directory of the host is mounted at the path it has outside. A place of the cluster's file system, such as
/// `$PAI_DEFAULT_FS_URI/data`, is never mounted: the program reads it by its address, which is in a variable.
pub(super) fn read(job: &Fields<'_>, sink: &mut Sink) -> Directories {
    let mut directories = Directories { volumes: vec![], setup: String::new() };
    let mut env = vec![];
    let mounted = [
        ("dataDir", "PAI_DATA_DIR", Some(("data", "data"))),
        ("outputDir", "PAI_OUTPUT_DIR", Some(("outputs", "output"))),
        ("codeDir", "PAI_CODE_DIR", None),
    ];
    for (name, variable, ours) in mounted {
        let Some((field, path)) = job.text(name, sink) else { continue };
        let (key, at) = (field.key_span, field.value.span);
        let far = path.contains('$') || path.contains("://");
        match ours {
            _ if far => {
                // The text in double quotes is the address with OpenPAI's own variables filled in.
                let path = path.replace("$HDFS", "$PAI_DEFAULT_FS_URI");
                let path = path.replace('\\', "\\\\").replace('"', "\\\"").replace('`', "\\`");
                directories.setup.push_str(&format!("export {variable}=\"{path}\"\n"));
                sink.push(
                    Diagnostic::info(codes::OPENPAI_PLACE, format!("`{name}` is a location that only an OpenPAI cluster has"))
                        .at_span(at, "")
                        .note(format!("the program finds the address in `{variable}`; for other targets write the path of a directory, such as `/tmp/data`")),
                );
            }
            Some((ours, called)) if path.starts_with('/') => {
                let directory = map(
                    at,
                    vec![entry("source", key, string(at, path)), entry("mount", key, string(at, path))],
                );
                directories.volumes.push(entry(ours, key, map(at, vec![entry(called, key, directory)])));
                env.push(entry(variable, key, string(at, path)));
            }
            None if path.starts_with('/') => {
                sink.push(
                    Diagnostic::info(
                        codes::OPENPAI_PLACE,
                        "OpenPAI copies `codeDir` into the container; other targets do without",
                    )
                    .at_span(at, "")
                    .note("put the code into the image, or fetch it in the command"),
                );
            }
            _ => wrong(field, "an absolute path, or an address", sink),
        }
    }
    if let Some(first) = env.first() {
        let at = first.key_span;
        directories.volumes.push(entry("env", at, map(at, env)));
    }
    directories
}
