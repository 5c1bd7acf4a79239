//! Mount options: `mounts[].options`, converted to the arguments of the kernel's mount calls.
//!
//! There are four kinds of options: attributes of the mount (mount_setattr(2)), its propagation, how it is made
//! (`bind`, `tmpcopyup`), and flags and parameters of the file system (fsconfig(2)). Any other option is refused: a
//! misspelled `nosuid` must not be passed to a driver that ignores unknown options.

use std::ffi::CString;

use linux_raw_sys::general as kernel;
use oci_spec::runtime::Mount;

use jobc_sys::error::{Error, Kind};

const RDONLY: u64 = kernel::MOUNT_ATTR_RDONLY as u64;
const NOSUID: u64 = kernel::MOUNT_ATTR_NOSUID as u64;
const NODEV: u64 = kernel::MOUNT_ATTR_NODEV as u64;
const NOEXEC: u64 = kernel::MOUNT_ATTR_NOEXEC as u64;
const NODIRATIME: u64 = kernel::MOUNT_ATTR_NODIRATIME as u64;
const NOSYMFOLLOW: u64 = kernel::MOUNT_ATTR_NOSYMFOLLOW as u64;
/// The mask of the field in which one of the three next ones stands.
const ATIME: u64 = kernel::MOUNT_ATTR__ATIME as u64;
const RELATIME: u64 = kernel::MOUNT_ATTR_RELATIME as u64;
const NOATIME: u64 = kernel::MOUNT_ATTR_NOATIME as u64;
const STRICTATIME: u64 = kernel::MOUNT_ATTR_STRICTATIME as u64;

/// The options of one mount, in the kernel's terms.
///
/// Where two words contradict each other the later one counts, as in mount(8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// `MOUNT_ATTR_*` to set on the mount itself.
    pub set: u64,
    /// `MOUNT_ATTR_*` to clear on the mount itself. Holds the whole `MOUNT_ATTR__ATIME` where the access-time mode is
    /// chosen, as mount_setattr(2) wants. Without meaning for a new file system, whose mount begins with none set.
    pub clear: u64,
    /// `MOUNT_ATTR_*` to set on the mount and on all below it (`AT_RECURSIVE`), before the mount's own attributes.
    pub recursive_set: u64,
    /// `MOUNT_ATTR_*` to clear on the mount and on all below it.
    pub recursive_clear: u64,
    /// Changes of propagation, in the order written; each needs its own mount_setattr(2).
    pub propagation: Vec<Propagation>,
    /// Whether the mount shows a part of another tree instead of a new file system.
    pub bind: Option<Recursive>,
    /// Whether the mount shows other owners than the file system has (`idmap`, `ridmap`), and those below it too.
    pub id_map: Option<Recursive>,
    /// Whether what the image has at the destination is copied into the new tmpfs first (`tmpcopyup`).
    pub copy_up: bool,
    /// Flags and parameters of the file system, for fsconfig(2): `FSCONFIG_SET_FLAG` without a value,
    /// `FSCONFIG_SET_STRING` with one. Empty for a bind.
    pub data: Vec<(CString, Option<CString>)>,
    /// Parameters of a file system on a bind mount, such as `mode=755`: callers give the same options to every mount.
    pub without_effect: Vec<String>,
}

/// Whether a change covers the mounts below as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recursive {
    /// Only the mount.
    No,
    /// The mount and all below it.
    Yes,
}

/// How mounts made on one side show on the other (mount_namespaces(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Propagation {
    /// `MS_PRIVATE`, `MS_SHARED`, `MS_SLAVE` or `MS_UNBINDABLE`.
    pub flag: u32,
    /// Whether the mounts below are changed too.
    pub recursive: Recursive,
}

impl Propagation {
    /// The propagation of an option such as `rslave`.
    pub fn of(word: &str) -> Option<Self> {
        WORDS.iter().find(|(known, _)| *known == word).and_then(|(_, meaning)| match meaning {
            Word::Propagation(flag, recursive) => Some(Self { flag: *flag, recursive: *recursive }),
            _ => None,
        })
    }
}

