//! Images: what a container's root file system is made from.

pub mod dockerfile;
