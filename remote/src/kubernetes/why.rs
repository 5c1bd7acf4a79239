//! Why a job does not run, in sentences: what Kueue, admission, the scheduler, autoscalers and nodes report.
//!
//! All functions are pure: they read recorded responses. Each kind of response has its own file. A [`Reason`] names the
//! field of the job that it is about, so that it can be shown at the job's line.

mod admission;
mod autoscaler;
mod container;
mod disruption;
mod events;
mod kueue;
mod lost;
mod reason;
mod scheduler;
mod tasks;

pub(crate) use events::{Report, of_events};
pub(crate) use kueue::{Position, of_workload, position};
pub(crate) use lost::of_lost_pods;
pub(crate) use reason::{Field, Reason};
pub(crate) use tasks::{names_with_nodes, of_pods};