/// The meaning of an option that does not depend on the file system.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// The default of every mount made here.
    Default,
    /// Sets attributes.
    Set(u64, Recursive),
    /// Clears attributes.
    Clear(u64, Recursive),
    /// Chooses the access-time mode.
    Atime(u64, Recursive),
    /// Goes back to `relatime` if the mode is the given one, or is not chosen.
    ClearAtime(u64, Recursive),
    /// A flag of the file system, the same for all mounts of it.
    FileSystem,
    Propagation(u32, Recursive),
    Bind(Recursive),
    IdMap(Recursive),
    CopyUp,
    /// Known, and cannot be kept: why, and what to do.
    Refused(&'static str, &'static str),
}

use Recursive::{No, Yes};

/// Every word this runtime knows, sorted: those of the OCI runtime specification, config.md, "Linux mount options".
const WORDS: &[(&str, Word)] = &[
    ("async", Word::FileSystem),
    ("atime", Word::ClearAtime(NOATIME, No)),
    ("bind", Word::Bind(No)),
    ("defaults", Word::Default),
    ("dev", Word::Clear(NODEV, No)),
    ("diratime", Word::Clear(NODIRATIME, No)),
    ("dirsync", Word::FileSystem),
    ("exec", Word::Clear(NOEXEC, No)),
    ("idmap", Word::IdMap(No)),
    (
        "iversion",
        Word::Refused(
            "fsconfig(2) has no flag for `iversion`",
            "remove it: file systems with version counters always use them",
        ),
    ),
    ("lazytime", Word::FileSystem),
    // With either word, messages of a file system go to the file descriptor of fsopen(2), not to the kernel log.
    ("loud", Word::Default),
    ("mand", Word::Refused("Linux 5.15 removed mandatory locks", "remove `mand`")),
    ("noatime", Word::Atime(NOATIME, No)),
    ("nodev", Word::Set(NODEV, No)),
    ("nodiratime", Word::Set(NODIRATIME, No)),
    ("noexec", Word::Set(NOEXEC, No)),
    ("noiversion", Word::Default),
    ("nolazytime", Word::FileSystem),
    ("nomand", Word::Default),
    ("norelatime", Word::Default),
    ("nostrictatime", Word::ClearAtime(STRICTATIME, No)),
    ("nosuid", Word::Set(NOSUID, No)),
    ("nosymfollow", Word::Set(NOSYMFOLLOW, No)),
    ("private", Word::Propagation(kernel::MS_PRIVATE, No)),
    ("ratime", Word::ClearAtime(NOATIME, Yes)),
    ("rbind", Word::Bind(Yes)),
    ("rdev", Word::Clear(NODEV, Yes)),
    ("rdiratime", Word::Clear(NODIRATIME, Yes)),
    ("relatime", Word::Atime(RELATIME, No)),
    (
        "remount",
        Word::Refused(
            "each mount is made once, with all its options",
            "write the options on the mount itself, without `remount`",
        ),
    ),
    ("rexec", Word::Clear(NOEXEC, Yes)),
    ("ridmap", Word::IdMap(Yes)),
    ("rnoatime", Word::Atime(NOATIME, Yes)),
    ("rnodev", Word::Set(NODEV, Yes)),
    ("rnodiratime", Word::Set(NODIRATIME, Yes)),
    ("rnoexec", Word::Set(NOEXEC, Yes)),
    ("rnorelatime", Word::Default),
    ("rnostrictatime", Word::ClearAtime(STRICTATIME, Yes)),
    ("rnosuid", Word::Set(NOSUID, Yes)),
    ("rnosymfollow", Word::Set(NOSYMFOLLOW, Yes)),
    ("ro", Word::Set(RDONLY, No)),
    ("rprivate", Word::Propagation(kernel::MS_PRIVATE, Yes)),
    ("rrelatime", Word::Atime(RELATIME, Yes)),
    ("rro", Word::Set(RDONLY, Yes)),
    ("rrw", Word::Clear(RDONLY, Yes)),
    ("rshared", Word::Propagation(kernel::MS_SHARED, Yes)),
    ("rslave", Word::Propagation(kernel::MS_SLAVE, Yes)),
    ("rstrictatime", Word::Atime(STRICTATIME, Yes)),
    ("rsuid", Word::Clear(NOSUID, Yes)),
    ("rsymfollow", Word::Clear(NOSYMFOLLOW, Yes)),
    ("runbindable", Word::Propagation(kernel::MS_UNBINDABLE, Yes)),
    ("rw", Word::Clear(RDONLY, No)),
    ("shared", Word::Propagation(kernel::MS_SHARED, No)),
    ("silent", Word::Default),
    ("slave", Word::Propagation(kernel::MS_SLAVE, No)),
    ("strictatime", Word::Atime(STRICTATIME, No)),
    ("suid", Word::Clear(NOSUID, No)),
    ("symfollow", Word::Clear(NOSYMFOLLOW, No)),
    ("sync", Word::FileSystem),
    ("tmpcopyup", Word::CopyUp),
    ("unbindable", Word::Propagation(kernel::MS_UNBINDABLE, No)),
];

