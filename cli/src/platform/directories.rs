//! The directories of the user.

use camino::{Utf8Path, Utf8PathBuf};

/// The home directory.
pub(crate) fn home() -> Option<Utf8PathBuf> {
    let home = Utf8PathBuf::from_path_buf(std::env::home_dir()?).ok()?;
    home.is_absolute().then_some(home)
}

/// Where jobc keeps files for the user: `~/.local/share/jobc`, on Windows `%LOCALAPPDATA%\jobc`.
pub(crate) fn data() -> Option<Utf8PathBuf> {
    let variable = if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_DATA_HOME" };
    let set = std::env::var(variable).ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let directory = set.or_else(|| Some(home()?.join(".local/share")))?;
    Some(directory.join("jobc"))
}

/// A path as editors accept it in a modeline; none if it has a space, which ends the address.
pub(crate) fn in_modeline(path: &Utf8Path) -> Option<String> {
    let below_home = home().and_then(|home| path.strip_prefix(home).ok());
    let address = match below_home {
        // The same for all who work on the job.
        Some(rest) if cfg!(unix) => format!("~/{rest}"),
        _ if path.as_str().starts_with('/') => path.to_string(),
        _ => format!("file:///{}", path.as_str().replace('\\', "/")),
    };
    (!address.contains(char::is_whitespace)).then_some(address)
}
