//! The server with its files: messages and files in, replies out.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use jobc_lsp::{Clock, Embedded, Message};
use serde::Serialize;

use crate::files::{Entry, HostFiles};

pub(crate) struct Host {
    files: &'static HostFiles,
    server: Embedded<'static>,
}

/// What the worker does after each call.
#[derive(Serialize)]
struct Reply {
    /// To send to the client.
    messages: Vec<Message>,
    /// Files that jobs read and that were not given yet.
    wanted: BTreeSet<Utf8PathBuf>,
    /// After how many milliseconds to call again; null if there is nothing to do.
    pause: Option<u64>,
}

impl Host {
    pub(crate) fn new(now: Clock) -> Self {
        // There is one host, and it lives as long as its worker.
        let files: &'static HostFiles = Box::leak(Box::default());
        Self { files, server: Embedded::new(files, now) }
    }

    /// Takes a message of JSON-RPC; returns whether it is one.
    pub(crate) fn receive(&mut self, message: &[u8]) -> bool {
        let message = serde_json::from_slice::<Message>(message);
        message.map(|message| self.server.receive(message)).is_ok()
    }

    /// Takes files, by path; returns whether it is a map of files.
    pub(crate) fn files(&mut self, files: &[u8]) -> bool {
        let Ok(files) = serde_json::from_slice::<BTreeMap<Utf8PathBuf, Entry>>(files) else {
            return false;
        };
        for (path, entry) in files {
            if self.files.take(path.clone(), entry) {
                self.server.file_changed(&path);
            }
        }
        true
    }

    /// Handles what was received.
    pub(crate) fn work(&mut self) -> Vec<u8> {
        let (messages, pause) = self.server.work();
        // Rounded up: too early would only be called once more.
        let pause = pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX) + 1);
        let reply = Reply { messages, wanted: self.files.wanted(), pause };
        serde_json::to_vec(&reply).expect("messages and paths are JSON")
    }
}
