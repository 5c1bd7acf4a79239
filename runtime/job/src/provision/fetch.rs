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
    /// Told how far it is: where from, and the bytes that are here.
    pub(super) progress: &'a mut dyn FnMut(&str, u64),
}
