//! The output of many pods, polled by one thread. Connections are opened, and pods asked about, by a few others.

use std::collections::BTreeMap;
use std::mem::replace;
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobc_registry::http::Backoff;
use jobc_schema::percent::encode_segment;
use jobc_sys::error::Result;
use rustix::event::PollFlags;

use super::client::Client;
use super::log_position::{Position, Resumption, Step};
use super::log_stream::{LogStream, Piece, Progress};
use super::log_workers::{Outcome, Work, Workers};
use super::outage::{self, Outage, PAUSE};
use super::pods::Pod;
use super::status::ApiError;
use crate::place::{LogItem, LogOutput};
use crate::websocket::wait;

/// A stream that is older than this was answered, although a quiet task has shown nothing yet.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Until a quiet task is looked at again.
const QUIET_INTERVAL: Duration = Duration::from_secs(5);

/// How much of a pod's output is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) follow: bool,
    pub(crate) tail: Option<u64>,
    pub(crate) since: Option<String>,
}

/// The output of pods.
pub(crate) struct LogStreams {
    client: Arc<Client>,
    extent: Extent,
    workers: Workers,
    pods: BTreeMap<u64, PodLog>,
    next: u64,
}

/// The events of one wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Polled {
    /// Something was shown.
    pub(crate) is_busy: bool,
    /// The number of pods without further output.
    pub(crate) ended: usize,
}

/// The output of one pod.
struct PodLog {
    task: String,
    attempt: u32,
    uid: String,
    /// The path of the pod.
    path: String,
    container: String,
    position: Position,
    resumption: Resumption,
    /// Whether the current connection has brought anything new.
    has_progressed: bool,
    backoff: Backoff,
    retry_after: Option<Duration>,
    added: Instant,
    outage: Outage,
    /// The container has ended: once more for what was written between the end of the stream and that of the container.
    is_last_pass: bool,
    was_renewed: bool,
    state: State,
}

enum State {
    /// A worker opens its stream, or asks about it after a stream that ended so.
    Working {
        was_clean: bool,
    },
    Reading(Box<LogStream>),
    /// It is opened at this time.
    Waiting(Instant),
    Ended,
}

impl LogStreams {
    pub(crate) fn new(client: Arc<Client>, extent: Extent) -> Result<Self> {
        let workers = Workers::new(Arc::clone(&client))?;
        Ok(Self { client, extent, workers, pods: BTreeMap::new(), next: 0 })
    }

    /// How many pods are read.
    pub(crate) fn len(&self) -> usize {
        self.pods.len()
    }

    /// Begins to read the output of a pod.
    pub(crate) fn add(&mut self, pod: &Pod, attempt: u32) {
        let namespace = &self.client.config().namespace;
        let position = Position::default();
        let log = PodLog {
            task: pod.task(),
            attempt,
            uid: pod.metadata.uid.clone(),
            path: format!("/api/v1/namespaces/{namespace}/pods/{}", pod.metadata.name),
            container: pod.container().to_owned(),
            resumption: position.resume(),
            position,
            has_progressed: false,
            backoff: Backoff::default(),
            retry_after: None,
            added: Instant::now(),
            outage: Outage::default(),
            is_last_pass: !self.extent.follow,
            was_renewed: false,
            state: State::Waiting(Instant::now()),
        };
        self.pods.insert(self.next, log);
        self.next += 1;
    }

