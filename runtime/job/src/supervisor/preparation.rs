//! The preparation before the first task: queue, host resources, data, roots, the network. It can take long and runs in
//! a thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::context::JobContext;
use super::mailbox::Sender;
use super::message::{Message, PreparationEvent, PreparedHost};
use crate::admission::capacity::Capacity;
use crate::admission::job_queue::{Slot, WaitingJob};
use crate::admission::{Admission, AdmissionOutcome};
use crate::event::Kind as EventKind;
use crate::lifecycle::Lifecycle;
use crate::network::{Network, NetworkEvent};
use crate::origin::Origin;
use crate::provision::{self, Progress};
use jobc_gpu::demand::Demands;
use jobc_gpu::enforcement::SliceEnforcer;
use jobc_gpu::inject::Injector;
use jobc_gpu::nvml::Freshness;
use jobc_gpu::sharing::SharingSupport;
use jobc_gpu::step::usable_inventory;
use jobc_gpu::tasks::TaskGpus;
use jobc_gpu::{Host, Inventory};
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

/// How often a waiting job retries its request.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The GPUs found on the host.
struct HostGpus {
    machine: Host,
    inventory: Inventory,
    means: SharingSupport,
}

/// The preparation of one job.
struct Preparation<'a> {
    share: &'a JobContext,
    mail: &'a Sender<Message>,
}

/// Begins the preparation; [`Message::Prepared`] is its end. [`JobContext::stopped`] ends it early.
pub(super) fn start(share: &Arc<JobContext>, admission: Admission, mail: &Sender<Message>) -> JoinHandle<()> {
    let (share, mail) = (Arc::clone(share), mail.clone());
    std::thread::spawn(move || {
        let prepared = Preparation { share: &share, mail: &mail }.carry_out(admission);
        mail.send(Message::Prepared(prepared.map(Box::new)));
    })
}

/// Begins to wait for resources for a suspended job; [`Message::Readmitted`] is its end.
pub(super) fn readmit(
    share: &Arc<JobContext>,
    mut prepared: PreparedHost,
    mail: &Sender<Message>,
) -> JoinHandle<()> {
    let (share, mail) = (Arc::clone(share), mail.clone());
    std::thread::spawn(move || {
        let preparation = Preparation { share: &share, mail: &mail };
        let admitted = preparation.readmit(&mut prepared.admission);
        mail.send(Message::Readmitted(admitted.map(|()| Box::new(prepared))));
    })
}

