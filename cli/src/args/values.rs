//! Shared by the options of several commands: value parsers, and the order in `--help`.

/// The display order of global options: after the options of a command, and before `--help` (999).
pub(crate) const GLOBAL_OPTION_ORDER: usize = 990;

/// The default name of the directory with the golden files of `jobc test`, next to a job file.
pub(crate) const GOLDEN: &str = "golden";

pub(crate) fn parse_set(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// The name of a directory next to job files.
pub(crate) fn parse_directory_name(text: &str) -> Result<String, String> {
    match text {
        "" | "." | ".." => Err("write the name of a directory".to_owned()),
        _ if text.contains(['/', '\\']) => {
            Err("write a name without `/`: it is next to each job file".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}
