//! Turns on the cards that jobs share by time.
//!
//! Next to the claims is an empty file for each card, `turn-nvidia-0`, whose lock (flock(2)) is the turn: the supervisor
//! that holds those of all its cards lets its job run, the others keep theirs frozen. The kernel releases a lock with
//! its process and each supervisor thaws only its own job, so a killed one holds up no other. Who waits has a file
//! `awaits-<ticket>`, locked as well, and is passed by no later ticket on any of its cards: turns go around, and a job
//! with several cards gets all of them or none.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Content, Demands, EntryFile, EntryState, Ledger, PastUse, nanos_since_boot, read_live, write};
use crate::admission::devices;
use crate::record::Claim;
use jobc_gpu::DeviceId;
use jobc_gpu::device_names::short_name;
use jobc_gpu::lease::GpuLease;
use jobc_sys::error::{Error, Result};
use jobc_sys::id::JobId;

/// How a file begins of a job that waits for its turn.
const WAIT_PREFIX: &str = "awaits-";

/// How often it is looked whether another waits, or a turn is free: by then, where the kernel did not tell.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// A job's part in the turns on its cards.
#[derive(Debug)]
pub struct Turns {
    ledger: Ledger,
    id: JobId,
    leased: GpuLease,
    length: Duration,
    /// Readable when a lock was closed; nothing where the kernel has no more of these.
    changes: Option<OwnedFd>,
    state: State,
    due: Instant,
}

#[derive(Debug)]
enum State {
    /// It wants no turn.
    Out,
    Waits {
        _place: EntryFile,
        name: String,
        locks: Vec<OwnedFd>,
    },
    Runs {
        _locks: Vec<OwnedFd>,
        until: Instant,
    },
}

/// What becomes of a job's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnChange {
    /// Its turn begins.
    Begins,
    /// Its turn is over, and another job waits: it is to be frozen, and then to [`wait`](Turns::wait).
    Ends,
}

impl Turns {
    /// That of a job that wants no turn yet.
    pub(in crate::admission) fn new(ledger: Ledger, id: &JobId, leased: GpuLease, length: Duration) -> Self {
        let changes = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        Self { ledger, id: id.clone(), leased, length, changes, state: State::Out, due: Instant::now() }
    }

    /// What becomes readable when another job gives its turn up.
    pub fn changes(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(AsFd::as_fd)
    }

    /// The cards, as text: `GPU 0`, `GPUs 0, 1`.
    pub fn cards(&self) -> String {
        format_cards(&self.leased.cards_in_turns())
    }

    /// Whether it waits for its turn.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waits { .. })
    }

    /// When to look at the latest.
    pub fn due(&self) -> Option<Instant> {
        (!matches!(self.state, State::Out)).then_some(self.due)
    }

    /// Queues up behind those that wait, and gives up the turn.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub fn wait(&mut self) -> Result<()> {
        let mut locks = Vec::new();
        for card in self.leased.cards_in_turns() {
            let path = self.ledger.directory.join(format!("turn-{}", devices::card_name(card)));
            let file = devices::open(&path)
                .map_err(|errno| Error::system(format!("open `{}`", path.display()), errno))?;
            if let Some(changes) = &self.changes {
                let _ = add_watch(changes, &path, WatchFlags::CLOSE_NOWRITE | WatchFlags::CLOSE_WRITE);
            }
            locks.push(file);
        }
        let (ticket, uid) = (nanos_since_boot(), rustix::process::geteuid().as_raw());
        let name = format!("{WAIT_PREFIX}{ticket:016x}-{uid}-{}", std::process::id());
        let path = self.ledger.directory.join(&name);
        let claim = Claim { leased: self.leased.clone(), ..Claim::default() };
        let (id, demands) = (self.id.to_string(), Demands::default());
        let locked = write(&path, &Content { id, ticket, claim, demands, past: PastUse::default() })?;
        let place = EntryFile { path, _locked: locked, _devices: devices::DeviceLocks::default() };
        self.due = Instant::now();
        self.state = State::Waits { _place: place, name, locks };
        Ok(())
    }

    /// Wants no turn, and gives up the one it has.
    pub fn leave(&mut self) {
        self.state = State::Out;
    }

    /// Goes on for another turn, where it cannot be frozen.
    pub fn extend(&mut self) {
        if let State::Runs { until, .. } = &mut self.state {
            *until = Instant::now() + self.length;
        }
    }

    /// Looks whether the turn begins or ends, if that is due.
    ///
    /// # Errors
    ///
    /// A lock cannot be taken.
    pub fn look(&mut self) -> Result<Option<TurnChange>> {
        let now = Instant::now();
        if !self.take_changes() && now < self.due {
            return Ok(None);
        }
        self.due = now + LOOK_INTERVAL;
        match &self.state {
            State::Runs { until, .. } if now < *until => {
                self.due = *until;
                Ok(None)
            }
            State::Runs { .. } => {
                let is_wanted = !self.ledger.awaiting(&self.leased.cards_in_turns()).is_empty();
                Ok(is_wanted.then_some(TurnChange::Ends))
            }
            State::Waits { .. } => Ok(self.take()?.then_some(TurnChange::Begins)),
            State::Out => Ok(None),
        }
    }

    /// Takes the turn, if it is this job's.
    fn take(&mut self) -> Result<bool> {
        let State::Waits { name, locks, .. } = &mut self.state else { return Ok(false) };
        let waiting = self.ledger.awaiting(&self.leased.cards_in_turns());
        if waiting.iter().any(|other| other.name < *name) {
            return Ok(false);
        }
        for number in 0..locks.len() {
            match flock(&locks[number], FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(errno) => {
                    // Not by closing them, which would wake those that wait, and they this one.
                    for lock in &locks[..number] {
                        let _ = flock(lock, FlockOperation::Unlock);
                    }
                    return match errno {
                        Errno::WOULDBLOCK | Errno::INTR => Ok(false),
                        _ => Err(Error::system("lock the turn on a GPU", errno)),
                    };
                }
            }
        }
        let until = Instant::now() + self.length;
        let locks = std::mem::take(locks);
        self.state = State::Runs { _locks: locks, until };
        self.due = until;
        Ok(true)
    }

    /// Whether a lock was closed since the last call.
    fn take_changes(&self) -> bool {
        let Some(changes) = &self.changes else { return false };
        let (mut buffer, mut any) = ([0; 4096], false);
        while rustix::io::read(changes, &mut buffer).is_ok_and(|length| length > 0) {
            any = true;
        }
        any
    }
}

