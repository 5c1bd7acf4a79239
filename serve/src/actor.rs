//! Who sends a request.

use crate::tokens::Access;

/// How a caller is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A token in the header `Authorization`.
    Token,
    /// The cookie of a session, which browsers send by themselves.
    Cookie(String),
    /// The kernel names the user at the other end of the Unix socket.
    Peer,
    /// A proxy names the user.
    Proxy,
}

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) user: String,
    pub(crate) access: Access,
    /// Whether jobs of others are shown.
    pub(crate) is_operator: bool,
    pub(crate) credential: Credential,
}
