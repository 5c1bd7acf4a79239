//! Where the control groups of a container are.

use crate::cgroup::{self, Layout};

/// Where control groups are, and which the container gets.
#[derive(Clone, Copy, Debug)]
pub struct ControlGroups<'a> {
    /// The machine's.
    pub layout: &'a Layout,
    /// The container's.
    pub plan: &'a cgroup::Plan,
}
