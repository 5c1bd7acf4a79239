//! Profiles of AppArmor and labels of SELinux, for the program and its mounts.
//!
//! Both are set for the next program that a process executes, by writing to one of its attributes (proc_pid_attr(5);
//! LSM/apparmor.rst, LSM/SELinux.rst). A start executes two programs, and the label must apply to the second only:
//! profiles and policies do not know the trampoline. So [`crate::trampoline`] writes it. The kernel refuses a file that
//! was opened before an `execve`, and the container's /proc may be anything, so the trampoline opens the file itself,
//! in the directory of its own attributes: a mount of that directory alone, from which nothing leads to the host's
//! /proc ([`Attributes`]).
//!
//! config-linux.md has the field for mounts, config.md those of the process.

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::fd::{AsRawFd as _, OwnedFd};

use oci_spec::runtime::{Linux, Process};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::child::Child;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::syscall::{Fd, Kernel};

/// The maximum length of an attribute: the kernel truncates longer ones (fs/proc/base.c, the smallest page).
const MAX_ATTRIBUTE_LEN: usize = 4096;

/// A field of config.json that asks for a profile or a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `process.apparmorProfile`.
    Profile,
    /// `process.selinuxLabel`.
    Label,
    /// `linux.mountLabel`.
    MountLabel,
}

impl Field {
    fn pointer(self) -> &'static str {
        match self {
            Self::Profile => "/process/apparmorProfile",
            Self::Label => "/process/selinuxLabel",
            Self::MountLabel => "/linux/mountLabel",
        }
    }

    /// The module that keeps it.
    fn module(self) -> &'static str {
        if self == Self::Profile { "AppArmor" } else { "SELinux" }
    }

    /// Whether that module runs here.
    pub fn is_module_enabled(self) -> bool {
        let starts = |path: &str, with: &[u8]| std::fs::read(path).is_ok_and(|text| text.starts_with(with));
        match self {
            Self::Profile => starts("/sys/module/apparmor/parameters/enabled", b"Y"),
            // The file system is registered where SELinux is on; `kernel` is what all is labelled without a policy.
            Self::Label | Self::MountLabel => {
                std::fs::read_to_string("/proc/filesystems").is_ok_and(|list| list.contains("selinuxfs"))
                    && !matches!(
                        std::fs::read("/proc/self/attr/current").as_deref(),
                        Err(_) | Ok(b"kernel" | b"kernel\0")
                    )
            }
        }
    }
}

/// The label of the program, and the number of the file descriptor for the attributes in the trampoline.
#[derive(Debug)]
pub struct Label {
    /// The attribute's file.
    pub file: &'static CStr,
    /// The text to write.
    pub text: CString,
    /// Kept open in this process, so that the number is free in the new one.
    pub attributes: OwnedFd,
    field: Field,
}

