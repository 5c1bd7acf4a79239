//! Options for making a layer of a directory.

use serde::{Deserialize, Serialize};

/// How a directory becomes a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackOptions {
    /// The latest time that a file may have, in seconds since 1970 (`SOURCE_DATE_EPOCH`): later ones become this one.
    pub latest: Option<i64>,
    /// Paths that are left out, relative and without `.`, with all that is in them: what was mounted there is not the
    /// layer's.
    pub without: Vec<Vec<u8>>,
    /// Whether all files belong to root, regardless of their owners on this host: used if a user has only one id.
    pub all_of_root: bool,
    /// Whether an entry for the directory itself is written, as `./`.
    pub root: bool,
}
