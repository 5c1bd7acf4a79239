//! An uplink program that exits while its job runs is restarted, up to a number of times, and each time is reported:
//! otherwise tasks that fetch or report something would fail for no visible reason.

use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{StartResult, Tool, UplinkProcess};
use crate::network::events::{NetworkEvent, send_event};
use jobc_sys::parallel::lock;

/// How often a program that ended is started again before the job has to do without: after none, one, two, four and
/// eight seconds.
const MAX_RESTARTS: u32 = 5;

/// One that has run so long starts as often again.
const STABLE_TIME: Duration = Duration::from_mins(10);

/// An uplink, as long as there is one. It is stopped when this is dropped.
#[derive(Debug)]
pub(in crate::network) struct Uplink {
    /// Dropped, it wakes the thread that waits between two tries.
    stop: Option<Sender<()>>,
    state: Arc<Mutex<UplinkState>>,
    watch: Option<JoinHandle<()>>,
}

/// The state that the watching thread shares with the one that stops it.
#[derive(Debug)]
struct UplinkState {
    /// The standard input of the program's keeper, which ends when this is closed.
    stdin: Option<ChildStdin>,
    /// The uplink is no longer needed.
    stopped: bool,
}

impl Uplink {
    /// Watches a running program and restarts it when it exits; the caller's thread is in the host's network.
    pub(super) fn new(
        (tool, keeper): (Tool, UplinkProcess),
        start: impl Fn() -> StartResult + Send + 'static,
    ) -> Self {
        let (given_up, wanted) = channel();
        let mut keeper = keeper;
        let line = keeper.process.stdin.take();
        let running = Arc::new(Mutex::new(UplinkState { stdin: line, stopped: false }));
        let watched = Arc::clone(&running);
        let watch = std::thread::spawn(move || watch(tool, keeper, &watched, &wanted, start));
        Self { stop: Some(given_up), state: running, watch: Some(watch) }
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        drop(self.stop.take());
        let line = {
            let mut running = lock(&self.state);
            running.stopped = true;
            running.stdin.take()
        };
        drop(line);
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
    }
}

/// Waits for the program's exit, reports it, and restarts it, until the uplink is not needed or exits too often.
fn watch(
    mut tool: Tool,
    mut keeper: UplinkProcess,
    running: &Mutex<UplinkState>,
    wanted: &Receiver<()>,
    start: impl Fn() -> StartResult,
) {
    let is_over = || lock(running).stopped;
    let mut tries = 0;
    loop {
        let began = Instant::now();
        let _ = keeper.process.wait();
        if is_over() {
            return;
        }
        let why = match keeper.error_line() {
            Some(words) => format!("{} has ended: `{words}`", tool.name()),
            None => format!("{} has ended", tool.name()),
        };
        send_event(&NetworkEvent::UplinkLost { why });
        if began.elapsed() > STABLE_TIME {
            tries = 0;
        }
        keeper = loop {
            tries += 1;
            if tries > MAX_RESTARTS {
                send_event(&NetworkEvent::UplinkGone { why: format!("it has ended {MAX_RESTARTS} times") });
                return;
            }
            let pause = if tries == 1 { Duration::ZERO } else { Duration::from_secs(1 << (tries - 2)) };
            if wanted.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            match start() {
                Ok((by, mut begun)) => {
                    let mut running = lock(running);
                    if running.stopped {
                        return;
                    }
                    running.stdin = begun.process.stdin.take();
                    tool = by;
                    break begun;
                }
                Err(why) if tries == MAX_RESTARTS => {
                    send_event(&NetworkEvent::UplinkGone { why });
                    return;
                }
                Err(_) => {}
            }
        };
        send_event(&NetworkEvent::UplinkRestored { by: tool.name().to_owned() });
    }
}