/// The parameters of the usual file systems of containers. Those of others are left to their drivers, which refuse
/// unknown ones.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("cgroup", &[]),
    ("cgroup2", &[]),
    ("devpts", &["gid", "max", "mode", "newinstance", "ptmxmode", "uid"]),
    ("mqueue", &[]),
    (
        "overlay",
        &[
            "datadir+",
            "default_permissions",
            "index",
            "lowerdir",
            "lowerdir+",
            "metacopy",
            "nfs_export",
            "redirect_dir",
            "upperdir",
            "userxattr",
            "uuid",
            "verity",
            "volatile",
            "workdir",
            "xino",
        ],
    ),
    ("proc", &["gid", "hidepid", "subset"]),
    ("ramfs", &["mode"]),
    ("sysfs", &[]),
    (
        "tmpfs",
        &[
            "casefold",
            "gid",
            "huge",
            "inode32",
            "inode64",
            "mode",
            "mpol",
            "noswap",
            "nr_blocks",
            "nr_inodes",
            "quota",
            "size",
            "strict_encoding",
            "uid",
            "usrquota",
            "grpquota",
            "usrquota_block_hardlimit",
            "usrquota_inode_hardlimit",
            "grpquota_block_hardlimit",
            "grpquota_inode_hardlimit",
        ],
    ),
];

/// The words that can be kept, sorted, as the features structure lists them.
pub fn supported() -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(|(_, meaning)| !matches!(meaning, Word::Refused(..))).map(|(word, _)| *word)
}

impl MountOptions {
    /// Reads the options of a mount whose JSON Pointer is `place`, such as `/mounts/3`; each invalid one is an error.
    ///
    /// A mount of type `bind` is a bind mount even without the option.
    pub fn of(mount: &Mount, place: &str) -> Result<Self, Vec<Error>> {
        let words = mount.options().as_deref().unwrap_or_default();
        let file_system = mount.typ().as_deref().unwrap_or_default();
        let mut reading = OptionsParser::default();
        let bind = words.iter().rev().find_map(|word| match lookup(word) {
            Some(Word::Bind(recursive)) => Some(recursive),
            _ => None,
        });
        reading.options.bind = bind.or((file_system == "bind").then_some(No));
        let mut errors = Vec::new();
        for (index, word) in words.iter().enumerate() {
            if let Err(error) = reading.word(word, file_system) {
                errors.push(error.at(format!("{place}/options/{index}")));
            }
        }
        if errors.is_empty() { Ok(reading.finish()) } else { Err(errors) }
    }
}

fn lookup(word: &str) -> Option<Word> {
    WORDS.binary_search_by_key(&word, |(known, _)| known).ok().map(|index| WORDS[index].1)
}

/// Options half read: the access-time modes are put into the masks at the end.
#[derive(Default)]
struct OptionsParser {
    options: MountOptions,
    atime: Option<u64>,
    recursive_atime: Option<u64>,
}