    /// Passes on what arrives, until something has or a time is over.
    pub(crate) fn poll(&mut self, timeout: Duration, show: LogOutput<'_>) -> ControlFlow<(), Result<Polled>> {
        if let Err(error) = self.begin_due() {
            return ControlFlow::Continue(Err(error));
        }
        let now = Instant::now();
        let due = self.pods.values().filter_map(|pod| match &pod.state {
            State::Reading(stream) => Some(stream.deadline()),
            State::Waiting(at) => Some(*at),
            State::Working { .. } | State::Ended => None,
        });
        let timeout = due.map(|at| at.saturating_duration_since(now)).fold(timeout, Duration::min);
        let ready = self.wait(timeout);
        let mut polled = Polled::default();
        let mut count = |item: LogItem<'_>| {
            polled.is_busy = true;
            show(item)
        };
        let mut outcomes = vec![];
        if ready.first().is_some_and(Option::is_none) {
            outcomes
                .extend(self.workers.outcomes().into_iter().map(|(number, outcome)| (number, Some(outcome))));
        }
        outcomes.extend(ready.into_iter().flatten().map(|number| (number, None)));
        for (number, outcome) in outcomes {
            let Some(pod) = self.pods.get_mut(&number) else { continue };
            let work = match outcome {
                Some(outcome) => pod.take(outcome, &mut count)?,
                None => pod.read(&self.client, &mut count)?,
            };
            if let Some(work) = work
                && let Err(error) = self.workers.begin(number, work)
            {
                return ControlFlow::Continue(Err(error));
            }
        }
        let before = self.pods.len();
        self.pods.retain(|_, pod| !matches!(pod.state, State::Ended));
        polled.ended = before - self.pods.len();
        ControlFlow::Continue(Ok(polled))
    }

    /// Opens the streams whose time has come.
    fn begin_due(&mut self) -> Result<()> {
        let now = Instant::now();
        for (number, pod) in &mut self.pods {
            if matches!(pod.state, State::Waiting(at) if at <= now) {
                pod.state = State::Working { was_clean: false };
                self.workers.begin(*number, Work::Open(pod.request(&self.extent)))?;
            }
        }
        Ok(())
    }

    /// Waits; returns none for the workers, which come first, and the numbers of the pods to read.
    fn wait(&self, timeout: Duration) -> Vec<Option<u64>> {
        let mut numbers = vec![None];
        let mut interests = vec![(self.workers.as_fd(), PollFlags::IN)];
        let now = Instant::now();
        for (number, pod) in &self.pods {
            if let State::Reading(stream) = &pod.state {
                numbers.push(Some(*number));
                interests.push((stream.as_fd(), stream.interest()));
            }
        }
        let ready = wait(&interests, timeout);
        let is_late = |number: Option<u64>| {
            let pod = number.and_then(|number| self.pods.get(&number));
            pod.is_some_and(|pod| matches!(&pod.state, State::Reading(stream) if stream.deadline() <= now))
        };
        let is_ready = |(number, flags): (Option<u64>, PollFlags)| {
            (!flags.is_empty() || is_late(number)).then_some(number)
        };
        numbers.into_iter().zip(ready).filter_map(is_ready).collect()
    }
}

impl PodLog {
    /// The parameters of the next stream.
    fn request(&mut self, extent: &Extent) -> String {
        self.resumption = self.position.resume();
        self.has_progressed = false;
        let since = self.position.since().or_else(|| extent.since.clone());
        let mut query = format!("container={}&timestamps=true&follow={}", self.container, !self.is_last_pass);
        if let Some(since) = since {
            query += &format!("&sinceTime={}", encode_segment(&since));
        }
        if let (Some(lines), false) = (extent.tail, self.position.has_begun()) {
            query += &format!("&tailLines={lines}");
        }
        format!("{}/log?{query}", self.path)
    }

    /// Takes what a worker has done. Returns what is to be done next.
    fn take(&mut self, outcome: Outcome, show: LogOutput<'_>) -> ControlFlow<(), Option<Work>> {
        match outcome {
            Outcome::Opened(Ok(stream)) => self.state = State::Reading(stream),
            // Whether the cluster answers at all shows when it is asked about the pod.
            Outcome::Opened(Err(ApiError::Connection(_))) => return self.ask(false),
            Outcome::Opened(Err(error)) | Outcome::Asked(Err(error)) => self.fail(error, show)?,
            Outcome::Asked(Ok(Some(pod))) if pod.uid == self.uid => {
                let State::Working { was_clean } = self.state else { return ControlFlow::Continue(None) };
                self.go_on(was_clean, pod.has_ended, show)?;
            }
            // The pod is gone, and its output with it.
            Outcome::Asked(Ok(_)) => self.state = State::Ended,
        }
        ControlFlow::Continue(None)
    }