/// A job that waits for its turn.
struct Awaiting {
    name: String,
    uid: u32,
    id: String,
}

impl Ledger {
    /// The jobs that wait for their turn on one of these cards.
    fn awaiting(&self, cards: &BTreeSet<DeviceId>) -> Vec<Awaiting> {
        let files = self.file_names().into_iter().filter(|(name, _)| name.starts_with(WAIT_PREFIX));
        let live = files.filter_map(|(name, path)| {
            let (owner, content) = read_live(&path)?;
            let overlaps = !content.claim.leased.cards_in_turns().is_disjoint(cards);
            overlaps.then_some(Awaiting { name, uid: owner.uid, id: content.id })
        });
        live.collect()
    }

    /// Whose turn it is on the cards of a job of this user, as a sentence; nothing of a job that takes no turns, or is
    /// alone. One that `is_frozen` and does not wait for its turn was frozen by its user.
    pub fn turn_of(&self, id: &JobId, is_frozen: bool) -> Option<String> {
        let uid = rustix::process::geteuid().as_raw();
        let entries = self.entries().ok()?;
        let admitted = entries.iter().filter(|entry| entry.state == EntryState::Admitted);
        let (own, others): (Vec<_>, Vec<_>) =
            admitted.partition(|entry| entry.uid == uid && entry.id == id.to_string());
        let cards = own.first()?.claim.leased.cards_in_turns();
        let waiting = self.awaiting(&cards);
        let waits = |uid: u32, id: &str| waiting.iter().any(|other| other.uid == uid && other.id == id);
        let named = |want: bool| -> Vec<String> {
            let sharing =
                others.iter().filter(|other| !other.claim.leased.cards_in_turns().is_disjoint(&cards));
            sharing.filter(|other| waits(other.uid, &other.id) == want).map(|other| other.owner()).collect()
        };
        let of = format_cards(&cards);
        if waits(uid, &id.to_string()) {
            let holders = named(false);
            let verb = if holders.len() == 1 { "has" } else { "have" };
            let whose = (!holders.is_empty()).then(|| format!(", which {} {verb}", holders.join(", ")));
            return Some(format!("waits: its turn on {of}{}", whose.unwrap_or_default()));
        }
        let behind = named(true);
        (!is_frozen && !behind.is_empty())
            .then(|| format!("it has its turn on {of}; waiting for theirs: {}", behind.join(", ")))
    }
}

fn format_cards(cards: &BTreeSet<DeviceId>) -> String {
    let names: Vec<String> = cards.iter().map(|card| short_name(*card)).collect();
    format!("{} {}", if names.len() == 1 { "GPU" } else { "GPUs" }, names.join(", "))
}

#[cfg(test)]
mod tests;
