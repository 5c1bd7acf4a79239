//! How many roles, members and instances are listed for a process.

/// Up to this many roles, every role sees every other one.
pub const MAX_LISTED_ROLES: usize = 16;
/// Up to this many members, each sees all the others; their host file names every one.
pub(super) const MAX_LISTED_MEMBERS: usize = 256;
/// The maximum number of instances for which a role's addresses are listed.
pub const MAX_LISTED_INSTANCES: u32 = 5_000;
