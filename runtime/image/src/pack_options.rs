//! How a folder is to become a layer: what whoever packs it says.

use serde::{Deserialize, Serialize};

/// How a folder becomes a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pack {
    /// The latest time that a file may have, in seconds since 1970 (`SOURCE_DATE_EPOCH`): later ones become this one.
    pub latest: Option<i64>,
    /// Paths that are left out, relative and without `.`, with all that is in them: what was mounted there is not the layer's.
    pub without: Vec<Vec<u8>>,
    /// Whether all files belong to root, whoever owns them here: so it is where a user has only one id.
    pub all_of_root: bool,
    /// Whether an entry for the folder itself is written, as `./`.
    pub root: bool,
}
