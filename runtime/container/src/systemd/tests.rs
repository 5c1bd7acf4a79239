//! The calls to systemd, with a fake systemd; tests/runtime/test_systemd.py uses the real one.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::message::{ERROR, FIXED_HEADER_SIZE, METHOD_CALL, METHOD_RETURN, Message, SIGNAL};
use super::*;

/// The timeouts for a fake that does not answer, and for one that does.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(30);
const JOB: &str = "/org/freedesktop/systemd1/job/1";

/// The reaction of the fake systemd to a call.
#[derive(Clone, Copy, PartialEq)]
enum Behavior {
    /// Carries out the call; a job has this result.
    Ends(&'static str),
    /// Says `JobRemoved` before it answers.
    EndsFirst,
    /// Answers this method by an error, the first time or always.
    Refuses(&'static str, &'static str, bool),
    /// Does not answer this method.
    Hangs(&'static str),
    /// Closes at this method.
    Closes(&'static str),
    /// Rejects every user.
    TakesNobody,
    /// Sends bytes that are not a message.
    Babbles,
}

/// A fake systemd at an address, and the calls it got.
struct FakeServer {
    directory: tempfile::TempDir,
    timeout: Duration,
    requests: Receiver<String>,
}

impl FakeServer {
    fn new(does: Behavior) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = UnixListener::bind(directory.path().join("bus")).expect("a socket");
        let (tell, requests) = channel();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let _ = serve(stream, does, &tell);
            }
        });
        let timeout = if matches!(does, Behavior::Hangs(_)) { SHORT } else { LONG };
        Self { directory, timeout, requests }
    }

    fn connect(&self, bus: bool) -> Result<Systemd> {
        Systemd::connect_first(&[Address::at(self.directory.path().join("bus"), bus)], false, self.timeout)
    }

    fn requests(&self) -> String {
        self.requests.try_iter().map(|line| line + "\n").collect()
    }
}

fn serve(mut stream: UnixStream, does: Behavior, tell: &Sender<String>) -> std::io::Result<()> {
    let greeting = b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
    let mut came = vec![0; greeting.len()];
    stream.read_exact(&mut came)?;
    assert_eq!(came, greeting);
    let taken: &[u8] =
        if does == Behavior::TakesNobody { b"REJECTED EXTERNAL\r\n" } else { b"DATA\r\nOK 1\r\n" };
    stream.write_all(taken)?;
    let mut refused = false;
    loop {
        let mut bytes = vec![0; FIXED_HEADER_SIZE];
        stream.read_exact(&mut bytes)?;
        let whole = Message::length(&bytes).expect("a message");
        bytes.resize(whole, 0);
        stream.read_exact(&mut bytes[FIXED_HEADER_SIZE..])?;
        let call = Message::decode(&bytes).expect("a message");
        assert_eq!(call.kind, METHOD_CALL);
        let member = call.member.as_str();
        if does == Behavior::Babbles {
            stream.write_all(&[b'?'; 64])?;
            continue;
        }
        if member != "Get" {
            let _ = tell.send(format!("{member}({}) {}", call.body.signature, words(&call.body.bytes)));
        }
        let answer = |kind, texts: &[&str]| Message {
            kind,
            serial: 1,
            reply_serial: Some(call.serial),
            body: texts.iter().fold(Body::default(), |body, one| body.with_value(&text(one))),
            ..Message::default()
        };
        let removed = |result| Message {
            kind: SIGNAL,
            serial: 2,
            member: "JobRemoved".to_owned(),
            body: Body::default()
                .with_value(&Value::Uint32(1))
                .with_value(&text(JOB))
                .with_value(&text("u"))
                .with_value(&text(result)),
            ..Message::default()
        };
        let job = matches!(member, "StartTransientUnit" | "StopUnit");
        let mut send = |message: Message| stream.write_all(&message.encode(""));
        match does {
            Behavior::Closes(method) if method == member => return Ok(()),
            Behavior::Hangs(method) if method == member => {}
            Behavior::Refuses(method, name, always) if method == member && (always || !refused) => {
                refused = true;
                send(Message { error: name.to_owned(), ..answer(ERROR, &["It says why."]) })?;
            }
            _ if member == "Get" && call.body.texts()[1] == "Version" => {
                send(answer(METHOD_RETURN, &["252.38-1"]))?;
            }
            _ if member == "Get" => send(answer(METHOD_RETURN, &["/user.slice/own"]))?,
            Behavior::EndsFirst if job => {
                send(removed("done"))?;
                send(answer(METHOD_RETURN, &[JOB]))?;
            }
            _ if job => {
                send(answer(METHOD_RETURN, &[JOB]))?;
                // Others' jobs end too.
                send(Message { body: Body::default().with_value(&Value::Uint32(9)), ..removed("done") })?;
                send(removed(if let Behavior::Ends(result) = does { result } else { "done" }))?;
            }
            _ => send(answer(METHOD_RETURN, &[]))?,
        }
    }
}

