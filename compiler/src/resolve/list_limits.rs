//! Limits on the roles, members and instances that are listed for a process.

/// Up to this number of roles, every role sees all others.
pub const MAX_LISTED_ROLES: usize = 16;
/// Up to this number of members, each sees all others; their host file lists every one.
pub(super) const MAX_LISTED_MEMBERS: usize = 256;
/// The maximum number of instances for which a role's addresses are listed.
pub const MAX_LISTED_INSTANCES: u32 = 5_000;
