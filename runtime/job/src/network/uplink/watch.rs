//! An uplink program that exits while its job runs is restarted, up to a number of times, and each time is reported:
//! otherwise tasks that fetch or report something would fail for no visible reason.

use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Keeper, Started, Tool};
use crate::network::news::{Change, tell};

/// How often a program that ended is started again before the job has to do without: after none, one, two, four and
/// eight seconds.
const TRIES: u32 = 5;

/// One that has run so long starts as often again.
const LONG: Duration = Duration::from_mins(10);

/// An uplink, as long as there is one. It is stopped when this is dropped.
#[derive(Debug)]
pub(in crate::network) struct Uplink {
    /// Dropped, it wakes the thread that waits between two tries.
    given_up: Option<Sender<()>>,
    running: Arc<Mutex<Running>>,
    watch: Option<JoinHandle<()>>,
}

/// The state that the watching thread shares with the one that stops it.
#[derive(Debug)]
struct Running {
    /// The standard input of the program's keeper, which ends when this is closed.
    line: Option<ChildStdin>,
    /// The uplink is not needed any more.
    over: bool,
}

impl Uplink {
    /// Watches a running program and restarts it when it exits; the caller's thread is in the host's network.
    pub(super) fn new((tool, keeper): (Tool, Keeper), start: impl Fn() -> Started + Send + 'static) -> Self {
        let (given_up, wanted) = channel();
        let mut keeper = keeper;
        let line = keeper.process.stdin.take();
        let running = Arc::new(Mutex::new(Running { line, over: false }));
        let watched = Arc::clone(&running);
        let watch = std::thread::spawn(move || watch(tool, keeper, &watched, &wanted, start));
        Self { given_up: Some(given_up), running, watch: Some(watch) }
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        drop(self.given_up.take());
        let line = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.over = true;
            running.line.take()
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
    mut keeper: Keeper,
    running: &Mutex<Running>,
    wanted: &Receiver<()>,
    start: impl Fn() -> Started,
) {
    let is_over = || running.lock().unwrap_or_else(PoisonError::into_inner).over;
    let mut tries = 0;
    loop {
        let began = Instant::now();
        let _ = keeper.process.wait();
        if is_over() {
            return;
        }
        let why = match keeper.last_words() {
            Some(words) => format!("{} has ended: `{words}`", tool.name()),
            None => format!("{} has ended", tool.name()),
        };
        tell(&Change::WayOutLost { why });
        if began.elapsed() > LONG {
            tries = 0;
        }
        keeper = loop {
            tries += 1;
            if tries > TRIES {
                tell(&Change::WayOutGone { why: format!("it has ended {TRIES} times") });
                return;
            }
            let pause = if tries == 1 { Duration::ZERO } else { Duration::from_secs(1 << (tries - 2)) };
            if wanted.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            match start() {
                Ok((by, mut begun)) => {
                    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
                    if running.over {
                        return;
                    }
                    running.line = begun.process.stdin.take();
                    tool = by;
                    break begun;
                }
                Err(why) if tries == TRIES => {
                    tell(&Change::WayOutGone { why });
                    return;
                }
                Err(_) => {}
            }
        };
        tell(&Change::WayOutRestored { by: tool.name().to_owned() });
    }
}
