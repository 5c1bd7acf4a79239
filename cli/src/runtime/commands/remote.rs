//! The commands about targets: `submit` and `targets`.

mod follow;
mod free;
mod submit;
mod targets;

pub(crate) use submit::submit;
pub(crate) use targets::targets;
