//! Resources in OpenPAI's units, rounded up: whole CPUs, which is reported, and MiB, a difference too small to report.

use jobc_schema::plan::{PortPlan, RolePlan};
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, codes};

use super::Lowering;
use crate::openpai::{OWN_PORTS, SHM_MIB};

const MIB: u64 = 1 << 20;

impl Lowering<'_> {
    /// `resourcePerInstance`: all three numbers must be there for a rest-server.
    pub(super) fn resources(&mut self, role: &RolePlan) -> Value {
        let resources = &role.resources;
        let at = role.at().key("resources");
        let cpu = resources.cpu_millis.map(|millis| {
            let whole = millis.div_ceil(1000);
            if millis % 1000 != 0 {
                let message = format!("OpenPAI counts in whole CPUs; the amount is rounded up to {whole}");
                let note = Diagnostic::info(codes::PAI_ROUNDED, message);
                self.sink.push(note.at(&at.key("cpu"), "requested here"));
            }
            whole
        });
        let memory = resources.memory_bytes.map(|bytes| bytes.div_ceil(MIB));
        let gpus = resources.gpu.as_ref().map_or(0, |gpu| gpu.count);
        let mut out = Map::new();
        // A missing number was refused before; with `--allow-lossy` the minimum is used.
        out.insert("cpu".into(), cpu.unwrap_or(1).into());
        out.insert("memoryMB".into(), memory.unwrap_or(1).into());
        out.insert("gpu".into(), gpus.into());
        // By default, every task has a port for ssh and one for HTTP.
        let given =
            |port: &&PortPlan| port.auto && port.count == 1 && OWN_PORTS.contains(&port.label.as_str());
        let ports: Map<String, Value> = role
            .ports
            .iter()
            .filter(|port| !given(port))
            .map(|port| (self.names.label(&role.name, &port.label), port.count.into()))
            .collect();
        if !ports.is_empty() {
            out.insert("ports".into(), ports.into());
        }
        let part = jobc_schema::Pointer::ROOT.keys([
            "taskRoles",
            &self.names.role(&role.name),
            "resourcePerInstance",
        ]);
        self.origin(&part.key("cpu"), &at.key("cpu"));
        self.origin(&part.key("memoryMB"), &at.key("memory"));
        self.origin(&part.key("gpu"), &at.key("gpu"));
        for port in role.ports.iter().filter(|port| !given(port)) {
            let label = self.names.label(&role.name, &port.label);
            self.origin(&part.keys(["ports", &label]), &at.keys(["ports", &port.label]));
        }
        out.into()
    }

    /// `extraContainerOptions`, if the job needs any; OpenPAI's own /dev/shm is 512 MiB.
    pub(super) fn container_options(&mut self, role: &RolePlan) -> Option<Value> {
        let mut out = Map::new();
        let part = jobc_schema::Pointer::ROOT.keys([
            "taskRoles",
            &self.names.role(&role.name),
            "extraContainerOptions",
        ]);
        let at = role.at().key("resources");
        // A job from OpenPAI does not request its defaults: tasks only see what is requested.
        let as_it_was = self.kept.commands(&self.names.role(&role.name)).is_some();
        let unasked = as_it_was.then_some(SHM_MIB * MIB);
        if let Some(bytes) = role.resources.shm_bytes.filter(|bytes| Some(*bytes) != unasked) {
            out.insert("shmMB".into(), json!(bytes.div_ceil(MIB)));
            self.origin(&part.key("shmMB"), &at.key("shm"));
        }
        if role.resources.rdma.is_some_and(|devices| devices > 0) {
            out.insert("infiniband".into(), true.into());
            self.origin(&part.key("infiniband"), &at.key("rdma"));
        }
        (!out.is_empty()).then(|| out.into())
    }
}
