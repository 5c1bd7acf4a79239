//! Hooks of every stage, with the container's state on their standard input.

pub mod inside;
