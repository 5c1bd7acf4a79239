//! The formats of jobc: the job and targets files as people write them, and the plan as parts of jobc read it.

mod pointer;

pub use pointer::Pointer;
