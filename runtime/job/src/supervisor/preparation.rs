//! What is done before the first task: its turn, room on the host, data, roots, the network. It takes its time, in a
//! thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::mail::{Mail, News, Prepared};
use super::mailbox::Sender;
use super::share::Share;
use crate::admission::capacity::Capacity;
use crate::admission::ledger::Ledger;
use crate::admission::turn::{Slot, Waiting};
use crate::admission::{Admission, Answer, claim};
use crate::directory::Places;
use crate::event::Kind as EventKind;
use crate::lifecycle::Lifecycle;
use crate::network::{Change, Network};
use crate::provision::{self, Progress};
use jobc_gpu::demand::Demands;
use jobc_gpu::inject::Injector;
use jobc_gpu::share::Served;
use jobc_gpu::sharing::Means;
use jobc_gpu::tasks::TaskGpus;
use jobc_gpu::{Inventory, Machine};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

/// How often a job that waits asks again.
const AGAIN: Duration = Duration::from_millis(200);

/// What was found of the host's GPUs.
struct Gpus {
    machine: Machine,
    inventory: Inventory,
    means: Means,
}

/// The preparation of one job.
struct Preparation<'a> {
    share: &'a Share,
    mail: &'a Sender<Mail>,
}

/// Begins the preparation; [`Mail::Prepared`] is its end. [`Share::stopped`] ends it early.
pub(super) fn start(share: &Arc<Share>, mail: &Sender<Mail>) -> JoinHandle<()> {
    let (share, mail) = (Arc::clone(share), mail.clone());
    std::thread::spawn(move || {
        let prepared = Preparation { share: &share, mail: &mail }.carry_out();
        mail.send(Mail::Prepared(prepared.map(Box::new)));
    })
}

