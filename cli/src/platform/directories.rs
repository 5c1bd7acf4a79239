//! The directories of the user.

use camino::Utf8PathBuf;

/// The home directory.
pub(crate) fn home() -> Option<Utf8PathBuf> {
    let home = Utf8PathBuf::from_path_buf(std::env::home_dir()?).ok()?;
    home.is_absolute().then_some(home)
}

/// Where jobc keeps what it can make or fetch again: `~/.cache/jobc`, on Windows `%LOCALAPPDATA%\\jobc\\cache`.
pub(crate) fn cache() -> Option<Utf8PathBuf> {
    if cfg!(windows) {
        return Some(data()?.join("cache"));
    }
    let set = std::env::var("XDG_CACHE_HOME").ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let directory = set.or_else(|| Some(home()?.join(".cache")))?;
    Some(directory.join("jobc"))
}

/// Where jobc keeps files for the user: `~/.local/share/jobc`, on Windows `%LOCALAPPDATA%\jobc`.
pub(crate) fn data() -> Option<Utf8PathBuf> {
    let variable = if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_DATA_HOME" };
    let set = std::env::var(variable).ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let directory = set.or_else(|| Some(home()?.join(".local/share")))?;
    Some(directory.join("jobc"))
}
