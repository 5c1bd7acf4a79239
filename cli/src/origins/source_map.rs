//! The source map next to a file that a build has written.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::why::source_map::{FILE, SourceMap};

use crate::input::{InputError, absolute, read};

/// The source map of the directory that a file was built into, and that directory; nothing for other files.
///
/// # Errors
/// A source map that cannot be read.
pub(crate) fn above(file: &Utf8Path) -> Result<Option<(Utf8PathBuf, SourceMap)>, InputError> {
    let file = absolute(file.parent().filter(|p| !p.as_str().is_empty()).unwrap_or(Utf8Path::new(".")))
        .unwrap_or_default();
    let Some(directory) = file.ancestors().find(|directory| directory.join(FILE).is_file()) else {
        return Ok(None);
    };
    let path = directory.join(FILE);
    let map = SourceMap::parse(&read(&path)?)
        .map_err(|error| InputError(format!("`{path}` is not a source map: {error}; build the job again")))?;
    Ok(Some((directory.to_owned(), map)))
}
