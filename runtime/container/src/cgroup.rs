//! The container's cgroup: version 1, version 2, or both side by side.
//!
//! [`Layout::detect`] looks where they are, [`Plan::of`] decides which groups a container gets and what is written to
//! them, with nothing changed, and [`Cgroup::create`] carries that out. On cgroup v2 the container's first process is
//! created in its group ([`Cgroup::into_fd`]); cgroup v1 groups it joins in one burst ([`Cgroup::join_fds`]). Beside
//! cgroup v1 hierarchies a leaf of the cgroup v2 hierarchy serves to kill and to freeze.
//!
//! A limit that nothing enforces here is an error of [`Kind::Unenforceable`](jobc_sys::error::Kind), or, where that is
//! allowed, an [`Unenforced`] for the record.

mod bpf;
mod controller;
mod devices;
mod enter;
mod file;
mod layout;
mod life;
mod limit;
mod make;
mod path;
mod plan;
mod property;
mod request;
mod saved;
mod scope;
mod stats;
mod unenforced;
mod unit;
mod unit_group;
mod update;
mod usage;

pub use controller::Controller;
pub use layout::{Hierarchy, Layout, Unified, Version};
pub use life::remove_empty;
pub use limit::GO_ON;
pub use limit::Limit;
pub use path::GroupPath;
pub use plan::DELEGATE;
pub use plan::{Group, Interface, Plan};
pub use request::Request;
pub use saved::{Cgroup, Saved};
pub use scope::{LEAF, ScopeGroup};
pub use unenforced::Unenforced;
pub(crate) use unit::changed;
pub use unit_group::UnitGroup;
pub use usage::{Meter, Usage};
