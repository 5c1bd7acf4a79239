//! Waits until the memory of cards is free. The driver gives back that of killed processes some seconds after their end,
//! and an attempt that starts before that fails for lack of memory.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jobc_nvml::UsageSample;

use super::host::Host;
use super::nvml::watch::NvmlWatch;

/// A display server holds as much: so little does not tell of a killed process.
const LITTLE: u64 = 512 << 20;

/// How long to wait at most, as NVRx does.
const LONGEST: Duration = Duration::from_secs(50);

/// How often to ask.
const INTERVAL: Duration = Duration::from_millis(500);

/// How often to look whether there is an answer.
const GLANCE: Duration = Duration::from_millis(20);

/// Waits until processes have little memory of these cards, by their UUIDs; returns the bytes that they still have after
/// the longest wait. Where nothing can be asked, nothing is waited for.
pub(crate) fn wait(machine: &Host, cards: &[String], stopped: &AtomicBool) -> Option<u64> {
    let mut watch = NvmlWatch::start(machine, 0).ok().flatten()?;
    wait_by(&mut watch, cards, LONGEST, stopped).ok().flatten()
}

fn wait_by(
    watch: &mut NvmlWatch,
    cards: &[String],
    longest: Duration,
    stopped: &AtomicBool,
) -> io::Result<Option<u64>> {
    let until = Instant::now() + longest;
    loop {
        watch.request()?;
        let sample = loop {
            if stopped.load(Ordering::Acquire) || Instant::now() >= until {
                return Ok(None);
            }
            match watch.receive()? {
                Some(sample) => break sample,
                None => std::thread::sleep(GLANCE),
            }
        };
        let held = held(&sample, cards);
        if held < LITTLE {
            return Ok(None);
        }
        if Instant::now() + INTERVAL >= until {
            return Ok(Some(held));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// The bytes of the card of which processes have the most.
fn held(sample: &UsageSample, cards: &[String]) -> u64 {
    let of_card = |card: &String| {
        let there = sample.processes.iter().filter(|(_, uuid, _)| uuid == card);
        there.filter_map(|(.., bytes)| *bytes).sum()
    };
    cards.iter().map(of_card).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A process that answers with the memory that a process has of a card, one number of GiB after another.
    fn waits(gibibytes: &str, card: &str, longest: Duration) -> (Option<u64>, Duration) {
        let script = format!(
            "for gib in {gibibytes}; do dd bs=1 count=1 of=/dev/null 2>/dev/null; echo '{{\"busy\": [], \"processes\": [[7, \"GPU-a\", '$((gib << 30))']]}}'; done; sleep 9"
        );
        let mut watch = NvmlWatch::spawn(Command::new("sh").args(["-c", &script])).unwrap();
        let begin = Instant::now();
        let held = wait_by(&mut watch, &[card.to_owned()], longest, &AtomicBool::new(false)).unwrap();
        (held, begin.elapsed())
    }

    #[test]
    fn memory_that_is_given_back_is_waited_for() {
        let (held, took) = waits("70 70 0", "GPU-a", Duration::from_secs(20));
        assert!(held.is_none() && took >= INTERVAL * 2, "{held:?} after {took:?}");
    }

    #[test]
    fn the_wait_is_bounded() {
        let (held, took) = waits("70 69 68 67 66 65 64 63", "GPU-a", INTERVAL * 3);
        assert!(held.is_some_and(|held| held > 60 << 30) && took < INTERVAL * 6, "{held:?} after {took:?}");
    }

    #[test]
    fn other_cards_and_a_stop_end_it_at_once() {
        assert_eq!(waits("70", "GPU-b", Duration::from_secs(20)).0, None);
        let mut watch = NvmlWatch::spawn(Command::new("sh").args(["-c", "sleep 9"])).unwrap();
        let stopped = AtomicBool::new(true);
        assert_eq!(wait_by(&mut watch, &[], Duration::from_secs(20), &stopped).unwrap(), None);
    }
}
