//! Cgroups that systemd makes: a unit for each container, asked for by D-Bus.
//!
//! Where systemd is the first process the tree of cgroups is its own (systemd's "Control Group Interfaces"), and
//! callers such as podman want containers to be units of it. A scope begins with a process in it, so the container's
//! first one waits at its first step ([`Gate::Cgroup`](crate::child::report::Gate)) while systemd makes the scope
//! around it. Limits with a systemd property are also set as properties, so that systemd never undoes them; all are
//! written to the group's files besides, as without it.

mod address;
pub(crate) mod annotation;
mod bus;
mod marshal;
mod message;
mod unit;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use address::uses_user_manager;
use address::{Address, host_addresses, user_addresses};
use bus::{Bus, Failure};
use jobc_sys::error::{Error, Kind, Result, describe};
use message::Body;
pub use message::{Property, Value};
pub use unit::Unit;

/// systemd's name on a bus, its object, and the interface of that.
const SYSTEMD: (&str, &str, &str) =
    ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager");
/// How long systemd may take for an answer or a job. One that is busy with many units takes seconds.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// How a user gets a systemd.
const LOG_IN_HELP: &str = "log in by ssh, at a terminal or with machinectl shell, or have `loginctl enable-linger` start it, and set `XDG_RUNTIME_DIR`";
/// What to do where systemd is not available.
pub(crate) const WITHOUT_SYSTEMD_HELP: &str = "let the caller create cgroups itself: `podman --cgroup-manager cgroupfs`, `SystemdCgroup = false` in containerd";

/// systemd, called by its own socket or over a bus.
#[derive(Debug)]
pub struct Systemd {
    bus: Bus,
    user: bool,
    timeout: Duration,
    group: PathBuf,
    version: u32,
}

impl Systemd {
    /// Connects to the host's systemd, or to the user's own.
    ///
    /// `DBUS_SYSTEM_BUS_ADDRESS` names another bus than the host's; of a user, `DBUS_SESSION_BUS_ADDRESS` names
    /// theirs.
    ///
    /// # Errors
    ///
    /// systemd is not running, is not to be reached, or does not answer; with what to do instead.
    pub fn connect(user: bool) -> Result<Self> {
        Self::connect_with_timeout(user, REPLY_TIMEOUT)
    }

    /// As [`Self::connect`], with a timeout for each answer.
    pub fn connect_with_timeout(user: bool, timeout: Duration) -> Result<Self> {
        let (addresses, named) = if user { user_addresses() } else { host_addresses() };
        // sd_booted(3); with an explicit bus address systemd is assumed to be on it.
        if !named && !Path::new("/run/systemd/system").exists() {
            return Err(Error::new(Kind::Unsupported, "systemd is not running, so it cannot create cgroups")
                .help(WITHOUT_SYSTEMD_HELP));
        }
        Self::connect_first(&addresses, user, timeout)
    }