impl OptionsParser {
    fn word(&mut self, word: &str, file_system: &str) -> Result<(), Error> {
        let options = &mut self.options;
        match lookup(word) {
            Some(Word::Default | Word::Bind(_)) => {}
            Some(Word::Set(attributes, recursive)) => options.change(attributes, 0, recursive),
            Some(Word::Clear(attributes, recursive)) => options.change(0, attributes, recursive),
            Some(Word::Atime(mode, recursive)) => *self.mode(recursive) = Some(mode),
            Some(Word::ClearAtime(mode, recursive)) => {
                let current = self.mode(recursive);
                if current.is_none_or(|chosen| chosen == mode) {
                    *current = Some(RELATIME);
                }
            }
            Some(Word::FileSystem) if options.bind.is_some() => {
                return Err(Error::new(
                    Kind::Unsupported,
                    format!("`{word}` is a file system option, which a bind mount cannot change"),
                )
                .help("remove it, or mount the file system itself"));
            }
            Some(Word::FileSystem) => options.data.push((c_string(word)?, None)),
            Some(Word::Propagation(flag, recursive)) => {
                options.propagation.push(Propagation { flag, recursive });
            }
            Some(Word::IdMap(_)) if options.bind.is_none() => {
                return Err(Error::new(Kind::Config, "only a bind mount can be id-mapped")
                    .help("remove it; files in a new file system belong to its creator"));
            }
            Some(Word::IdMap(recursive)) => options.id_map = Some(recursive),
            Some(Word::CopyUp) if file_system != "tmpfs" || options.bind.is_some() => {
                return Err(Error::new(Kind::Config, "`tmpcopyup` is for a tmpfs")
                    .help("remove it, or make the mount a tmpfs"));
            }
            Some(Word::CopyUp) => options.copy_up = true,
            Some(Word::Refused(why, instead)) => {
                return Err(
                    Error::new(Kind::Unsupported, format!("`{word}` is not supported: {why}")).help(instead)
                );
            }
            None => self.parameter(word, file_system)?,
        }
        Ok(())
    }

    fn mode(&mut self, recursive: Recursive) -> &mut Option<u64> {
        match recursive {
            No => &mut self.atime,
            Yes => &mut self.recursive_atime,
        }
    }

    /// Any other option is a parameter of the file system.
    fn parameter(&mut self, word: &str, file_system: &str) -> Result<(), Error> {
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
        if self.options.bind.is_some() {
            if value.is_some() && PARAMETERS.iter().any(|(_, known)| known.contains(&key)) {
                self.options.without_effect.push(word.to_owned());
                return Ok(());
            }
            return Err(Error::new(Kind::Unsupported, format!("`{word}` is not an option of a bind mount"))
                .help("write `nosuid`, `nodev`, `noexec`, `ro` or a propagation"));
        }
        if let Some((_, known)) = PARAMETERS.iter().find(|(name, _)| *name == file_system)
            && !known.contains(&key)
        {
            let error = Error::new(
                Kind::Unsupported,
                format!("`{key}` is neither a mount option nor a parameter of {file_system}"),
            );
            return Err(if known.is_empty() {
                error
            } else {
                error.help(format!("{file_system} takes {}", list(known)))
            });
        }
        if key.is_empty() {
            return Err(Error::new(Kind::Config, format!("`{word}` is not an option"))
                .help("write `OPTION` or `OPTION=VALUE`"));
        }
        self.options.data.push((c_string(key)?, value.map(c_string).transpose()?));
        Ok(())
    }

    fn finish(mut self) -> MountOptions {
        if let Some(mode) = self.atime {
            self.options.change(mode, ATIME, No);
        }
        if let Some(mode) = self.recursive_atime {
            self.options.change(mode, ATIME, Yes);
        }
        self.options
    }
}

impl MountOptions {
    /// Sets and clears attributes; a bit in both is a field that is cleared and then set.
    fn change(&mut self, set: u64, clear: u64, recursive: Recursive) {
        let (all_set, all_cleared) = match recursive {
            No => (&mut self.set, &mut self.clear),
            Yes => (&mut self.recursive_set, &mut self.recursive_clear),
        };
        *all_set = (*all_set & !clear) | set;
        *all_cleared = (*all_cleared & !set) | clear;
    }
}

fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::new(Kind::Config, "a mount option cannot contain a NUL character"))
}

/// Names in backticks with commas between.
fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
