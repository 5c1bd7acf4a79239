//! What is done before the first task: room on the machine, data, roots, the network. It takes its time, in a thread.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::share::Share;
use super::{Mail, Sender};
use crate::error::Result;
use crate::job::TaskId;
use crate::job::event::Kind as EventKind;
use crate::lifecycle::Lifecycle;
use crate::network::Network;

/// What the preparation wants written down.
#[derive(Debug)]
pub(super) enum News {
    /// Something happened.
    Event(EventKind, Value),
    /// A person should know something.
    Note(String),
    /// Where tasks are reached, by number.
    Addresses(Vec<Option<IpAddr>>),
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

fn prepare(share: &Share, mail: &Sender<Mail>) -> Result<Prepared> {
    let event = |kind, detail| mail.send(Mail::Preparing(News::Event(kind, detail)));
    let tasks: Vec<TaskId> = Lifecycle::new(&share.plan).tasks().iter().map(|task| task.id.clone()).collect();
    let network = Network::make(&share.plan, &tasks, &share.folder, &share.submission)?;
    for note in network.notes() {
        mail.send(Mail::Preparing(News::Note(note.clone())));
    }
    event(EventKind::NetworkReady, json!({ "network": network.name(), "published": network.published() }));
    let addresses = (0..tasks.len()).map(|task| network.address(task)).collect();
    mail.send(Mail::Preparing(News::Addresses(addresses)));
    *share.network() = Some(network);
    Ok(Prepared {})
}
