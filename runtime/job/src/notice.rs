//! Notices of a job: its supervisor starts a process for each, which sends it and ends within a bound.
//!
//! The job waits for none of them. How one went is an event of the job.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jobc_schema::notice::{Notice, NoticeEvent};
use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::syscall::linux::Linux;
use jobc_sys::syscall::{Kernel as _, Prctl};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::directory::Directory;
use crate::event::{Event, EventLog, Kind as EventKind};
use crate::provision::http;
use crate::provision::program;
use crate::secrets::Secrets;
use jobc_place::state::JobState;
use jobc_place::verdict::Verdict;
use jobc_sys::id::JobId;

/// The hidden command that sends a notice: its standard input is an [`Order`].
pub const COMMAND: &str = "send-notice";

/// How long a server, a mail program or a command may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The notices of a job, and which were sent.
#[derive(Debug)]
pub(crate) struct Notices {
    all: Vec<(Notice, Receiver)>,
    directory: Directory,
    working_directory: PathBuf,
    started: bool,
    /// The last attempt that was said to be stalled.
    stalled: u32,
}

/// Who gets a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Receiver {
    /// The value of the secret: an address.
    Webhook(String),
    Email(String),
    Run(String),
}

/// A notice to be sent.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    directory: Directory,
    working_directory: PathBuf,
    on: NoticeEvent,
    /// The receiver for people: without the address of a webhook, which is a secret.
    to: String,
    receiver: Receiver,
    message: Message,
}

/// What a notice says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    text: String,
    job: String,
    state: String,
    explanation: String,
    host: String,
}

impl Notices {
    /// The notices of a plan; an address of a webhook is the value of a secret.
    pub(crate) fn new(
        notices: &[Notice],
        secrets: &Secrets,
        directory: &Directory,
        working_directory: PathBuf,
    ) -> Result<Self> {
        let receiver = |notice: &Notice| {
            let receiver = match (&notice.webhook, &notice.email, &notice.run) {
                (Some(secret), ..) => Receiver::Webhook(address(secret, secrets)?),
                (_, Some(address), _) => Receiver::Email(address.clone()),
                (.., run) => Receiver::Run(run.clone().unwrap_or_default()),
            };
            Ok((notice.clone(), receiver))
        };
        let all = notices.iter().map(receiver).collect::<Result<_>>()?;
        Ok(Self { all, directory: directory.clone(), working_directory, started: false, stalled: 0 })
    }

    /// Sends what an event of the job is a reason for.
    pub(crate) fn observe(&mut self, event: &Event) {
        if self.all.is_empty() {
            return;
        }
        let Some((on, state)) = self.reason(event) else { return };
        let message = message(&self.directory.id, event, on, state);
        for (notice, receiver) in self.all.iter().filter(|(notice, _)| notice.on.contains(&on)) {
            let order = Order {
                directory: self.directory.clone(),
                working_directory: self.working_directory.clone(),
                on,
                to: shown(notice),
                receiver: receiver.clone(),
                message: message.clone(),
            };
            if let Err(error) = start(&order) {
                log(&order, Some(&describe_io(&error)));
            }
        }
    }

    fn reason(&mut self, event: &Event) -> Option<(NoticeEvent, &'static str)> {
        match event.event {
            EventKind::Started if !std::mem::replace(&mut self.started, true) => {
                Some((NoticeEvent::Started, JobState::Running.as_str()))
            }
            EventKind::Ended if event.task.is_none() => {
                match serde_json::from_value(event.detail["state"].clone()).ok()? {
                    JobState::Succeeded => Some((NoticeEvent::Succeeded, JobState::Succeeded.as_str())),
                    state @ (JobState::Failed | JobState::TimedOut) => {
                        Some((NoticeEvent::Failed, state.as_str()))
                    }
                    _ => None,
                }
            }
            // All tasks of a gang may stall at once, and end for it.
            EventKind::Stalled | EventKind::Ended
                if event.event == EventKind::Stalled
                    || event.detail["verdict"]["kind"] == Verdict::Stall.as_str() =>
            {
                let attempt = event.attempt.unwrap_or(1);
                (std::mem::replace(&mut self.stalled, attempt) != attempt)
                    .then_some((NoticeEvent::Stalled, JobState::Running.as_str()))
            }
            _ => None,
        }
    }
}

