//! Why a role has a variable or file that jobc provides.

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};

use super::PartSource;
use crate::asks::Asks;

/// The reasons for what a role is provided with.
#[derive(Debug)]
pub struct Reasons<'a> {
    job: &'a JobPlan,
    role: &'a RolePlan,
    asks: Asks,
}

impl<'a> Reasons<'a> {
    /// Reads what the role asks for.
    pub fn of(job: &'a JobPlan, role: &'a RolePlan) -> Self {
        Self { job, role, asks: Asks::of(job, role) }
    }

    /// Why the role has a variable that jobc provides.
    pub fn variable(&self, name: &str) -> PartSource {
        let own = self.job.target.settings.env.get(name);
        let text = self.role.provided_env.get(name).and_then(|text| text.as_literal());
        if own.is_some_and(|own| text == Some(own.text.as_str())) {
            return PartSource::Target(Pointer::ROOT.keys(["env", name]));
        }
        if !name.starts_with("JOBC_") {
            return of_others(name.starts_with("PAI_") || name == "HOSTALIASES");
        }
        match self.asks.variable(name) {
            Some(at) => PartSource::Spec(at.clone()),
            None => PartSource::Default(contract(name)),
        }
    }

    /// Why the role has a file that jobc provides.
    pub fn file(&self, path: &str) -> PartSource {
        let is_host_file = path == "/etc/jobc/hostfile";
        let variable = || self.asks.variable("JOBC_HOSTFILE").filter(|_| is_host_file);
        match self.asks.file(path).or_else(variable) {
            Some(at) => PartSource::Spec(at.clone()),
            None => of_others(path.starts_with("/etc/jobc/openpai/") || path == "/etc/hosts"),
        }
    }
}

/// What is not jobc's own is there for the framework, or for OpenPAI.
fn of_others(is_openpai: bool) -> PartSource {
    let keys: &[&str] = if is_openpai { &["compat"] } else { &["distributed", "framework"] };
    PartSource::Spec(Pointer::ROOT.keys(keys.iter().copied()))
}

/// Why a role has a variable of jobc that it does not name.
fn contract(name: &str) -> &'static str {
    let begins = |start: &str| name.starts_with(start);
    match name {
        _ if begins("JOBC_HOSTS_") || begins("JOBC_ENDPOINTS_") => {
            "the contract: tasks without a framework find each other"
        }
        _ if begins("JOBC_PORT_") => "the contract: a port whose number is chosen for the task",
        "JOBC_POD" | "JOBC_GROUP" => "parts of the addresses of its group",
        _ => "the contract: a task without a framework knows which one it is",
    }
}
