//! The `jobc` binary.
fn main() {}
