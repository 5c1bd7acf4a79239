//! The kinds of objects that run pods: one row each.
//!
//! Another kind is another row: where its pods are, the names of its groups, and what becomes of its fields. The reader of
//! pods, and the one that makes roles of groups, serve all of them.

mod clusters;
mod kind;
mod kubeflow;
mod shared;
mod table;

pub(super) use kind::{Kind, Name, PodGroups, Stands};
pub(super) use table::KINDS;

#[cfg(test)]
mod tests;