/// The readable parts of bytes: three letters or more.
fn words(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let words = bytes.split(|byte| !plain(byte)).filter(|word| word.len() > 2);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
}

fn unit() -> Unit {
    Unit::of(Some("machine.slice:jobc:demo"), "demo", false).expect("a unit")
}

/// The result of starting a unit, and the calls to systemd.
fn check(does: Behavior) -> String {
    let fake = FakeServer::new(does);
    let properties = [("MemoryMax".to_owned(), Value::Uint64(4096))];
    let came =
        fake.connect(false).and_then(|mut systemd| systemd.start_unit_body(&unit(), "demo", 77, &properties));
    let output = match came {
        Ok(()) => "made".to_owned(),
        Err(error) => format!("{error}\n= {}", error.advice().unwrap_or_default()),
    };
    format!("{output}\n{}", fake.requests())
}

#[test]
fn a_unit_is_made_with_what_it_is_to_have() {
    insta::assert_snapshot!(check(Behavior::Ends("done")), @"
    made
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-demo.scope replace Description jobc container demo DefaultDependencies MemoryAccounting CPUAccounting IOAccounting TasksAccounting Slice machine.slice Delegate PIDs CollectMode inactive-or-failed MemoryMax
    ");
    assert_eq!(check(Behavior::EndsFirst).lines().next(), Some("made"));
    let fake = FakeServer::new(Behavior::Ends("done"));
    let systemd = fake.connect(false).expect("it is there");
    assert_eq!((systemd.group(), systemd.version()), (Path::new("user.slice/own"), 252));
}

#[test]
fn a_bus_is_greeted_and_gets_its_match_rules() {
    let fake = FakeServer::new(Behavior::Ends("done"));
    let mut systemd = fake.connect(true).expect("it is there");
    systemd.set_properties(&unit(), &[("TasksMax".to_owned(), Value::Uint64(5))]).expect("set");
    systemd.set_properties(&unit(), &[]).expect("nothing to set");
    systemd.attach(&unit(), "", 78).expect("attached");
    systemd.attach(&unit(), "/jobc/train.1/main-0", 78).expect("attached");
    systemd.stop(&unit()).expect("stopped");
    systemd.reset_failed(&unit());
    insta::assert_snapshot!(fake.requests(), @"
    Hello() 
    AddMatch(s) type='signal',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'
    Subscribe() 
    SetUnitProperties(sba(sv)) jobc-demo.scope TasksMax
    AttachProcessesToUnit(ssau) jobc-demo.scope
    AttachProcessesToUnit(ssau) jobc-demo.scope /jobc/train.1/main-0
    StopUnit(ss) jobc-demo.scope replace
    ResetFailedUnit(s) jobc-demo.scope
    ");
}

#[test]
fn a_scope_is_made_with_a_group_to_divide() {
    let made = |does| {
        let fake = FakeServer::new(does);
        let unit = Unit::application("train.1");
        let came =
            fake.connect(false).and_then(|mut systemd| systemd.start_scope(&unit, "jobc job train.1", 77));
        (came.map_err(|error| (error.kind, error.to_string())), fake.requests())
    };
    let (came, requests) = made(Behavior::Ends("done"));
    assert_eq!(came, Ok(()));
    insta::assert_snapshot!(requests, @"
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-train.1.scope replace Description jobc job train.1 Slice app.slice Delegate TasksMax PIDs CollectMode inactive-or-failed
    ");
    // The name is taken: another is tried.
    let (came, _) =
        made(Behavior::Refuses("StartTransientUnit", "org.freedesktop.systemd1.UnitExists", true));
    let why = "systemd does not make the unit `jobc-train.1.scope`: It says why";
    assert_eq!(came, Err((Kind::State, why.to_owned())));
}

#[test]
fn what_goes_wrong_is_reported() {
    insta::assert_snapshot!(check(Behavior::Ends("failed")), @r#"
    systemd does not make the unit `jobc-demo.scope`: the job for `jobc-demo.scope` ended as `failed`
    = 
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-demo.scope replace Description jobc container demo DefaultDependencies MemoryAccounting CPUAccounting IOAccounting TasksAccounting Slice machine.slice Delegate PIDs CollectMode inactive-or-failed MemoryMax
    "#);
    insta::assert_snapshot!(check(Behavior::Hangs("StartTransientUnit")), @r#"
    systemd does not make the unit `jobc-demo.scope`: no reply within 1 s
    = 
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-demo.scope replace Description jobc container demo DefaultDependencies MemoryAccounting CPUAccounting IOAccounting TasksAccounting Slice machine.slice Delegate PIDs CollectMode inactive-or-failed MemoryMax
    "#);
    insta::assert_snapshot!(check(Behavior::Closes("StartTransientUnit")), @r#"
    systemd does not make the unit `jobc-demo.scope`: it closed the connection
    = 
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-demo.scope replace Description jobc container demo DefaultDependencies MemoryAccounting CPUAccounting IOAccounting TasksAccounting Slice machine.slice Delegate PIDs CollectMode inactive-or-failed MemoryMax
    "#);
    insta::assert_snapshot!(check(Behavior::Hangs("Get")), @r#"
    systemd does not read its property `ControlGroup`: no reply within 1 s
    = let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd
    "#);
    insta::assert_snapshot!(check(Behavior::TakesNobody), @r#"
    cannot reach systemd: it rejects this user
    = let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd
    "#);
    insta::assert_snapshot!(check(Behavior::Babbles), @r#"
    systemd does not read its property `ControlGroup`: its reply cannot be parsed
    = let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd
    "#);
    let polkit = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired";
    insta::assert_snapshot!(check(Behavior::Refuses("StartTransientUnit", polkit, true)), @r#"
    systemd does not make the unit `jobc-demo.scope`: It says why
    = permission denied for this user; use the user's own systemd (log in with `XDG_RUNTIME_DIR` set), or run it as root
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-demo.scope replace Description jobc container demo DefaultDependencies MemoryAccounting CPUAccounting IOAccounting TasksAccounting Slice machine.slice Delegate PIDs CollectMode inactive-or-failed MemoryMax
    "#);
}

#[test]
fn a_unit_that_failed_gives_its_name_back() {
    let exists = "org.freedesktop.systemd1.UnitExists";
    let output = check(Behavior::Refuses("StartTransientUnit", exists, false));
    let methods: Vec<&str> = output.lines().filter_map(|line| line.split('(').next()).collect();
    assert_eq!(methods, ["made", "StartTransientUnit", "ResetFailedUnit", "StartTransientUnit"]);
    insta::assert_snapshot!(check(Behavior::Refuses("StartTransientUnit", exists, true)), @r#"
    config.json: /linux/cgroupsPath: systemd does not make the unit `jobc-demo.scope`: It says why
    = a container or service of that name exists; end it, or use another unit name
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-demo.scope replace Description jobc container demo DefaultDependencies MemoryAccounting CPUAccounting IOAccounting TasksAccounting Slice machine.slice Delegate PIDs CollectMode inactive-or-failed MemoryMax
    ResetFailedUnit(s) jobc-demo.scope
    StartTransientUnit(ssa(sv)a(sa(sv))) jobc-demo.scope replace Description jobc container demo DefaultDependencies MemoryAccounting CPUAccounting IOAccounting TasksAccounting Slice machine.slice Delegate PIDs CollectMode inactive-or-failed MemoryMax
    "#);
}

#[test]
fn a_unit_that_is_gone_is_ended() {
    let fake = FakeServer::new(Behavior::Refuses("StopUnit", "org.freedesktop.systemd1.NoSuchUnit", true));
    fake.connect(false).and_then(|mut systemd| systemd.stop(&unit())).expect("no error");
}

#[test]
fn without_a_listener_the_error_has_a_help() {
    let directory = tempfile::tempdir().expect("a directory");
    let nobody = Address::at(directory.path().join("bus"), false);
    let output = |user| {
        let error =
            Systemd::connect_first(std::slice::from_ref(&nobody), user, SHORT).expect_err("nobody is there");
        format!("{error}\n= {}", error.hints.join("\n= "))
    };
    insta::assert_snapshot!(output(false), @r#"
    cannot reach systemd: no such file or directory (ENOENT)
    = let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd
    "#);
    insta::assert_snapshot!(output(true), @r#"
    cannot reach this user's systemd: no such file or directory (ENOENT)
    = log in by ssh, at a terminal or with machinectl shell, or have `loginctl enable-linger` start it, and set `XDG_RUNTIME_DIR`
    = let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd
    "#);
    // The next address counts where the first is dead.
    let fake = FakeServer::new(Behavior::Ends("done"));
    let there = Address::at(fake.directory.path().join("bus"), false);
    Systemd::connect_first(&[nobody, there], false, LONG).expect("the second");
}

#[test]
fn addresses_as_variables_hold_them() {
    let read = |text: &str| {
        let of = |address: &Address| match &address.socket {
            address::Socket::Path(path) => path.display().to_string(),
            address::Socket::Abstract(name) => format!("@{}", String::from_utf8_lossy(name)),
        };
        Address::read(text).iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(read("unix:path=/run/user/7/bus,guid=1"), ["/run/user/7/bus"]);
    assert_eq!(read("tcp:host=a;unix:abstract=/tmp/x%20y;unix:guid=2,path=/b"), ["@/tmp/x y", "/b"]);
    assert!(read("").is_empty() && read("unix:path=%zz").is_empty() && read("unix:tmpdir=/tmp").is_empty());
}