fn address(name: &str, secrets: &Secrets) -> Result<String> {
    let wrong = |why: &str| Error::new(Kind::Config, format!("the webhook of the secret `{name}` {why}"));
    let url = std::str::from_utf8(secrets.get(name)?.line()).map_err(|_| wrong("is not text"))?;
    if http::scheme(url).is_ok_and(|scheme| scheme != "file") {
        return Ok(url.to_owned());
    }
    Err(wrong("is not an address of https").help("put an address into the secret, such as `https://…`"))
}

fn shown(notice: &Notice) -> String {
    match (&notice.webhook, &notice.email) {
        (Some(secret), _) => format!("webhook `{secret}`"),
        (_, Some(address)) => address.clone(),
        _ => "command".to_owned(),
    }
}

/// What each notice says of an end, also the one that `--notify` shows: `failed: main-0: exit 3`.
pub fn sentence(state: &str, explanation: &str) -> String {
    if explanation.starts_with(state) { explanation.to_owned() } else { format!("{state}: {explanation}") }
}

fn message(job: &JobId, event: &Event, on: NoticeEvent, state: &str) -> Message {
    let text = |key: &str| event.detail[key].as_str().map(str::to_owned);
    let explanation = match &event.task {
        Some(task) if on == NoticeEvent::Stalled => {
            let why = text("why").or_else(|| text("explanation"));
            format!("{task}: {}", why.unwrap_or_else(|| on.as_str().to_owned()))
        }
        _ => text("explanation").unwrap_or_else(|| on.as_str().to_owned()),
    };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // A time limit is a failure, and says so itself.
    let what = if explanation.starts_with(state) {
        explanation.clone()
    } else {
        sentence(on.as_str(), &explanation)
    };
    Message {
        text: format!("{job} on {host}: {what}"),
        job: job.to_string(),
        state: state.to_owned(),
        explanation,
        host,
    }
}

