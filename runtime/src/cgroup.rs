//! The container's control group: version 1, version 2, or both side by side.
/// Stand-in.
#[derive(Debug)]
pub struct Layout {}
