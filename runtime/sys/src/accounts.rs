//! The files that name users, groups and the ids granted to users: passwd(5), group(5), subuid(5).
//!
//! Lines are read or skipped as by glibc (`nss/nss_files/files-parse.c`): leading blanks are ignored; empty lines,
//! comments and what NIS left there (`+`, `-`) are not entries; fields at the end may be missing; a line whose ids are
//! not numbers is skipped. An id is digits and nothing else, and never 4294967295, which syscalls take as "leave it".

use std::io::{self, Read};
use std::path::Path;

/// Maximum number of bytes read of a file.
pub const MAX_SIZE: u64 = 8 << 20;

/// Maximum length of a line in bytes; a longer one is skipped. A group of 30,000 members fits.
const MAX_LINE: usize = 1 << 20;

/// A line of /etc/passwd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserEntry<'a> {
    /// The user's name.
    pub name: &'a str,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// The home directory, as it is written; empty where there is none.
    pub home: &'a str,
}

/// A line of /etc/group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEntry<'a> {
    /// The group's name.
    pub name: &'a str,
    /// Group id.
    pub gid: u32,
    members: &'a str,
}

/// A line of /etc/subuid or /etc/subgid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantEntry<'a> {
    /// The user, by name or by number.
    pub owner: &'a str,
    /// The first id.
    pub first: u32,
    /// How many ids there are.
    pub count: u32,
}

impl<'a> GroupEntry<'a> {
    /// The names of its members.
    pub fn members(&self) -> impl Iterator<Item = &'a str> {
        self.members.split(',').map(str::trim_ascii).filter(|member| !member.is_empty())
    }
}

/// The entries of the text of /etc/passwd.
pub fn users(text: &str) -> impl Iterator<Item = UserEntry<'_>> {
    lines(text).filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _password) = (fields.next()?, fields.next());
        let (uid, gid) = (id(fields.next()?)?, id(fields.next()?)?);
        let (_real_name, home) = (fields.next(), fields.next().unwrap_or_default());
        Some(UserEntry { name, uid, gid, home })
    })
}

/// The entries of the text of /etc/group.
pub fn groups(text: &str) -> impl Iterator<Item = GroupEntry<'_>> {
    lines(text).filter_map(|line| {
        let mut fields = line.splitn(4, ':');
        let (name, _password, gid) = (fields.next()?, fields.next(), id(fields.next()?)?);
        Some(GroupEntry { name, gid, members: fields.next().unwrap_or_default() })
    })
}

/// The entries of the text of /etc/subuid or /etc/subgid, which have three fields each.
pub fn grants(text: &str) -> impl Iterator<Item = GrantEntry<'_>> {
    lines(text).filter_map(|line| {
        let mut fields = line.split(':');
        let (owner, first, count) = (fields.next()?, id(fields.next()?)?, id(fields.next()?)?);
        fields.next().is_none().then_some(GrantEntry { owner, first, count })
    })
}

/// The name of a user in the text of /etc/passwd.
pub fn name_of(passwd: &str, uid: u32) -> Option<String> {
    users(passwd).find(|entry| entry.uid == uid).map(|entry| entry.name.to_owned())
}

/// An id that is written as a number.
pub fn id(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| digits && *id != u32::MAX)
}

