//! Pass 6: files to bytes, the same for the same input.

pub mod dockerfile;
