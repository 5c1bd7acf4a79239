//! The process's user, groups, umask and home.
//!
//! What stands in the container's own /etc/passwd and /etc/group was made by whoever made the image. Both are read through
//! the root's descriptor without ever leaving the root, only if they are ordinary files, and only up to a bound.

mod accounts;

use std::ffi::CString;
use std::path::PathBuf;

use oci_spec::runtime::User as Written;

use crate::error::{Error, Kind, Result};
use crate::root::layers::Layers;
use accounts::{Group, Passwd};

/// The most groups a process can have (`NGROUPS_MAX`).
pub const MOST_GROUPS: usize = 65536;

/// Who the container's process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its user id in the container.
    pub uid: u32,
    /// Its group id.
    pub gid: u32,
    /// Its list of further groups, for setgroups(2).
    pub additional: Vec<u32>,
    /// Its umask, where config.json gives one; else the one of whoever starts it stays.
    pub umask: Option<u32>,
}

impl User {
    /// The user that config.json's `process.user` describes.
    pub fn of(written: &Written) -> Result<Self> {
        let id = |field: String, id: u32| {
            // setresuid(2) takes it as "leave as it is", which here would be root.
            let wrong =
                || Error::new(Kind::Config, format!("{id} is no id")).at(format!("/process/user/{field}"));
            if id == u32::MAX { Err(wrong().help("ids go from 0 to 4294967294")) } else { Ok(id) }
        };
        let additional = written.additional_gids().as_deref().unwrap_or_default();
        if additional.len() > MOST_GROUPS {
            let message = format!("{} groups, where the kernel takes {MOST_GROUPS}", additional.len());
            return Err(Error::new(Kind::Config, message).at("/process/user/additionalGids"));
        }
        if let Some(umask) = written.umask().filter(|umask| *umask > 0o777) {
            return Err(Error::new(Kind::Config, format!("{umask} has more than the permission bits"))
                .at("/process/user/umask")
                .help("write it as a decimal number up to 511, which is 0777"));
        }
        let additional = additional.iter().enumerate();
        Ok(Self {
            uid: id("uid".to_owned(), written.uid())?,
            gid: id("gid".to_owned(), written.gid())?,
            additional: additional
                .map(|(index, gid)| id(format!("additionalGids/{index}"), *gid))
                .collect::<Result<_>>()?,
            umask: written.umask(),
        })
    }
}

/// A user whom the container's own files know by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Further groups, in ascending order.
    pub additional: Vec<u32>,
}

/// The home of a user, as the /etc/passwd of the layers of `root`, lowest first, says: what `HOME` is where config.json's environment has none.
///
/// `/` where there is no such file that can be read, no such user in it, or no absolute path.
pub fn home(root: &[PathBuf], uid: u32) -> CString {
    let passwd = Layers::open(root).ok().and_then(|root| Passwd::read(&root).ok());
    let home = passwd.as_ref().and_then(|passwd| passwd.entries().find(|entry| entry.uid == uid));
    let home = home.map(|entry| entry.home).filter(|home| home.starts_with('/')).unwrap_or("/");
    CString::new(home).unwrap_or_else(|_| c"/".to_owned())
}

/// Looks up `USER[:GROUP]`, as an image or a job file writes it, in the container's /etc/passwd and /etc/group.
///
/// Either part is a name or a number; a name wins over an equal number. Without a group it is the user's own, and the
/// further groups are those whose line names the user; with one there are no further ones. A number need not be listed.
pub fn lookup(root: &Layers, text: &str) -> Result<Account> {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    if user.is_empty() || group == Some("") {
        return Err(Error::new(Kind::Config, format!("`{text}` is not a user"))
            .help("write `USER` or `USER:GROUP`, names or numbers"));
    }
    let passwd = Passwd::read(root)?;
    let entry = passwd.entries().find(|entry| entry.name == user);
    let entry =
        entry.or_else(|| number(user).and_then(|uid| passwd.entries().find(|entry| entry.uid == uid)));
    let Some(uid) = entry.as_ref().map(|entry| entry.uid).or_else(|| number(user)) else {
        return Err(absent("user", user, "passwd"));
    };
    let groups = Group::read(root)?;
    if let Some(group) = group {
        let entry = groups.entries().find(|entry| entry.name == group);
        let gid = entry.map(|entry| entry.gid).or_else(|| number(group));
        return gid
            .map(|gid| Account { uid, gid, additional: Vec::new() })
            .ok_or_else(|| absent("group", group, "group"));
    }
    let Some(entry) = entry else { return Ok(Account { uid, ..Account::default() }) };
    let own = groups.entries().filter(|group| group.members.split(',').any(|member| member == entry.name));
    let mut additional: Vec<u32> = own.map(|group| group.gid).collect();
    additional.sort_unstable();
    additional.dedup();
    additional.truncate(MOST_GROUPS);
    Ok(Account { uid, gid: entry.gid, additional })
}

fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| digits && *id != u32::MAX)
}

fn absent(what: &str, name: &str, file: &str) -> Error {
    Error::new(Kind::Config, format!("the container has no {what} `{name}` in /etc/{file}"))
        .help("write its number, or a name the image has")
}

#[cfg(test)]
mod tests;
