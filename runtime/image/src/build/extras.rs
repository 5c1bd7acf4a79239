//! Options of a build that few builds have: named contexts, hosts, shared memory, annotations.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;

use jobc_dockerfile::ignore::Ignore;
use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use oci_spec::runtime::PosixRlimitType;

/// A named source of files: `--build-context NAME=…`.
#[derive(Clone, Debug)]
pub enum NamedContext {
    /// A directory of the host, and what of it is not seen.
    Directory(PathBuf, Ignore),
    /// An image of the store, or one that is fetched.
    Image(Reference),
}

/// A resource limit of setrlimit(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rlimit {
    /// The resource.
    pub kind: PosixRlimitType,
    /// The soft limit; `u64::MAX` for none.
    pub soft: u64,
    /// The hard limit; `u64::MAX` for none.
    pub hard: u64,
}

/// Options of a build that few builds have.
#[derive(Debug, Default)]
pub struct Extras {
    /// Names that `FROM` and `--from` may use, each for a directory or an image.
    pub contexts: IndexMap<String, NamedContext>,
    /// Lines for /etc/hosts of commands: a name and an address.
    pub hosts: Vec<(String, String)>,
    /// The size of /dev/shm of commands in bytes; 64 MiB where absent.
    pub shm_bytes: Option<u64>,
    /// Resource limits of commands (setrlimit(2)).
    pub rlimits: Vec<Rlimit>,
    /// The memory of a command in bytes; the host's where absent.
    pub memory_bytes: Option<u64>,
    /// Annotations of the manifest.
    pub annotations: IndexMap<String, String>,
    /// The keys of all steps of the build, whether they were cached or not.
    pub(super) steps: Mutex<Vec<Digest>>,
}

impl Extras {
    /// The keys of the steps of all builds that these options were used for, each once.
    pub fn steps(&self) -> Vec<Digest> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a step.
    pub(super) fn note_step(&self, key: &Digest) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if !steps.contains(key) {
            steps.push(key.clone());
        }
    }

    /// The directory of a named context.
    pub(super) fn directory(&self, name: &str) -> Option<(&PathBuf, &Ignore)> {
        match self.contexts.get(name) {
            Some(NamedContext::Directory(path, ignore)) => Some((path, ignore)),
            _ => None,
        }
    }

    /// The image of a named context.
    pub(super) fn image(&self, name: &str) -> Option<&Reference> {
        match self.contexts.get(name) {
            Some(NamedContext::Image(reference)) => Some(reference),
            _ => None,
        }
    }
}
