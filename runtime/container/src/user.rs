//! The process's user, groups, umask and home.
//!
//! The container's own /etc/passwd and /etc/group come from the image and are not trusted. Both are read
//! through the root's file descriptor without ever leaving the root, only if they are regular files, and only up to a
//! bound.

mod accounts;

use std::ffi::CString;
use std::path::PathBuf;

use crate::config::user::MAX_GROUPS;
use crate::root::layers::Layers;
use accounts::{GROUP, PASSWD, read};
use jobc_sys::accounts::{groups, id, users};
use jobc_sys::error::{Error, Kind, Result};

/// A user whom the container's own files know by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary groups, in ascending order. The user's own is one of them, as in a login: otherwise a process could
    /// drop it, and with it what files deny to the group (CVE-2022-36109).
    pub additional: Vec<u32>,
}

/// The home directory of a user from /etc/passwd in the layers of `root`, lowest first: the value of `HOME` if
/// config.json's environment has none.
///
/// `/` if the file cannot be read, does not contain the user, or has a relative path.
pub fn home(root: &[PathBuf], uid: u32) -> CString {
    let passwd = Layers::open(root).ok().and_then(|root| read(&root, PASSWD).ok());
    let home = passwd.as_ref().and_then(|passwd| users(passwd).find(|entry| entry.uid == uid));
    let home = home.map(|entry| entry.home).filter(|home| home.starts_with('/')).unwrap_or("/");
    CString::new(home).unwrap_or_else(|_| c"/".to_owned())
}

/// Looks up `USER[:GROUP]`, as an image or a job file writes it, in the container's /etc/passwd and /etc/group.
///
/// Either part is a name or a number; a name wins over an equal number. Without a group it is the user's own, and further
/// supplementary groups are those whose line names the user; a group excludes all others. A number need not be listed.
pub fn lookup(root: &Layers, text: &str) -> Result<Account> {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    if user.is_empty() || group == Some("") {
        return Err(Error::new(Kind::Config, format!("`{text}` is not a user"))
            .help("write `USER` or `USER:GROUP`, names or numbers"));
    }
    let passwd = read(root, PASSWD)?;
    let entry = users(&passwd).find(|entry| entry.name == user);
    let entry = entry.or_else(|| id(user).and_then(|uid| users(&passwd).find(|entry| entry.uid == uid)));
    let Some(uid) = entry.map(|entry| entry.uid).or_else(|| id(user)) else {
        return Err(absent("user", user, "passwd"));
    };
    let text = read(root, GROUP)?;
    if let Some(group) = group {
        let entry = groups(&text).find(|entry| entry.name == group);
        let gid = entry.map(|entry| entry.gid).or_else(|| id(group));
        return gid
            .map(|gid| Account { uid, gid, additional: vec![gid] })
            .ok_or_else(|| absent("group", group, "group"));
    }
    let Some(entry) = entry else { return Ok(Account { uid, gid: 0, additional: vec![0] }) };
    let own = groups(&text).filter(|group| group.members().any(|member| member == entry.name));
    let mut additional: Vec<u32> =
        own.map(|group| group.gid).filter(|gid| *gid != entry.gid).take(MAX_GROUPS).collect();
    additional.insert(0, entry.gid);
    additional.truncate(MAX_GROUPS);
    additional.sort_unstable();
    additional.dedup();
    Ok(Account { uid, gid: entry.gid, additional })
}

fn absent(what: &str, name: &str, file: &str) -> Error {
    Error::new(Kind::Config, format!("no {what} `{name}` in the container's /etc/{file}"))
        .help("write its number, or a name the image has")
}

#[cfg(test)]
mod tests;
