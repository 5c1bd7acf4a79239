//! The checks: a role's `ready`, with the placeholders of its texts filled in for one task.

use std::time::Duration;

use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, ProbePlan, Reference, RolePlan, Text};
use regex::bytes::Regex;

use crate::lifecycle::TaskNumber;
use jobc_sys::error::{Error, Kind, Result};

/// An attempt of a task that is watched.
#[derive(Clone, Debug)]
pub struct ReadinessCheck {
    /// The task.
    pub task: TaskNumber,
    /// The attempt.
    pub attempt: u32,
    /// The probe.
    pub probe: Probe,
    /// The wait before the first try.
    pub delay: Duration,
    /// The wait between the end of a try and the next one.
    pub every: Duration,
    /// How long one try may take.
    pub try_timeout: Duration,
    /// How long it may take until the task is ready, from when it is watched.
    pub timeout: Duration,
    /// Whether to go on once it is ready.
    pub keep: bool,
}

/// The probe.
#[derive(Clone, Debug)]
pub enum Probe {
    /// A connection to this port.
    Port(u16),
    /// A page, whose status is below 400.
    Http {
        /// The port.
        port: u16,
        /// The path.
        path: String,
    },
    /// A command in the container, which exits with 0.
    Exec(Vec<String>),
    /// A line of the task's output.
    Log(Regex),
}

impl ReadinessCheck {
    /// The check of an instance of a role in the plan; `None` if the role has no `ready`.
    ///
    /// # Errors
    ///
    /// A port that the role does not have, or an invalid pattern: the compiler rejects both.
    pub fn of(
        plan: &JobPlan,
        role: &RolePlan,
        index: u32,
        task: TaskNumber,
        attempt: u32,
    ) -> Result<Option<Self>> {
        let Some(ready) = &role.ready else { return Ok(None) };
        let port = |label: &str| {
            port(plan, role, label, index)
                .ok_or_else(|| Error::new(Kind::State, format!("role `{}` has no port `{label}`", role.name)))
        };
        let probe = match &ready.probe {
            ProbePlan::Port(label) => Probe::Port(port(label)?),
            ProbePlan::Http { port: label, path } => Probe::Http { port: port(label)?, path: path.clone() },
            ProbePlan::Exec(texts) => {
                Probe::Exec(texts.iter().map(|text| render(text, plan, index)).collect())
            }
            ProbePlan::Log(pattern) => Probe::Log(Regex::new(pattern).map_err(|error| {
                // Before its last line it points into the pattern.
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Error::new(Kind::State, format!("`{pattern}` is not a regular expression: {why}"))
            })?),
        };
        Ok(Some(Self {
            task,
            attempt,
            probe,
            delay: Duration::from_secs(ready.delay_seconds),
            every: Duration::from_secs(ready.every_seconds.max(1)),
            try_timeout: Duration::from_secs(ready.try_timeout_seconds.max(1)),
            timeout: Duration::from_secs(ready.timeout_seconds),
            keep: ready.keep,
        }))
    }
}

/// A text of a role for its instance with that number on this host, with the addresses of its bundle.
pub fn render(text: &Text, plan: &JobPlan, index: u32) -> String {
    text.render(|reference| fill(reference, plan, index))
}

fn fill(reference: &Reference, plan: &JobPlan, own_index: u32) -> String {
    let host = |role: &str, index: u32| match plan.network {
        Network::Job => format!("{role}-{index}"),
        Network::Auto | Network::Host | Network::None => "127.0.0.1".to_owned(),
    };
    let number = |role: &str, label: &str, index: u32| {
        plan.role(role).and_then(|role| port(plan, role, label, index)).map(|port| port.to_string())
    };
    match reference {
        Reference::Index {} => own_index.to_string(),
        Reference::Rank { offset } => (u64::from(own_index) + u64::from(*offset)).to_string(),
        Reference::Host { role, index } => host(role, index.unwrap_or(own_index)),
        Reference::Port { role, label, index } => {
            number(role, label, index.unwrap_or(own_index)).unwrap_or_default()
        }
        Reference::Ports { role, label, index, count } => {
            let first = plan.role(role).and_then(|role| port(plan, role, label, index.unwrap_or(own_index)));
            let numbers = first.into_iter().flat_map(|first| u32::from(first)..u32::from(first) + count);
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
        }
        Reference::Hosts { role, label, before, after, separator } => {
            let instances = plan.role(role).map_or(0, |role| role.instances);
            let one = |index| {
                let port = label.as_ref().and_then(|label| number(role, label, index));
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                format!("{before}{}{port}{after}", host(role, index))
            };
            (0..instances).map(one).collect::<Vec<_>>().join(separator)
        }
    }
}