/// Starts the process that sends a notice.
fn start(order: &Order) -> std::io::Result<()> {
    let mut input = File::from(memfd_create(c"jobc-notice", MemfdFlags::CLOEXEC)?);
    input.write_all(&serde_json::to_vec(order)?)?;
    input.rewind()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).stdin(input).stdout(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    // Until the job ends, what has ended is collected; then it is the child of another process.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Becomes the process that sends a notice.
pub fn main(_words: impl Iterator<Item = OsString>) -> ExitCode {
    // It has a secret.
    let _ = Linux.prctl(Prctl::NotDumpable);
    let mut text = Vec::new();
    let read = std::io::stdin().read_to_end(&mut text);
    let Some(order) = read.ok().and_then(|_| serde_json::from_slice::<Order>(&text).ok()) else {
        return ExitCode::FAILURE;
    };
    let sent = send(&order);
    log(&order, sent.as_ref().err().map(ToString::to_string).as_deref());
    ExitCode::from(u8::from(sent.is_err()))
}

/// Writes how a notice went to the events of the job, if it is still there.
fn log(order: &Order, error: Option<&str>) {
    if !order.directory.events_file().exists() {
        return;
    }
    let mut detail = json!({"on": order.on, "to": order.to});
    if let Some(error) = error {
        detail["error"] = error.into();
    }
    let _ =
        EventLog::open(&order.directory).map(|mut log| log.push(&Event::of_job(EventKind::Notified, detail)));
}

fn send(order: &Order) -> Result<()> {
    let message = &order.message;
    match &order.receiver {
        Receiver::Webhook(url) => {
            let body = body(order.on, message).to_string();
            let mut config = String::new();
            let timeout = TIMEOUT.as_secs().to_string();
            for (name, value) in [
                ("url", url.as_str()),
                ("data-raw", &body),
                ("header", "Content-Type: application/json"),
                ("proto", "=https,http"),
                ("connect-timeout", "10"),
                ("max-time", &timeout),
                ("user-agent", concat!("jobc/", env!("CARGO_PKG_VERSION"))),
            ] {
                config.push_str(&format!("{name} = {}\n", http::quoted(value)));
            }
            config.push_str("fail\nsilent\nshow-error\ngloboff\n");
            let mut command = Command::new("curl");
            command.args(["-q", "--config", "-"]).env("LC_ALL", "C");
            run(&mut command, config.as_bytes())
        }
        Receiver::Email(address) => {
            let subject: String =
                message.text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
            let mail = format!(
                "To: {address}\nSubject: jobc: {subject}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n{}\n",
                message.text
            );
            let mut command = Command::new("sendmail");
            let path = std::env::var("PATH").unwrap_or_default();
            // Where it is, and users' PATH often is not.
            command.env("PATH", format!("{path}:/usr/sbin:/usr/lib"));
            command.args(["-i", "--", address]);
            run(&mut command, mail.as_bytes())
        }
        Receiver::Run(line) => {
            let mut command = Command::new("sh");
            command.args(["-c", line]).current_dir(&order.working_directory);
            command.env("JOBC_NOTICE", &message.text).env("JOBC_NOTICE_ON", order.on.as_str());
            command.env("JOBC_JOB", &message.job).env("JOBC_STATE", &message.state);
            run(&mut command, b"")
        }
    }
}

/// The request: `text` is read by Slack, Mattermost and Teams, `content` by Discord.
fn body(on: NoticeEvent, message: &Message) -> Value {
    json!({
        "text": message.text, "content": message.text, "on": on, "job": message.job, "state": message.state,
        "explanation": message.explanation, "host": message.host,
    })
}

fn run(command: &mut Command, input: &[u8]) -> Result<()> {
    let began = Instant::now();
    let is_late = AtomicBool::new(false);
    let mut step = || is_late.store(began.elapsed() >= TIMEOUT, Ordering::Relaxed);
    let ended = program::run(command, input, &is_late, &mut step);
    if is_late.load(Ordering::Relaxed) {
        return Err(Error::new(Kind::System, format!("timed out after {}s", TIMEOUT.as_secs())));
    }
    let ended = ended?;
    if ended.status.success() {
        return Ok(());
    }
    let words = ended.stderr.lines().next_back().filter(|line| !line.is_empty());
    let why = words.map_or_else(|| ended.status.to_string(), str::to_owned);
    // `curl: (7) Failed to connect to ...`
    let why =
        why.strip_prefix("curl: (").and_then(|rest| rest.split_once(") ")).map_or(&*why, |(_, why)| why);
    Err(Error::new(Kind::System, why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices(directory: &Directory) -> Notices {
        let all = serde_json::from_value::<Vec<Notice>>(json!([{"on": ["failed"], "run": "true"}])).unwrap();
        Notices::new(&all, &Secrets::default(), directory, PathBuf::new()).unwrap()
    }

    #[test]
    fn each_reason_is_given_once() {
        let id = JobId { name: "train".to_owned(), run: 2 };
        let directory = Directory { id, state: PathBuf::new(), record: PathBuf::new() };
        let mut notices = notices(&directory);
        let task = "main-0".parse().unwrap();
        let of_task = |kind, detail| Event::of_task(kind, Clone::clone(&task), 1, detail);
        let ended =
            |state: &str| Event::of_job(EventKind::Ended, json!({"state": state, "explanation": state}));
        let started = of_task(EventKind::Started, json!({"pid": 1}));
        let stalled =
            of_task(EventKind::Ended, json!({"verdict": {"kind": "stall"}, "explanation": "killed"}));
        let mut on = |event: &Event| notices.reason(event).map(|(on, _)| on.as_str());
        assert_eq!((on(&started), on(&started)), (Some("started"), None));
        let reported = of_task(EventKind::Stalled, json!({"why": "no log line for 10m"}));
        assert_eq!((on(&reported), on(&stalled)), (Some("stalled"), None));
        assert_eq!(
            ["succeeded", "failed", "timed-out", "stopped"].map(|state| on(&ended(state))),
            [Some("succeeded"), Some("failed"), Some("failed"), None]
        );
        let failed = Event::of_job(EventKind::Ended, json!({"explanation": "main-0: exit 3"}));
        let text = |event, on, state| message(&directory.id, event, on, state).text;
        let host = message(&directory.id, &failed, NoticeEvent::Failed, "failed").host;
        assert_eq!(
            text(&failed, NoticeEvent::Failed, "failed"),
            format!("train.2 on {host}: failed: main-0: exit 3")
        );
        assert_eq!(text(&started, NoticeEvent::Started, "running"), format!("train.2 on {host}: started"));
        assert_eq!(
            text(&stalled, NoticeEvent::Stalled, "running"),
            format!("train.2 on {host}: stalled: main-0: killed")
        );
        assert_eq!(
            text(&reported, NoticeEvent::Stalled, "running"),
            format!("train.2 on {host}: stalled: main-0: no log line for 10m")
        );
    }
}
