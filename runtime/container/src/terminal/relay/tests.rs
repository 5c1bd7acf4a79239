use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::pty::{grantpt, openpt, unlockpt};

use super::*;

/// A shell command on its own terminal, with a relay to two pipes.
struct Session {
    relay: Relay,
    child: std::process::Child,
    input: Option<std::io::PipeWriter>,
    output: std::io::PipeReader,
}

impl Session {
    fn of(command: &str) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("ours");
        let (read, input) = std::io::pipe().expect("a pipe");
        let (output, write) = std::io::pipe().expect("a pipe");
        let relay = Relay::between(master, read.into(), write.into()).expect("a relay");
        let side =
            || Stdio::from(relay.peer.as_ref().and_then(|peer| peer.try_clone().ok()).expect("its side"));
        let child = Command::new("setsid")
            .args(["--ctty", "sh", "-c", command])
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("a shell");
        Self { relay, child, input: Some(input), output }
    }

    /// Relays as the wait for a container does, until the command is gone or the time is over.
    fn relay(&mut self, time: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < time {
            let gone = self.child.try_wait().expect("ours").is_some();
            if gone {
                self.relay.finish();
                if self.relay.is_done() {
                    return true;
                }
            }
            let mut interests = self.relay.poll_fds();
            let time = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            let over = poll(&mut interests, Some(&time)).expect("poll") == 0;
            let ready = self.relay.ready(&interests);
            drop(interests);
            if over && self.relay.reminder_timeout().is_some() {
                self.relay.resend_end_of_input();
            }
            self.relay.step(ready);
        }
        false
    }

    fn output(self) -> String {
        drop(self.relay);
        let mut text = String::new();
        let mut output = self.output;
        output.read_to_string(&mut text).expect("text");
        text
    }
}

const LONG_TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn what_the_program_writes_last_arrives() {
    let mut session = Session::of("echo first; tty >/dev/null && echo a terminal; printf last");
    assert!(session.relay(LONG_TIMEOUT));
    assert_eq!(session.output(), "first\r\na terminal\r\nlast");
}

#[test]
fn the_end_of_our_input_is_read_as_an_end() {
    for (typed, read) in [("", ""), ("one\ntwo\n", "one,two,"), ("unfinished", "unfinished"), ("a\nb", "a,b")]
    {
        let mut session = Session::of("stty -echo; echo ready; cat | tr '\\n' ,");
        // Typed before the program looks, as a pipe's writer does.
        let mut input = session.input.take().expect("open");
        input.write_all(typed.as_bytes()).expect("room");
        drop(input);
        assert!(session.relay(LONG_TIMEOUT), "{typed:?}");
        let output = session.output();
        let (_, after) = output.split_once("ready\r\n").expect("it was ready");
        assert_eq!(after, read, "{typed:?}");
    }
}

/// A shell that edits lines takes the terminal out of the mode in which the kernel knows an end.
#[test]
fn the_end_of_our_input_lasts() {
    let mut session =
        Session::of("cat; cat; stty raw -echo; head -c 1 | od -An -tx1; sleep 0.1; head -c 1 | od -An -tx1");
    session.input = None;
    assert!(session.relay(LONG_TIMEOUT));
    let output = session.output();
    let read: Vec<&str> = output.split_whitespace().collect();
    // An end that came before the mode changed is shown as a zero.
    let [first, "04"] = read[..] else { panic!("{output}") };
    assert!(matches!(first, "00" | "04"), "{output}");
}

#[test]
fn much_goes_through_in_both_directions() {
    let mut session =
        Session::of("stty raw -echo; echo ready; head -c 300000 | wc -c; head -c 300000 /dev/zero");
    let mut input = session.input.take().expect("open");
    let mut output = session.output.try_clone().expect("a copy");
    let mut start = [0; 6];
    let reader = std::thread::spawn(move || {
        // Bytes typed before the terminal is raw would be taken for lines.
        output.read_exact(&mut start).expect("ready");
        let writer = std::thread::spawn(move || input.write_all(&vec![b'x'; 300_000]).map(|()| input));
        let mut rest = Vec::new();
        while rest.len() < 300_007 {
            let mut piece = [0; 8192];
            let count = output.read(&mut piece).expect("output");
            rest.extend_from_slice(&piece[..count]);
        }
        drop(writer.join().expect("no panic").expect("all taken"));
        rest
    });
    assert!(session.relay(LONG_TIMEOUT));
    let rest = reader.join().expect("no panic");
    assert_eq!(&rest[..7], b"300000\n");
    assert_eq!(rest.len(), 7 + 300_000);
}

#[test]
fn a_reader_that_left_hangs_the_terminal_up() {
    let mut session = Session::of("trap 'exit 3' HUP; while :; do echo line; sleep 0.01; done");
    session.output = std::io::pipe().expect("a pipe").0;
    assert!(session.relay(LONG_TIMEOUT));
    assert_eq!(session.child.wait().expect("ours").code(), Some(3));
}

#[test]
fn a_reader_that_waits_holds_nothing_else_up() {
    let mut session = Session::of("head -c 500000 /dev/zero");
    // Without a reader, the pipe and the buffer fill, and no step blocks.
    assert!(!session.relay(Duration::from_millis(300)));
    assert!(!session.relay.to_user.has_room());
    let mut output = session.output.try_clone().expect("a copy");
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        while all.len() < 500_000 {
            let mut piece = [0; 8192];
            let count = output.read(&mut piece).expect("output");
            all.extend_from_slice(&piece[..count]);
        }
        all.len()
    });
    assert!(session.relay(LONG_TIMEOUT));
    assert_eq!(reader.join().expect("no panic"), 500_000);
}
