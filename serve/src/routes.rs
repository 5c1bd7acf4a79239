//! What can be called, one file a resource.

mod compile;
mod host;
mod job;
mod jobs;
mod outputs;
mod reference;
mod session;
mod sockets;
mod streams;
mod submit;
mod upload;

use crate::endpoint::Endpoint;

pub(crate) use compile::Scratch;
pub(crate) use job::{inspect, job_file};
pub(crate) use jobs::local_rows;
pub(crate) use session::{Login, begin};
pub(crate) use submit::{BASE, Submit, start};

/// All endpoints below [`BASE`].
pub(crate) fn endpoints() -> Vec<Endpoint> {
    [
        compile::endpoints(),
        jobs::endpoints(),
        job::endpoints(),
        streams::endpoints(),
        submit::endpoints(),
        outputs::endpoints(),
        sockets::endpoints(),
        host::endpoints(),
        upload::endpoints(),
        session::endpoints(),
    ]
    .concat()
}