/// Reads one of the files; bytes that are not UTF-8 become replacement characters.
///
/// # Errors
///
/// The file cannot be read, or is larger than [`MAX_SIZE`].
pub fn read(file: impl Read) -> io::Result<String> {
    // Without room, the standard library would begin with 32 bytes.
    let mut bytes = Vec::with_capacity(4096);
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_SIZE >> 20)));
    }
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Reads one of this host's files; a missing one is empty.
///
/// # Errors
///
/// As [`read`].
pub fn read_file(path: impl AsRef<Path>) -> io::Result<String> {
    match std::fs::File::open(path) {
        Ok(file) => read(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// The lines that may be entries.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| line.len() <= MAX_LINE).map(str::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '+', '-', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_as_glibc_reads_them() {
        let check = |line: &str| {
            let found: Vec<String> = users(line)
                .map(|user| format!("{} {} {} {}", user.name, user.uid, user.gid, user.home))
                .collect();
            found.join(", ")
        };
        assert_eq!(check("ann:x:1000:100:Ann:/home/ann:/bin/sh\n"), "ann 1000 100 /home/ann");
        assert_eq!(check("ann:x:1000:100\n"), "ann 1000 100 ", "fields at the end may be missing");
        assert_eq!(check("ann::1000:100::/:sh:more:colons"), "ann 1000 100 /", "the shell is the rest");
        assert_eq!(check("  ann:x:1:2::/:\r\n"), "ann 1 2 /", "blanks around a line");
        assert_eq!(check("\n \n# ann:x:1:2::/:\n#\n"), "", "no entries");
        assert_eq!(check("+\n+ann:x:1:2::/:\n-bob:x:1:2::/:\n+@group\n"), "", "what NIS left");
        assert_eq!(check("ann\nann:x\nann:x:1\nann:x:1:\nann:x::2::/:\n:x:1:2::/:\n"), "", "too little");
        assert_eq!(check("a:x:-1:0::/:\nb:x:+1:0::/:\nc:x: 1:0::/:\nd:x:0x1:0::/:\n"), "", "no digits");
        assert_eq!(check("a:x:4294967295:0::/:\nb:x:4294967296:0::/:\n"), "", "no id");
        assert_eq!(check("bad line\nann:x:4294967294:0::/:"), "ann 4294967294 0 /", "the next line counts");
        assert_eq!(
            check(&format!("{}:x:1:2::/:\nann:x:1:2::/:", "l".repeat(MAX_LINE))),
            "ann 1 2 /",
            "too long"
        );
    }

    #[test]
    fn groups_as_glibc_reads_them() {
        let check = |line: &str| {
            let found: Vec<String> = groups(line)
                .map(|group| {
                    format!("{} {} {:?}", group.name, group.gid, group.members().collect::<Vec<_>>())
                })
                .collect();
            found.join(", ")
        };
        assert_eq!(check("video:x:44:ann,bob\n"), r#"video 44 ["ann", "bob"]"#);
        assert_eq!(check("video:x:44\nbare::45:\n"), "video 44 [], bare 45 []");
        assert_eq!(check("video:x:44: ann ,,bob,\n"), r#"video 44 ["ann", "bob"]"#);
        assert_eq!(check("video:x:ab:ann\nvideo\n#video:x:1:\n+:::\n"), "");
    }

    #[test]
    fn grants_have_three_fields() {
        fn check(line: &str) -> Option<(&str, u32, u32)> {
            grants(line).map(|grant| (grant.owner, grant.first, grant.count)).next()
        }
        assert_eq!(check("ann:100000:65536\n"), Some(("ann", 100_000, 65536)));
        assert_eq!(check(" 1000:1:2 \n"), Some(("1000", 1, 2)));
        for line in ["ann:1", "ann:1:2:3", "ann:x:1", "ann:-1:1", "#ann:1:1", ":1:1", ""] {
            assert_eq!(check(line), None, "{line}");
        }
    }

    #[test]
    fn files_are_bounded_and_may_be_absent_and_hold_any_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("passwd");
        assert_eq!(read_file(&path).unwrap(), "");
        std::fs::write(&path, b"\xff:x:1:2::/:\nann:x:3:4::/:\n").unwrap();
        assert_eq!(name_of(&read_file(&path).unwrap(), 3).as_deref(), Some("ann"));
        std::fs::File::create(&path).unwrap().set_len(MAX_SIZE + 1).unwrap();
        assert_eq!(read_file(&path).unwrap_err().to_string(), "it is larger than 8 MiB");
    }
}
