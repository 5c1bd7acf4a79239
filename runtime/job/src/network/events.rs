//! Changes of a job's network at run time: written by the process that holds it, as lines of JSON on its standard
//! output, and read by the supervisor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::ChildStdout;

use serde::{Deserialize, Serialize};

/// A change of a job's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkEvent {
    /// The program of the uplink exited; it is restarted.
    UplinkLost {
        /// The program and its error output.
        why: String,
    },
    /// There is an uplink again.
    UplinkRestored {
        /// The program.
        by: String,
    },
    /// The uplink is gone, and is not restarted again.
    UplinkGone {
        /// Why.
        why: String,
    },
    /// The process that holds the network has ended. Tasks reach each other still, and nothing else of the network
    /// works.
    HolderLost,
}

/// The changes of a network, as they come; [`NetworkEvent::HolderLost`] is the last.
#[derive(Debug)]
pub struct NetworkEvents {
    from: Option<BufReader<ChildStdout>>,
}

/// Sends it to the supervisor; if the supervisor has exited, it is dropped.
pub(super) fn send_event(change: &NetworkEvent) {
    if let Ok(mut line) = serde_json::to_vec(change) {
        line.push(b'\n');
        let _ = std::io::stdout().lock().write_all(&line);
    }
}

impl NetworkEvents {
    pub(super) fn of(output: ChildStdout) -> Self {
        Self { from: Some(BufReader::new(output)) }
    }
}

impl Iterator for NetworkEvents {
    type Item = NetworkEvent;

    /// Waits for the next.
    fn next(&mut self) -> Option<NetworkEvent> {
        let mut line = Vec::new();
        let read = self.from.as_mut()?.read_until(b'\n', &mut line);
        let change = read.ok().and_then(|_| serde_json::from_slice(&line).ok());
        if change.is_none() {
            self.from = None;
        }
        Some(change.unwrap_or(NetworkEvent::HolderLost))
    }
}
