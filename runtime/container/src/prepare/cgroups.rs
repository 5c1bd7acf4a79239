//! Where the cgroups of a container are.

use crate::cgroup::{self, Layout};

/// Where cgroups are, and which the container gets.
#[derive(Clone, Copy, Debug)]
pub struct CgroupView<'a> {
    /// The host's.
    pub layout: &'a Layout,
    /// The container's.
    pub plan: &'a cgroup::Plan,
}