/// The number of an instance's port: its own where instances have addresses of their own.
fn port(plan: &JobPlan, role: &RolePlan, label: &str, index: u32) -> Option<u16> {
    let port = role.port(label)?;
    match plan.network {
        Network::Job | Network::None => Some(port.number),
        Network::Auto | Network::Host => u16::try_from(port.shared_number(index)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The checks of the first and the third instance of `server`.
    fn check(network: &str, probe: &Value) -> String {
        let ready = json!({"probe": probe, "delay_seconds": 0, "every_seconds": 0, "try_timeout_seconds": 0,
            "timeout_seconds": 60, "keep": false});
        let role = |name: &str, ready: Option<&Value>| {
            let mut role = json!({"name": name, "instances": 3, "image": "main", "command": {"image": {}}, "resources": {},
                "ports": [
                    {"label": "http", "number": 8080, "count": 1, "auto": true, "shared_base": 20000, "publish": "none"},
                    {"label": "row", "number": 9000, "count": 2, "auto": true, "shared_base": 30000, "publish": "none"},
                    {"label": "fixed", "number": 22, "count": 1, "auto": false, "publish": "none"},
                ],
                "completion": {}, "retry": {"max": 0, "scope": "task"}, "grace_period_seconds": 30,
                "security": {"read_only_root": false, "privileged": false}});
            if let Some(ready) = ready {
                role["ready"] = ready.clone();
            }
            role
        };
        let plan: JobPlan =
            serde_json::from_value(json!({"name": "demo", "network": network, "images": {}, "stages": [],
            "target": {"name": "local", "settings": {"backends": ["oci"]}}, "gang": "auto",
            "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0},
            "roles": [role("server", Some(&ready)), role("other", None)]}))
            .expect("a plan");
        let of = |index| match ReadinessCheck::of(&plan, &plan.roles[0], index, 0, 1) {
            Ok(Some(watched)) => format!("{:?}", watched.probe),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(ReadinessCheck::of(&plan, &plan.roles[1], 0, 3, 1).expect("nothing").is_none());
        format!("{network} {probe}\n    {}\n    {}\n", of(0), of(2))
    }

    #[test]
    fn holes_are_filled_as_in_the_bundle() {
        let exec = json!({"exec": [
            "check", [{"host": {"role": "other", "index": 1}}, ":", {"port": {"role": "other", "label": "http", "index": 1}}],
            [{"index": {}}], [{"rank": {"offset": 4}}], [{"host": {"role": "server"}}],
            [{"port": {"role": "server", "label": "fixed"}}], [{"ports": {"role": "server", "label": "row", "count": 2}}],
            [{"hosts": {"role": "other", "label": "http", "separator": ","}}],
            [{"hosts": {"role": "other", "before": "<", "after": ">"}}],
        ]});
        let probes = [exec, json!({"port": "http"}), json!({"http": {"port": "row", "path": "/healthz"}})];
        let all = ["host", "job", "none"]
            .map(|network| probes.each_ref().map(|probe| check(network, probe)).concat());
        insta::assert_snapshot!(all.concat() + &check("auto", &json!({"log": "listening on [0-9]+"})));
    }

    #[test]
    fn what_the_compiler_refuses_is_refused_here_too() {
        insta::assert_snapshot!(
            check("host", &json!({"port": "https"})) + &check("host", &json!({"log": "("}))
        );
    }
}
