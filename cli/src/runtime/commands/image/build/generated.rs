//! Failures of a Dockerfile that `jobc build` has written, at the lines of its job file.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::source::{Source, Sources};
use jobc_compiler::why::source_map::{FILE, SourceMap};
use jobc_sys::error::Error;

use super::dockerfile_file::Dockerfile;
use super::failure::{Instruction, show};
use crate::args::FormatArg;
use crate::input::{absolute, read, shorten};
use crate::origins::source_map::above;

/// Shows the failure of an instruction; false if the file was not generated from a job file.
pub(super) fn show_failure(
    file: &Dockerfile,
    line: usize,
    error: &Error,
    output: &[Vec<u8>],
    format: FormatArg,
) -> bool {
    let Some(path) = file.path.as_deref().and_then(Utf8Path::from_path) else { return false };
    let (Ok(Some((directory, map))), Ok(whole)) = (above(path), absolute(path)) else { return false };
    let Ok(name) = whole.strip_prefix(&directory) else { return false };
    let sources = sources(&directory, name, &map);
    let instruction = Instruction { path: name, text: &file.text, line };
    let Some(finding) = instruction.finding(error, output, &map, &sources) else { return false };
    show(&sources, finding, format);
    true
}

/// The job files that have caused a file, if they have not changed since: the source map has their former lines.
fn sources(directory: &Utf8Path, name: &Utf8Path, map: &SourceMap) -> Sources {
    let modified = |path: &Utf8Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let built = modified(&directory.join(FILE));
    let parts = map.artifacts.get(name.as_str()).into_iter().flatten();
    let names: BTreeSet<&str> = parts.filter_map(|part| part.file.as_deref()).collect();
    let mut sources = Sources::new();
    for name in names {
        let mut above = directory.ancestors().map(|above| above.join(name));
        let path: Option<Utf8PathBuf> = above.find(|path| path.is_file());
        if let Some(path) = path.filter(|path| modified(path) <= built)
            && let Ok(text) = read(&path)
        {
            sources.add(Source::new(shorten(&path), text));
        }
    }
    sources
}