impl Preparation<'_> {
    fn carry_out(&self) -> Result<Prepared> {
        // Before it waits for anything, so that no other job gets its ports meanwhile.
        let mut admission = self.enter()?;
        let slot = self.wait_for_the_turn()?;
        let gpus = self.wait_for_room(&mut admission)?;
        let gpus = self.serve_gpus(&admission, gpus)?;
        self.provide(gpus)?;
        self.make_network()?;
        Ok(Prepared { admission, slot })
    }

    fn event(&self, kind: EventKind, detail: Value) {
        self.mail.send(Mail::Preparing(News::Event(kind, detail)));
    }

    fn note(&self, text: impl Into<String>) {
        self.mail.send(Mail::Preparing(News::Note(text.into())));
    }

    /// Sleeps briefly; an error if the job was stopped.
    fn pause(&self) -> Result<()> {
        std::thread::sleep(AGAIN);
        if self.share.stopped.load(Ordering::Acquire) {
            return Err(Error::new(Kind::State, "the job was stopped before it started"));
        }
        Ok(())
    }

    fn wait_for_the_turn(&self) -> Result<Option<Slot>> {
        let Some(turn) = &self.share.submission.turn else { return Ok(None) };
        let mut waiting = Waiting::new(turn)?;
        let mut told = false;
        loop {
            if let Some(slot) = waiting.try_take()? {
                return Ok(Some(slot));
            }
            if !std::mem::replace(&mut told, true) {
                let reason = format!("its turn: {} of the jobs started together run at once", turn.slots);
                self.event(EventKind::Queued, json!({ "waits_for": reason }));
            }
            self.pause()?;
        }
    }

    /// Where the jobs of this user are.
    fn places(&self) -> Places {
        let parent = |path: &std::path::Path| path.parent().unwrap_or(path).to_owned();
        let directory = &self.share.directory;
        Places { state: parent(&directory.state), records: parent(&directory.record) }
    }

    fn enter(&self) -> Result<Admission> {
        let Share { plan, directory, .. } = self.share;
        let ledger = Ledger::standard(&self.places())?;
        if let Some(said) = &ledger.said {
            self.note(said);
        }
        Admission::enter(ledger, &directory.id, &claim::of(plan))
    }

    fn wait_for_room(&self, admission: &mut Admission) -> Result<Gpus> {
        let Share { plan, directory, submission, .. } = self.share;
        let (machine, inventory) = self.look_at_gpus();
        let means = Means::of(&machine, &inventory);
        let demands = Demands::of(plan, submission.gpu_choices(), &inventory, &means)?;
        let capacity = Capacity::of_machine(&directory.state)?.with_gpus(inventory);
        let mut told = None;
        loop {
            match admission.ask(plan, &demands, &capacity, submission.queue)? {
                Answer::Admitted => {
                    demands.notes.iter().chain(&admission.notes(&capacity)).for_each(|note| self.note(note));
                    self.event(EventKind::Scheduled, json!({ "claim": admission.claim() }));
                    self.mail.send(Mail::Preparing(News::Claimed(admission.claim().clone())));
                    return Ok(Gpus { machine, inventory: capacity.gpus, means });
                }
                Answer::Waits { place, waits_for } => {
                    let now = Some((place, waits_for.clone()));
                    if told != now {
                        self.event(EventKind::Queued, json!({ "place": place, "waits_for": waits_for }));
                        told = now;
                    }
                }
            }
            self.pause()?;
        }
    }

    /// The host's GPUs; not looked up for a job without GPUs.
    fn look_at_gpus(&self) -> (Machine, Inventory) {
        let machine = Machine::here();
        let wanted = Demands::any(&self.share.plan);
        let inventory = if wanted { Inventory::take(&machine) } else { Inventory::default() };
        (machine, inventory)
    }

    /// Starts what serves the job's slices of GPUs; nothing if it has no GPU.
    fn serve_gpus(&self, admission: &Admission, gpus: Gpus) -> Result<Option<TaskGpus>> {
        let Share { plan, submission, stopped, .. } = self.share;
        let leased = admission.claim().leased.clone();
        if leased.is_empty() {
            return Ok(None);
        }
        let Gpus { machine, inventory, means } = gpus;
        let served = Served::start(&leased, &machine, &inventory, &means, &self.places().state, stopped)?;
        let injector = Injector::new(machine, inventory);
        Ok(Some(TaskGpus::new(plan, submission.gpu_injection, injector, leased, served)))
    }

    fn provide(&self, gpus: Option<TaskGpus>) -> Result<()> {
        let Share { plan, directory, submission, secrets, .. } = self.share;
        let job = provision::Job { directory, plan, submission, secrets };
        let mut told = |progress| match progress {
            Progress::Fetching { volume, from, bytes } => {
                self.event(EventKind::Fetching, json!({ "volume": volume, "from": from, "bytes": bytes }));
            }
            Progress::DataReady { volume, path } => {
                self.event(EventKind::DataReady, json!({ "volume": volume, "path": path }));
            }
            Progress::ImageReady { role, image, root } => {
                self.event(EventKind::ImageReady, json!({ "role": role, "image": image, "root": root }));
            }
        };
        let mut provided = provision::provide(&job, &mut told, &self.share.stopped)?;
        if let Some(gpus) = gpus {
            provided.with_gpus(gpus);
        }
        provided.notes.iter().for_each(|note| self.note(note));
        // Nobody else sets it.
        let _ = self.share.provided.set(provided);
        Ok(())
    }

    fn make_network(&self) -> Result<()> {
        let Share { plan, directory, submission, .. } = self.share;
        let tasks: Vec<TaskId> = Lifecycle::new(plan).tasks().iter().map(|task| task.id.clone()).collect();
        let mut network = Network::make(plan, &tasks, directory, submission)?;
        network.notes().iter().for_each(|note| self.note(note));
        let detail = json!({ "network": network.name(), "published": network.published() });
        self.event(EventKind::NetworkReady, detail);
        if let Some(news) = network.take_news() {
            let mail = self.mail.clone();
            std::thread::spawn(move || news.for_each(|change| tell_change(&mail, change)));
        }
        let addresses = (0..tasks.len()).map(|task| network.address(task)).collect();
        self.mail.send(Mail::Preparing(News::Addresses(addresses)));
        *self.share.network() = Some(network);
        Ok(())
    }
}

/// Reports a change of the network. A permanent one is also a note for the user.
fn tell_change(mail: &Sender<Mail>, change: Change) {
    let (detail, note) = match change {
        Change::WayOutLost { why } => (json!({ "way_out": "lost", "why": why }), None),
        Change::WayOutRestored { by } => (json!({ "way_out": "restored", "by": by }), None),
        Change::WayOutGone { why } => {
            let note = format!("the job's network has lost its uplink: {why}");
            (json!({ "way_out": "gone", "why": why }), Some(note))
        }
        Change::HolderLost => {
            let why = "the process that holds the job's network has ended";
            let note = format!("{why}: the uplink is gone, no port is published, and no task can be retried");
            (json!({ "network": "lost", "why": why }), Some(note))
        }
    };
    mail.send(Mail::Preparing(News::Event(EventKind::NetworkChanged, detail)));
    if let Some(note) = note {
        mail.send(Mail::Preparing(News::Note(note)));
    }
}
