//! A volume on its way here.

use std::sync::atomic::AtomicBool;

/// Something that is being fetched.
pub(super) struct FetchRequest<'a> {
    /// The volume.
    pub(super) name: &'a str,
    /// The value of the secret that opens it.
    pub(super) secret: Option<&'a [u8]>,
    /// Set to true if the job is ended.
    pub(super) stopped: &'a AtomicBool,
    /// Reports progress: the source, and the bytes received.
    pub(super) progress: &'a mut dyn FnMut(&str, u64),
}
