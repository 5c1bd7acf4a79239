//! The causes of a line of a built file, and the effects of a line of a job file; for `jobc why`, failed builds of images,
//! editors and the playground.
//!
//! Not a pass: it reads the files that a build has written. The answers come from the source map of each target.

mod causes;
mod effects;
mod explain;
mod extent;
mod failed_step;
pub mod lines;
pub mod source_map;

pub use causes::{LineCause, causes_of_line, names_of_parameters};
pub use effects::{EffectLine, Effects, effects_of, effects_of_line, effects_of_setting};
pub use explain::{ExplainedLine, explain};
pub use failed_step::FailedStep;