impl Label {
    /// The profile or the label of a process; nothing where it asks for none.
    ///
    /// # Errors
    ///
    /// [`Kind::Unenforceable`] where the module is not enabled (see `is_kept`), and for an invalid label.
    pub fn of(process: &Process, is_kept: impl Fn(Field) -> bool) -> Result<Option<Self>> {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let mut found = None;
        for (field, text) in [
            (Field::Profile, filled(process.apparmor_profile())),
            (Field::Label, filled(process.selinux_label())),
        ] {
            let Some(text) = text else { continue };
            // Without AppArmor nothing is confined by it.
            if field == Field::Profile && text == "unconfined" && !is_kept(field) {
                continue;
            }
            check_enforceable(field, &is_kept)?;
            let (file, text) = match field {
                Field::Profile => (c"apparmor/exec", format!("exec {text}")),
                _ => (c"exec", text),
            };
            let attributes =
                rustix::fs::open("/proc/self/attr", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                    .map_err(|errno| Error::system("open `/proc/self/attr`", errno).at(field.pointer()))?;
            found = Some(Self { file, text: c_text(&text, field)?, attributes, field });
        }
        Ok(found)
    }

    /// The step that makes the attributes ready.
    pub fn attributes(&self) -> (&'static str, Attributes) {
        let at = self.attributes.as_raw_fd();
        (self.field.pointer(), Attributes { at, module: self.field.module(), is_own_mount: true })
    }
}

/// The label of a session keyring of a process with that label, if any.
pub fn keyring_label(process: Option<&Process>) -> Result<Option<CString>> {
    let label =
        process.and_then(|process| process.selinux_label().as_deref()).filter(|text| !text.is_empty());
    label.map(|label| c_text(label, Field::Label)).transpose()
}

/// The label of the container's mounts; nothing where config.json names none.
///
/// It confines nothing by itself: where SELinux is not enabled, no file has a label.
pub fn mount_label(linux: Option<&Linux>) -> Result<Option<CString>> {
    let label = linux.and_then(|linux| linux.mount_label().as_deref()).filter(|text| !text.is_empty());
    label.map(|label| c_text(label, Field::MountLabel)).transpose()
}

/// Adds the label to the parameters of a new file system that accepts one and has none yet.
///
/// Those of the kernel's own objects are labelled by its policy; of mqueue only the root is new.
pub fn add(label: Option<&CString>, kind: &CStr, parameters: &mut Vec<(CString, Option<CString>)>) {
    const OWN: [&[u8]; 4] = [b"context", b"fscontext", b"defcontext", b"rootcontext"];
    let Some(label) = label else { return };
    let key = match kind.to_bytes() {
        b"proc" | b"sysfs" | b"cgroup" | b"cgroup2" => return,
        b"mqueue" => c"rootcontext",
        _ => c"context",
    };
    if !parameters.iter().any(|(key, _)| OWN.contains(&key.as_bytes())) {
        parameters.push((key.to_owned(), Some(label.clone())));
    }
}

fn check_enforceable(field: Field, is_kept: impl Fn(Field) -> bool) -> Result<()> {
    if is_kept(field) {
        return Ok(());
    }
    let module = field.module();
    let message = format!("{module} is not enabled in this kernel");
    let parameter = module.to_ascii_lowercase();
    Err(Error::new(Kind::Unenforceable, message)
        .at(field.pointer())
        .help(format!("remove it, or boot the kernel with `security={parameter}`")))
}

fn c_text(text: &str, field: Field) -> Result<CString> {
    if text.len() >= MAX_ATTRIBUTE_LEN {
        let message = format!("{} bytes, but the kernel allows fewer than {MAX_ATTRIBUTE_LEN}", text.len());
        return Err(Error::new(Kind::Config, message).at(field.pointer()));
    }
    CString::new(text).map_err(|_| {
        Error::new(Kind::Config, "a NUL byte is not allowed here")
            .at(field.pointer())
            .help("remove `\\u0000`")
    })
}

/// Explains why the kernel rejected the text.
pub(crate) fn refused(errno: Errno) -> Error {
    let field = if Field::Profile.is_module_enabled() { Field::Profile } else { Field::Label };
    let error = Error::system(format!("set the {} label of the program", field.module()), errno);
    let error = error.at(field.pointer());
    match (field, errno) {
        (Field::Profile, Errno::NOENT) => {
            error.help("no profile of that name is loaded; `apparmor_parser -r FILE` loads it")
        }
        (Field::Label, Errno::INVAL) => error.help("the policy has no such label"),
        (_, Errno::ACCESS | Errno::PERM) => error.help(
            "the confinement of this process, or a seccomp filter without `noNewPrivileges`, forbids it",
        ),
        _ => error,
    }
}

/// Puts the directory of this process's own attributes at a file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    at: Fd,
    module: &'static str,
    is_own_mount: bool,
}

impl Attributes {
    /// The same as a directory of the host's /proc, for a process that no other one in the container sees: it needs no
    /// privilege. The file descriptor must be closed before there is one that they see.
    #[must_use]
    pub fn in_place(self) -> Self {
        Self { is_own_mount: false, ..self }
    }

    /// Opens it in the existing /proc, and turns it into a separate mount.
    pub fn carry_out<K: Kernel>(self, child: &mut Child<'_, K>) -> std::result::Result<(), Errno> {
        let kernel = child.kernel;
        let proc = child.proc()?;
        // `thread-self` is a symbolic link of procfs itself; nothing else on the way may be one, or another file
        // system.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = kernel.open(proc, c"thread-self/attr", flags, Mode::empty(), resolve)?;
        if !self.is_own_mount {
            kernel.replace(directory, self.at)?;
            kernel.close(directory);
            return Ok(());
        }
        let alone = kernel.clone_tree(directory, c"", false)?;
        kernel.close(directory);
        kernel.replace(alone, self.at)?;
        kernel.close(alone);
        Ok(())
    }

    /// The file descriptor.
    pub fn at(self) -> Fd {
        self.at
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "open this process's attributes for {}", self.module)
    }
}

#[cfg(test)]
mod tests;
