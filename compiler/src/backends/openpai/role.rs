//! A role as a `taskRole`.

use jobc_schema::Pointer;
use jobc_schema::plan::{Launch, RolePlan};
use jobc_schema::role::RetryScope;
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, codes};

use super::{Lowering, MAX_RETRIES};

impl Lowering<'_> {
    pub(super) fn role(&mut self, role: &RolePlan) -> Value {
        let part = Pointer::ROOT.keys(["taskRoles", &self.names.role(&role.name)]);
        let at = role.at();
        self.origin(&part, &at);
        let mut out = Map::new();
        out.insert("instances".into(), role.instances.into());
        self.origin(&part.key("instances"), &at.key("instances"));
        out.insert("completion".into(), self.completion(role));
        self.origin(&part.key("completion"), &at.key("completion"));
        let retries = if role.retry.scope == RetryScope::Task { role.retry.max } else { 0 };
        if retries > 0 {
            out.insert("taskRetryCount".into(), retries.min(MAX_RETRIES).into());
            self.origin(&part.key("taskRetryCount"), &at.key("retry"));
        }
        out.insert("dockerImage".into(), self.image_name(&role.image).into());
        self.origin(&part.key("dockerImage"), &at.key("image"));
        if let Some(options) = self.container_options(role) {
            out.insert("extraContainerOptions".into(), options);
        }
        out.insert("resourcePerInstance".into(), self.resources(role));
        self.ports(role);
        let commands = match self.kept.commands(&self.names.role(&role.name)) {
            Some(kept) => kept,
            None => json!([self.script(role)]),
        };
        out.insert("commands".into(), commands);
        self.origin(&part.key("commands"), &at.key("run"));
        self.kept.finish_role(&self.names.role(&role.name), out).into()
    }

    /// Both thresholds, always: OpenPAI's own default ends the job as soon as one role has succeeded.
    fn completion(&self, role: &RolePlan) -> Value {
        let number = |threshold: Option<u32>| threshold.map_or(-1, i64::from);
        let launching = match role.launch {
            Launch::All => Some(role.instances),
            Launch::First => Some(1),
            Launch::None => None,
        };
        // Where instances only serve, the launching ones must end the job.
        let succeeded = role.completion.min_succeeded.or(launching.filter(|_| self.some_serve));
        json!({
            "minFailedInstances": number(role.completion.min_failed),
            "minSucceededInstances": number(succeeded)
        })
    }

    /// Says that OpenPAI chooses a port's number itself.
    fn ports(&mut self, role: &RolePlan) {
        for port in role.ports.iter().filter(|port| !port.auto && port.shared_base.is_none()) {
            let number = port.number;
            self.sink.push(
                Diagnostic::info(
                    codes::PAI_PORT,
                    format!(
                        "OpenPAI chooses the number of port `{}` itself; it will not be {number}",
                        port.label
                    ),
                )
                .at(&role.at().keys(["resources", "ports", &port.label]), "a fixed number")
                .note(format!(
                    "the program must read `${{{{ ports.{} }}}}` or `$JOBC_PORT_{}`",
                    port.label,
                    port.label.to_uppercase().replace('-', "_")
                )),
            );
        }
    }
}
