//! Hooks that run inside the container's namespaces, started by the container's first process.

use std::ffi::CString;
use std::fmt;

use rustix::io::Errno;

use crate::operation::Child;
use crate::syscall::Kernel;

/// A hook of the stages `createContainer` and `startContainer`, ready to be executed without allocating.
#[derive(Debug)]
pub struct HookInside {
    /// `createContainer` or `startContainer`.
    pub stage: &'static str,
    /// The program.
    pub path: CString,
}

impl HookInside {
    /// Runs it and waits for its end.
    pub fn carry_out<K: Kernel>(&self, _child: &mut Child<'_, K>) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }
}

impl fmt::Display for HookInside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run the {} hook `{}`", self.stage, self.path.to_string_lossy())
    }
}
