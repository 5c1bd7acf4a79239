//! Archives that `ADD` unpacks.

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;

/// T.
pub(super) fn unpack(
    _file: &File,
    _target: &str,
    _owner: Option<(u32, u32)>,
    _stopped: &AtomicBool,
) -> io::Result<bool> {
    Ok(false)
}
