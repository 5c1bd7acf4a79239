//! How files of users are replaced.

use camino::Utf8Path;

use crate::input::reason;

/// Replaces the text of a file as a whole: a reader sees the old text or the new one. A link keeps its target.
pub(crate) fn replace(file: &Utf8Path, text: &str) -> std::io::Result<()> {
    let target = file.canonicalize_utf8()?;
    let name = target.file_name().unwrap_or_default();
    let beside = target.with_file_name(format!(".{name}.jobc-{}", std::process::id()));
    let result = std::fs::write(&beside, text)
        .and_then(|()| std::fs::set_permissions(&beside, target.metadata()?.permissions()))
        .and_then(|()| std::fs::rename(&beside, &target));
    if result.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    result.map_err(|error| std::io::Error::other(reason(&error)))
}
