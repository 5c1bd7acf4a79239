//! Real servers, and threads that probe.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use regex::bytes::Regex;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::*;
use jobc_sys::error::{Error, Kind};

/// This host; a command is a number of milliseconds that it takes, and an exit code.
struct LocalTasks {
    running: AtomicUsize,
    max: Arc<AtomicUsize>,
}

impl TaskAccess for LocalTasks {
    fn socket(&self, _task: TaskNumber) -> Result<(OwnedFd, IpAddr)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
        Ok((socket.expect("a socket"), Ipv4Addr::LOCALHOST.into()))
    }

    fn run(&self, _: TaskNumber, _: u32, arguments: &[String], within: Duration) -> Result<Option<Exit>> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.max.fetch_max(now, Ordering::SeqCst);
        let [time, code] = arguments else { return Err(Error::new(Kind::State, "container `x` is paused")) };
        let time = Duration::from_millis(time.parse().expect("a time"));
        thread::sleep(time.min(within));
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok((time <= within).then(|| Exit::Code(code.parse().expect("a code"))))
    }
}

fn prober() -> (Prober, mpsc::Receiver<Report>, Arc<AtomicUsize>) {
    let (sender, receiver) = mpsc::channel();
    let max = Arc::new(AtomicUsize::new(0));
    let place = LocalTasks { running: AtomicUsize::new(0), max: Arc::clone(&max) };
    // The receiver may be gone when the last report arrives.
    let report = move |report| drop(sender.send(report));
    (Prober::new(Box::new(place), Box::new(report)), receiver, max)
}

fn watched(task: TaskNumber, probe: Probe) -> ReadinessCheck {
    let (millis, seconds) = (Duration::from_millis, Duration::from_secs);
    ReadinessCheck {
        task,
        attempt: 1,
        probe,
        delay: millis(0),
        every: millis(20),
        try_timeout: millis(300),
        timeout: seconds(20),
        keep: false,
    }
}

fn next(reports: &mpsc::Receiver<Report>) -> Report {
    reports.recv_timeout(Duration::from_secs(30)).expect("a report")
}

/// Why a task was not ready in time, after one try.
fn why(prober: &Prober, reports: &mpsc::Receiver<Report>, probe: Probe) -> String {
    let (every, timeout) = (Duration::from_hours(1), Duration::from_millis(700));
    prober.watch(ReadinessCheck { every, timeout, ..watched(0, probe) });
    next(reports).ready.expect_err("not ready")
}

fn command(arguments: &[&str]) -> Probe {
    Probe::Exec(arguments.iter().map(|&word| word.to_owned()).collect())
}

/// A server that answers each connection with a text, once it has received something.
fn server(answer: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a visitor");
            let mut received = [0; 512];
            let count = stream.read(&mut received).unwrap_or(0);
            let received = String::from_utf8_lossy(&received[..count]).into_owned();
            assert!(
                count == 0 || received.starts_with("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:"),
                "{received}"
            );
            if answer == "nothing" {
                thread::sleep(Duration::from_mins(1));
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// A port of this host without a listener.
fn closed() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn a_port_is_tried_until_somebody_listens() {
    let (prober, reports, _) = prober();
    let port = closed();
    prober.watch(watched(3, Probe::Port(port)));
    assert!(reports.recv_timeout(Duration::from_millis(200)).is_err(), "nobody listens yet");
    let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port");
    assert_eq!(next(&reports), Report { task: 3, attempt: 1, ready: Ok(()) });
}

#[test]
fn a_page_is_there_below_status_400() {
    let (prober, reports, _) = prober();
    let page = |port| Probe::Http { port, path: "/healthz".to_owned() };
    for answer in ["HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.0 302 Found\r\nLocation: /\r\n\r\n"] {
        prober.watch(watched(1, page(server(answer))));
        assert_eq!(next(&reports).ready, Ok(()), "{answer}");
    }
    let all: String = ["HTTP/1.1 503 Service Unavailable\r\n\r\n", "SSH-2.0-x\r\n", "", "nothing"]
        .into_iter()
        .map(|answer| {
            let port = server(answer);
            let why = why(&prober, &reports, page(port)).replace(&port.to_string(), "PORT");
            format!("{answer:?}: {why}\n")
        })
        .collect();
    let port = closed();
    let nobody = why(&prober, &reports, page(port)).replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(all + "nobody: " + &nobody);
}

#[test]
fn a_command_exits_with_0() {
    let (prober, reports, _) = prober();
    prober.watch(watched(1, command(&["0", "0"])));
    assert_eq!(next(&reports).ready, Ok(()));
    let commands: [&[&str]; 3] = [&["0", "3"], &["10000", "0"], &["does not run"]];
    let all: Vec<String> = commands
        .iter()
        .map(|words| format!("{words:?}: {}", why(&prober, &reports, command(words))))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_line_is_written() {
    let (prober, reports, _) = prober();
    prober.watch(watched(1, Probe::Log(Regex::new("^ready$").expect("a pattern"))));
    prober.line(1, 1, b"not ready");
    prober.line(1, 1, b"ready");
    assert_eq!(reports.try_recv(), Ok(Report { task: 1, attempt: 1, ready: Ok(()) }));
}

#[test]
fn many_slow_tries_take_few_threads() {
    let (prober, reports, max) = prober();
    (0..200).for_each(|task| prober.watch(watched(task, command(&["20", "0"]))));
    let mut seen: Vec<_> = (0..200).map(|_| next(&reports).task).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    let max = max.load(Ordering::SeqCst);
    assert!((2..=MAX_PROBES).contains(&max), "{max} at once");
    assert!(lock(&prober.shared.state).threads <= MAX_PROBES);
}

#[test]
fn threads_end_with_the_prober() {
    let (prober, reports, _) = prober();
    (0..8).for_each(|task| prober.watch(watched(task, command(&["1", "0"]))));
    (0..8).for_each(|_| drop(next(&reports)));
    let shared = Arc::clone(&prober.shared);
    drop(prober);
    let began = Instant::now();
    while lock(&shared.state).threads > 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "some thread stays");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn nothing_is_tried_while_the_tasks_are_frozen() {
    let (prober, reports, max) = prober();
    prober.pause();
    prober.watch(watched(1, command(&["0", "0"])));
    assert!(reports.recv_timeout(Duration::from_millis(150)).is_err());
    assert_eq!(max.load(Ordering::SeqCst), 0);
    prober.resume();
    assert_eq!(next(&reports).ready, Ok(()));
}