    /// Decides what follows a stream: its end says nothing, only the state of the container does.
    fn go_on(&mut self, was_clean: bool, has_ended: bool, show: LogOutput<'_>) -> ControlFlow<()> {
        self.outage.end();
        let is_first_end = has_ended && (was_clean || !self.is_last_pass);
        let delay =
            if is_first_end { Some(Duration::ZERO) } else { self.backoff.failed(self.retry_after.take()) };
        let delay = match delay {
            Some(delay) => delay,
            None if has_ended => {
                self.state = State::Ended;
                let text = "the server breaks off its output; some of it is missing";
                return show(LogItem::Remark { task: &self.task, text });
            }
            None => {
                // A quiet task: its streams end without a line.
                self.backoff.progressed();
                QUIET_INTERVAL
            }
        };
        self.is_last_pass |= has_ended;
        self.state = State::Waiting(Instant::now() + delay);
        ControlFlow::Continue(())
    }

    /// Takes what has arrived on the stream. Returns what is to be done next.
    fn read(&mut self, client: &Client, show: LogOutput<'_>) -> ControlFlow<(), Option<Work>> {
        let State::Reading(mut stream) = replace(&mut self.state, State::Ended) else {
            return ControlFlow::Continue(None);
        };
        let progress = stream.step(&mut |piece| self.line(&piece, show))?;
        match progress {
            Progress::Open => {
                self.state = State::Reading(stream);
                ControlFlow::Continue(None)
            }
            Progress::Ended { is_clean } => {
                if self.has_progressed {
                    self.backoff.progressed();
                }
                if self.is_last_pass && is_clean {
                    // It stays ended.
                    return ControlFlow::Continue(None);
                }
                self.ask(is_clean)
            }
            Progress::Refused(status) => {
                self.retry_after = status.retry_after;
                match status.code {
                    // The pod is gone, and its output with it.
                    404 => ControlFlow::Continue(None),
                    401 if !self.was_renewed && client.renew() => {
                        self.was_renewed = true;
                        self.state = State::Waiting(Instant::now());
                        ControlFlow::Continue(None)
                    }
                    // Its container has not started, or its node or the server cannot be reached for a moment.
                    400 | 429 | 500 | 502 | 503 | 504 => self.ask(false),
                    _ => self.fail(ApiError::Status(status), show).map_continue(|()| None),
                }
            }
        }
    }

    fn ask(&mut self, was_clean: bool) -> ControlFlow<(), Option<Work>> {
        self.state = State::Working { was_clean };
        ControlFlow::Continue(Some(Work::Ask(self.path.clone())))
    }

    fn fail(&mut self, error: ApiError, show: LogOutput<'_>) -> ControlFlow<()> {
        let was_answered = self.position.has_begun() || self.added.elapsed() > ANSWER_TIMEOUT;
        if was_answered && outage::may_pass(&error) {
            let (may_pass, is_first) = self.outage.fail();
            if may_pass {
                self.state = State::Waiting(Instant::now() + PAUSE);
                if is_first {
                    show(LogItem::Remark { task: &self.task, text: &outage::notice(&error.why()) })?;
                }
                return ControlFlow::Continue(());
            }
        }
        self.state = State::Ended;
        let text = error.into_error("read its output").message();
        show(LogItem::Remark { task: &self.task, text: &text })
    }

    /// Shows a line, unless it was shown before.
    fn line(&mut self, piece: &Piece<'_>, show: LogOutput<'_>) -> ControlFlow<()> {
        self.outage.end();
        let text = piece.text;
        let (task, attempt) = (self.task.as_str(), self.attempt);
        if piece.is_continuation {
            let time = self.position.time();
            return if self.resumption.is_skipping {
                ControlFlow::Continue(())
            } else {
                show(LogItem::line(task, attempt, time, text))
            };
        }
        let split = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        let time = String::from_utf8_lossy(&text[..split]);
        let text = text.get(split + 1..).unwrap_or_default();
        let step = self.position.step(&mut self.resumption, &time);
        self.has_progressed |= step != Step::Skip;
        match step {
            Step::Skip => return ControlFlow::Continue(()),
            Step::Show => {}
            Step::ShowAfterGap => {
                let text = format!("the server no longer has all lines before {time}");
                show(LogItem::Remark { task, text: &text })?;
            }
        }
        show(LogItem::line(task, attempt, &time, text))
    }
}