impl Preparation<'_> {
    fn readmit(&self, admission: &mut Admission) -> Result<()> {
        let gpus = self.wait_for_resources(admission, true)?;
        let gpus = self.serve_gpus(admission, gpus)?;
        if let (Some(had), Some(gpus)) = (self.share.gpus(), gpus) {
            had.replace(gpus);
        }
        Ok(())
    }

    fn carry_out(&self, mut admission: Admission) -> Result<PreparedHost> {
        self.wait_for_start()?;
        let slot = self.wait_for_slot()?;
        let gpus = self.wait_for_resources(&mut admission, self.share.submission.queue)?;
        let gpus = self.serve_gpus(&admission, gpus)?;
        self.provide(gpus)?;
        self.create_network()?;
        Ok(PreparedHost { admission, slot })
    }

    fn event(&self, kind: EventKind, detail: Value) {
        self.mail.send(Message::Preparation(PreparationEvent::Event(kind, detail)));
    }

    fn note(&self, text: impl Into<String>) {
        self.mail.send(Message::Preparation(PreparationEvent::Note(text.into())));
    }

    /// Sleeps briefly; an error if the job was stopped.
    fn pause(&self) -> Result<()> {
        std::thread::sleep(RETRY_INTERVAL);
        if self.share.stopped.load(Ordering::Acquire) {
            return Err(Error::new(Kind::State, "the job was stopped before it started"));
        }
        Ok(())
    }

    /// Waits for the start time by the clock of the host, which may be set meanwhile.
    fn wait_for_start(&self) -> Result<()> {
        let Some(start) = self.share.submission.start else { return Ok(()) };
        if Time::now() >= start {
            return Ok(());
        }
        let reason = format!("its start time, {start}, by `after`");
        self.event(EventKind::Queued, json!({ "waits_for": reason }));
        while Time::now() < start {
            self.pause()?;
        }
        Ok(())
    }

    fn wait_for_slot(&self) -> Result<Option<Slot>> {
        let Some(turn) = &self.share.submission.turn else { return Ok(None) };
        let mut waiting = WaitingJob::new(turn)?;
        let mut reported = false;
        loop {
            if let Some(slot) = waiting.try_take()? {
                return Ok(Some(slot));
            }
            if !std::mem::replace(&mut reported, true) {
                let reason = format!(
                    "its turn: at most {} of its sweep at once, by `--parallel` or `max_parallel`",
                    turn.slots
                );
                self.event(EventKind::Queued, json!({ "waits_for": reason }));
            }
            self.pause()?;
        }
    }

    fn wait_for_resources(&self, admission: &mut Admission, queue: bool) -> Result<HostGpus> {
        let JobContext { plan, directory, submission, .. } = self.share;
        let (machine, inventory) = self.detect_gpus();
        let means = SharingSupport::of(&machine, &inventory);
        let demands = Demands::of(plan, submission.gpu_choices(), &inventory, &means)?;
        let capacity = Capacity::of_host(&directory.state)?.with_gpus(inventory);
        let mut reported = None;
        loop {
            match admission.request(plan, &demands, &capacity, queue)? {
                AdmissionOutcome::Admitted => {
                    demands.notes.iter().chain(&admission.notes(&capacity)).for_each(|note| self.note(note));
                    self.event(EventKind::Scheduled, json!({ "claim": admission.claim() }));
                    self.mail
                        .send(Message::Preparation(PreparationEvent::Claimed(admission.claim().clone())));
                    let origin =
                        Origin::of(plan, submission, &capacity, &admission.claim().leased, directory);
                    if let Err(error) = origin.write(directory) {
                        self.note(error.to_string());
                    }
                    return Ok(HostGpus { machine, inventory: capacity.gpus, means });
                }
                AdmissionOutcome::Queued { place, waits_for } => {
                    let now = Some((place, waits_for.clone()));
                    if reported != now {
                        self.event(EventKind::Queued, json!({ "place": place, "waits_for": waits_for }));
                        reported = now;
                    }
                }
            }
            self.pause()?;
        }
    }

    /// The host's GPUs; not looked up for a job without GPUs.
    fn detect_gpus(&self) -> (Host, Inventory) {
        let machine = Host::here();
        let wanted = Demands::requests_gpus(&self.share.plan);
        let freshness = Freshness::of_command(self.share.submission.gpus_asked_at);
        let inventory = if wanted { usable_inventory(&machine, freshness) } else { Inventory::default() };
        (machine, inventory)
    }

    /// Starts the servers of the job's GPU slices; `None` if it has no GPU.
    fn serve_gpus(&self, admission: &Admission, gpus: HostGpus) -> Result<Option<TaskGpus>> {
        let JobContext { plan, submission, stopped, .. } = self.share;
        let leased = admission.claim().leased.clone();
        if leased.is_empty() {
            return Ok(None);
        }
        let HostGpus { machine, inventory, means } = gpus;
        let served = SliceEnforcer::start(
            &leased,
            &machine,
            &inventory,
            &means,
            &self.share.directory.parents().state,
            stopped,
        )?;
        let injector = Injector::new(machine, inventory);
        Ok(Some(TaskGpus::new(plan, submission.gpu_injection, injector, leased, served)))
    }

    fn provide(&self, gpus: Option<TaskGpus>) -> Result<()> {
        let JobContext { plan, directory, submission, secrets, environments, .. } = self.share;
        let job = provision::Job { directory, plan, submission, secrets, environments };
        let mut reported = |progress| match progress {
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
        let mut provided = provision::provide(&job, &mut reported, &self.share.stopped)?;
        if let Some(gpus) = gpus {
            provided.with_gpus(gpus);
        }
        provided.notes.iter().for_each(|note| self.note(note));
        // Nobody else sets it.
        let _ = self.share.provided.set(provided);
        Ok(())
    }

    fn create_network(&self) -> Result<()> {
        let JobContext { plan, directory, submission, .. } = self.share;
        let tasks: Vec<TaskId> = Lifecycle::new(plan).tasks().iter().map(|task| task.id.clone()).collect();
        let mut network = Network::create(plan, &tasks, directory, submission)?;
        network.notes().iter().for_each(|note| self.note(note));
        let detail = json!({ "network": network.name(), "published": network.published() });
        self.event(EventKind::NetworkReady, detail);
        if let Some(news) = network.take_events() {
            let mail = self.mail.clone();
            std::thread::spawn(move || news.for_each(|change| report_network_event(&mail, change)));
        }
        let addresses = (0..tasks.len()).map(|task| network.address(task)).collect();
        self.mail.send(Message::Preparation(PreparationEvent::Addresses(addresses)));
        *self.share.network() = Some(network);
        Ok(())
    }
}

/// Reports a change of the network. A permanent one is also a note for the user.
fn report_network_event(mail: &Sender<Message>, change: NetworkEvent) {
    let (detail, note) = match change {
        NetworkEvent::UplinkLost { why } => (json!({ "uplink": "lost", "why": why }), None),
        NetworkEvent::UplinkRestored { by } => (json!({ "uplink": "restored", "by": by }), None),
        NetworkEvent::UplinkGone { why } => {
            let note = format!("the job's network has lost its uplink: {why}");
            (json!({ "uplink": "gone", "why": why }), Some(note))
        }
        NetworkEvent::HolderLost => {
            let why = "the process that holds the job's network has ended";
            let note = format!("{why}: the uplink is gone, no port is published, and no task can be retried");
            (json!({ "network": "lost", "why": why }), Some(note))
        }
    };
    mail.send(Message::Preparation(PreparationEvent::Event(EventKind::NetworkChanged, detail)));
    if let Some(note) = note {
        mail.send(Message::Preparation(PreparationEvent::Note(note)));
    }
}
