//! What is done before the first task: room on the machine, data, roots, the network. It takes its time, in a thread.

use std::sync::Arc;

use super::share::Share;
use super::{Mail, Sender};
use crate::error::Result;
use crate::job::event::Kind as EventKind;
use serde_json::Value;

/// What the preparation wants written down.
#[derive(Debug)]
pub(super) enum News {
    /// Something happened.
    Event(EventKind, Value),
    /// A person should know something.
    Note(String),
}

/// What the job has of the machine while it runs. Dropping it gives all of it back.
#[derive(Debug)]
pub(super) struct Prepared {}

/// Begins the preparation; [`Mail::Prepared`] is its end.
pub(super) fn start(share: &Arc<Share>, mail: &Sender<Mail>) {
    let (share, mail) = (Arc::clone(share), mail.clone());
    std::thread::spawn(move || {
        let prepared = prepare(&share, &mail);
        mail.send(Mail::Prepared(prepared));
    });
}

fn prepare(_share: &Share, _mail: &Sender<Mail>) -> Result<Prepared> {
    Ok(Prepared {})
}
