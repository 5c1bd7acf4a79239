//! How many roles, members and instances a process is told of.

/// Up to so many roles every role is told of every other.
pub const LISTED_ROLES: usize = 16;
/// Up to so many members each is told of all the others; their host file names every one.
pub(super) const LISTED_MEMBERS: usize = 256;
/// Up to so many instances a role's addresses are listed.
pub const LISTED_INSTANCES: u32 = 5_000;