    /// Connects to the first of those that exists.
    fn connect_first(addresses: &[Address], user: bool, timeout: Duration) -> Result<Self> {
        let mut failed = None;
        for address in addresses {
            match Bus::open(address, timeout) {
                Ok(bus) => {
                    let mut systemd = Self { bus, user, timeout, group: PathBuf::new(), version: 0 };
                    systemd.group = systemd.property("ControlGroup")?.trim_start_matches('/').into();
                    let version = systemd.property("Version")?;
                    let digits = version.trim_start_matches(|letter: char| !letter.is_ascii_digit());
                    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
                    systemd.version = digits[..end].parse().unwrap_or_default();
                    return Ok(systemd);
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        let who = if user { "this user's systemd" } else { "systemd" };
        let why = failed.map_or_else(
            || "its address is not known".to_owned(),
            |failure| describe_failure(&failure, timeout),
        );
        let error = Error::new(Kind::System, format!("cannot reach {who}: {why}"));
        let error = if user { error.help(LOG_IN_HELP) } else { error };
        Err(error.help(WITHOUT_SYSTEMD_HELP))
    }

    /// Its own cgroup, relative to the root of the tree; that of a user's systemd lies deeper.
    pub fn group(&self) -> &Path {
        &self.group
    }

    /// Its version, which decides what properties there are; 0 where it is unknown.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Creates a unit around a process, and waits until it exists.
    ///
    /// A slice is created without a process: its cgroup files assign processes.
    ///
    /// # Errors
    ///
    /// systemd refuses, fails, or takes too long. A unit that is created later ends with its process; it is not stopped
    /// by name, which may belong to another.
    pub fn start_unit_body(
        &mut self,
        unit: &Unit,
        id: &str,
        pid: u32,
        properties: &[Property],
    ) -> Result<()> {
        let properties = [self.common_properties(unit, id, pid), properties.to_vec()].concat();
        self.create_unit(unit, &properties)
            .map_err(|error| if error.kind == Kind::State { error.at("/linux/cgroupsPath") } else { error })
    }

    /// Creates a scope around a process, in which the process can create groups, and waits until it exists.
    ///
    /// # Errors
    ///
    /// As [`Self::start_unit`]; [`Kind::State`] if a unit of that name exists.
    pub fn start_scope(&mut self, unit: &Unit, description: &str, pid: u32) -> Result<()> {
        let mut properties = vec![
            ("Description", text(description)),
            ("Slice", text(&unit.slice)),
            ("Delegate", Value::Bool(true)),
            // How many processes there may be is limited for each container, not by what systemd gives a unit as a
            // rule.
            ("TasksMax", Value::Uint64(u64::MAX)),
            ("PIDs", Value::Numbers(vec![pid])),
        ];
        properties.extend(self.collect_mode());
        let properties: Vec<Property> =
            properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.create_unit(unit, &properties)
    }

    /// Creates a unit and waits until it exists.
    fn create_unit(&mut self, unit: &Unit, properties: &[Property]) -> Result<()> {
        let started = match self.run_job("StartTransientUnit", unit, &start(unit, properties)) {
            // A failed unit stays loaded until it is reset.
            Err(Failure::ErrorReply(name, _))
                if name.ends_with(".UnitExists") && self.call_reset_failed(unit).is_ok() =>
            {
                self.run_job("StartTransientUnit", unit, &start(unit, properties))
            }
            other => other,
        };
        started.map_err(|failure| {
            let error = self.failed(&format!("make the unit `{}`", unit.name), &failure);
            match &failure {
                Failure::ErrorReply(name, _) if name.ends_with(".UnitExists") => Error { kind: Kind::State, ..error }
                    .help("a container or service of that name exists; end it, or use another unit name"),
                Failure::ErrorReply(name, _) if name.ends_with(".InteractiveAuthorizationRequired") || name.ends_with(".AccessDenied") => {
                    error.help("permission denied for this user; use the user's own systemd (log in with `XDG_RUNTIME_DIR` set), or run it as root")
                }
                _ => error,
            }
        })
    }

    /// Changes properties of an existing unit, until it ends.
    pub fn set_properties(&mut self, unit: &Unit, properties: &[Property]) -> Result<()> {
        if properties.is_empty() {
            return Ok(());
        }
        let body = Body::default()
            .with_value(&text(&unit.name))
            .with_value(&Value::Bool(true))
            .with_properties(properties);
        let set = self.call("SetUnitProperties", body).map(drop);
        set.map_err(|failure| self.failed(&format!("change the unit `{}`", unit.name), &failure))
    }

    /// Puts an additional process into a unit, or into a group below its own: `below` is empty, or begins with a slash.
    ///
    /// A user's systemd asks the host's where it may not move the process itself: out of a log-in's session, for
    /// one.
    pub fn attach(&mut self, unit: &Unit, below: &str, pid: u32) -> Result<()> {
        let body = Body::default()
            .with_value(&text(&unit.name))
            .with_value(&text(below))
            .with_value(&Value::Numbers(vec![pid]));
        let attached = self.call("AttachProcessesToUnit", body).map(drop);
        attached.map_err(|failure| {
            self.failed(&format!("put process {pid} into the unit `{}`", unit.name), &failure)
        })
    }

    /// Ends a unit, and waits for that; a missing unit is not an error.
    pub fn stop(&mut self, unit: &Unit) -> Result<()> {
        let body = Body::default().with_value(&text(&unit.name)).with_value(&text("replace"));
        match self.run_job("StopUnit", unit, &body) {
            Ok(()) => Ok(()),
            Err(Failure::ErrorReply(name, _)) if name.ends_with(".NoSuchUnit") => Ok(()),
            Err(failure) => Err(self.failed(&format!("end the unit `{}`", unit.name), &failure)),
        }
    }

    /// Has systemd forget that a unit failed, as after an out-of-memory kill.
    pub fn reset_failed(&mut self, unit: &Unit) {
        // Usually the unit no longer exists.
        let _ = self.call_reset_failed(unit);
    }

    fn call_reset_failed(&mut self, unit: &Unit) -> std::result::Result<(), Failure> {
        self.call("ResetFailedUnit", Body::default().with_value(&text(&unit.name))).map(drop)
    }

    /// The properties of every container's unit.
    fn common_properties(&self, unit: &Unit, id: &str, pid: u32) -> Vec<Property> {
        let yes = Value::Bool(true);
        let mut list = vec![
            ("Description", text(&format!("jobc container {id}"))),
            // At shutdown these units are stopped in the same order as others.
            ("DefaultDependencies", Value::Bool(false)),
            // So the controllers are enabled for later limits.
            ("MemoryAccounting", yes.clone()),
            ("CPUAccounting", yes.clone()),
            ("IOAccounting", yes.clone()),
            ("TasksAccounting", yes.clone()),
        ];
        if unit.is_slice() {
            list.push(("Wants", Value::Texts(vec![unit.slice.clone()])));
        } else {
            list.push(("Slice", text(&unit.slice)));
            list.push(("Delegate", yes));
            list.push(("PIDs", Value::Numbers(vec![pid])));
            list.extend(self.collect_mode());
        }
        list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The property that unloads failed units, if this version has it.
    fn collect_mode(&self) -> Option<(&'static str, Value)> {
        (self.version >= 236).then(|| ("CollectMode", text("inactive-or-failed")))
    }

    /// Asks for a job and waits until it is done.
    fn run_job(&mut self, method: &str, unit: &Unit, body: &Body) -> std::result::Result<(), Failure> {
        let until = Instant::now() + self.timeout;
        let answer = self.bus.call(SYSTEMD, method, body.clone(), until)?;
        let job = answer.texts().into_iter().next().ok_or(Failure::Malformed)?;
        // The signal bears a number, the job, its unit, and how it ended.
        let result = self.bus.signal("JobRemoved", until, |texts| match texts {
            [ended, _, result] if *ended == job => Some(result.clone()),
            _ => None,
        })?;
        match result.as_str() {
            "done" => Ok(()),
            _ => Err(Failure::ErrorReply(
                result.clone(),
                format!("the job for `{}` ended as `{result}`", unit.name),
            )),
        }
    }

    fn call(&mut self, method: &str, body: Body) -> std::result::Result<Body, Failure> {
        self.bus.call(SYSTEMD, method, body, Instant::now() + self.timeout)
    }

    /// A property of systemd itself.
    fn property(&mut self, name: &str) -> Result<String> {
        let (destination, path, interface) = SYSTEMD;
        let body = Body::default().with_value(&text(interface)).with_value(&text(name));
        let object = (destination, path, "org.freedesktop.DBus.Properties");
        let answer = self.bus.call(object, "Get", body, Instant::now() + self.timeout);
        let read = answer.and_then(|body| body.texts().into_iter().next().ok_or(Failure::Malformed));
        read.map_err(|failure| {
            self.failed(&format!("read its property `{name}`"), &failure).help(WITHOUT_SYSTEMD_HELP)
        })
    }

    fn failed(&self, what: &str, failure: &Failure) -> Error {
        let who = if self.user { "this user's systemd" } else { "systemd" };
        Error::new(
            Kind::System,
            format!("{who} does not {what}: {}", describe_failure(failure, self.timeout)),
        )
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn start(unit: &Unit, properties: &[Property]) -> Body {
    Body::default()
        .with_value(&text(&unit.name))
        .with_value(&text("replace"))
        .with_properties(properties)
        .with_no_units()
}

/// The text of a failure, to follow a colon.
fn describe_failure(failure: &Failure, timeout: Duration) -> String {
    match failure {
        Failure::Unreachable(errno) => describe(*errno),
        Failure::AccessDenied => "it rejects this user".to_owned(),
        Failure::ErrorReply(name, says) if says.is_empty() => name.clone(),
        Failure::ErrorReply(_, says) => says.trim_end_matches('.').to_owned(),
        Failure::TimedOut => format!("no reply within {} s", timeout.as_secs_f32()),
        Failure::Closed => "it closed the connection".to_owned(),
        Failure::Malformed => "its reply cannot be parsed".to_owned(),
    }
}

#[cfg(test)]
mod tests;
