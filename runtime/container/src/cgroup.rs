//! The container's cgroup: version 1, version 2, or both side by side.
//!
//! [`Layout::detect`] looks where they are, [`Plan::of`] decides which groups a container gets and what is written to
//! them, with nothing changed, and [`Cgroup::create`] carries that out. On cgroup v2 the container's first process is
//! created in its group ([`Cgroup::into_fd`]); cgroup v1 groups it joins in one burst ([`Cgroup::join_fds`]). Beside
//! cgroup v1 hierarchies a leaf of the cgroup v2 hierarchy serves to kill and to freeze.
//!
//! A limit that nothing enforces here is an error of [`Kind::Unenforceable`](jobc_sys::error::Kind), or, where that is
//! allowed, an [`UnenforcedLimit`] for the record. A limit that holds for this process anyway, by a group that somebody
//! else made, is enforced too ([`InheritedLimits`]).

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
