//! The container's cgroup: version 1, version 2, or both side by side.
//!
//! [`Layout::detect`] finds the hierarchies, [`Plan::of`] decides which groups a container gets and what is written to
//! them, without changing anything, and [`Cgroup::create`] carries that out. On cgroup v2 the container's first process
//! is created in its group ([`Cgroup::into_fd`]); it joins cgroup v1 groups together ([`Cgroup::join_fds`]). On hybrid
//! hosts a leaf of the cgroup v2 hierarchy is used to kill and to freeze.
//!
//! A limit that nothing enforces here is an error of [`Kind::Unenforceable`](jobc_sys::error::Kind), or, where that is
//! allowed, an [`UnenforcedLimit`] for the record. A limit that already holds for this process, through a group that it
//! did not create, is enforced too ([`InheritedLimits`]).

mod bpf;
mod controller;
mod create;
mod devices;
mod file;
mod inherited;
mod join;
mod layout;
mod lifecycle;
mod limit;
mod path;
mod plan;
mod property;
mod record;
mod request;
mod scope;
mod stats;
mod subgroup;
mod unenforced;
mod unit;
mod unit_group;
mod update;
mod usage;

pub use controller::Controller;
pub use inherited::InheritedLimits;
pub(crate) use inherited::parse_list;
pub use layout::{Hierarchy, Layout, UnifiedHierarchy, Version};
pub use lifecycle::remove_empty;
pub use limit::ALLOW_UNENFORCED_HELP;
pub use limit::Limit;
pub use path::GroupPath;
pub use plan::DELEGATE_HELP;
pub use plan::{Group, Interface, Plan};
pub use record::{Cgroup, CgroupRecord};
pub use request::CgroupRequest;
pub use scope::{SUPERVISOR_GROUP, ScopeGroup};
pub use subgroup::SubGroups;
pub use unenforced::UnenforcedLimit;
pub(crate) use unit::changed_properties;
pub use unit_group::UnitGroup;
pub use usage::{Meter, Usage};
