//! `extras`: gang allocation, HiveD, storages and runtime plugins.

use jobc_schema::Pointer;
use jobc_schema::plan::{GangPlan, JobPlan, Reference};
use jobc_schema::role::RetryScope;
use jobc_schema::target::{OpenpaiRole, OpenpaiTarget};
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Location, codes};
use crate::openpai::PLUGINS;

use super::{Lowering, storage};

/// Whether the job's tasks start together.
///
/// OpenPAI retries single tasks only without gang scheduling, so `gang: auto` yields to such retries if no task needs
/// the address of another.
pub(super) fn gang_allocation(job: &JobPlan) -> bool {
    match job.gang {
        GangPlan::Required | GangPlan::Min(_) => true,
        GangPlan::None => false,
        GangPlan::Auto => !retries_tasks(job) || needs_peers(job),
    }
}

fn retries_tasks(job: &JobPlan) -> bool {
    job.roles.iter().any(|role| role.retry.max > 0 && role.retry.scope == RetryScope::Task)
}

/// Whether a task reads another one's address, which may be unknown before all have been placed.
fn needs_peers(job: &JobPlan) -> bool {
    use jobc_schema::plan::{CommandPlan, EnvPlan, FileContent};
    let peers = |reference: &Reference| match reference {
        Reference::Index {} | Reference::Rank { .. } => false,
        Reference::Host { index, .. } | Reference::Port { index, .. } | Reference::Ports { index, .. } => {
            index.is_some()
        }
        Reference::Hosts { .. } => true,
    };
    job.distributed.is_some()
        || job.roles.iter().any(|role| {
            let env = role.env.values().filter_map(|value| match value {
                EnvPlan::Text(text) => Some(text),
                EnvPlan::Secret { .. } => None,
            });
            let files = role.files.iter().filter_map(|file| match &file.content {
                FileContent::Text(text) => Some(text),
                FileContent::Secret { .. } => None,
            });
            let command: Vec<_> = match &role.command {
                CommandPlan::Image {} => vec![],
                CommandPlan::Args(args) => args.iter().collect(),
                CommandPlan::Argv { argv, setup } => argv.iter().chain(setup).collect(),
                CommandPlan::Script { setup, script, .. } => setup.iter().chain([script]).collect(),
            };
            env.chain(files).chain(command).any(|text| text.references().any(peers))
        })
}

impl Lowering<'_> {
    pub(super) fn extras(&mut self) -> Value {
        let at = Pointer::ROOT.key("extras");
        let mut out = Map::new();
        out.insert("submitFrom".into(), "jobc".into());
        let gang = gang_allocation(self.job);
        if !gang {
            out.insert("gangAllocation".into(), false.into());
            self.origin(&at.key("gangAllocation"), &Pointer::ROOT.key("gang"));
        }
        if self.job.gang == GangPlan::Auto && !gang {
            self.sink.push(
                Diagnostic::info(
                    codes::PAI_GANG,
                    "tasks start one by one, because OpenPAI retries single tasks only in that case",
                )
                .at_key(&Pointer::ROOT.key("retry"), "retries of single tasks")
                .note("write `gang: required` and `retry: {scope: job}` to start all tasks together")
                .set(&Pointer::ROOT.key("gang"), "required")
                .also(&Pointer::ROOT.keys(["retry", "scope"]), "job"),
            );
        }
        if !gang && needs_peers(self.job) {
            let message =
                "without a gang, OpenPAI may start a task before it knows the addresses of the others";
            self.sink.push(
                Diagnostic::warning(codes::PAI_GANG, message)
                    .at(&Pointer::ROOT.key("gang"), "requested here")
                    .note("leave `gang` out: tasks that need each other's addresses then start together"),
            );
        }
        let none = OpenpaiTarget::default();
        let job = self.job;
        let settings = job.target.settings.openpai.as_ref().unwrap_or(&none);
        if let Some(hived) = self.hived(settings) {
            out.insert("hivedScheduler".into(), hived);
        }
        let storages = self.storages(settings);
        if !storages.is_empty() {
            out.insert("storages".into(), storages.into());
            self.target_origin(&at.key("storages"), "storages");
        }
        let plugins = self.plugins(settings);
        if !plugins.is_empty() {
            out.insert(PLUGINS.into(), plugins.into());
        }
        out.into()
    }

    /// `hivedScheduler`, where the target chooses a priority or a role's hardware; no field is ever null.
    fn hived(&mut self, settings: &OpenpaiTarget) -> Option<Value> {
        let at = Pointer::ROOT.keys(["extras", "hivedScheduler"]);
        let (mut roles, none) = (Map::new(), OpenpaiRole::default());
        for role in &self.job.roles {
            let chosen = role.entry_in(&settings.roles).unwrap_or(&none);
            let OpenpaiRole { sku_type, sku_num, pinned_cell, affinity_group } = chosen;
            let mut cell = Map::new();
            let mut set = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    cell.insert(key.to_owned(), value);
                }
            };
            set("skuType", sku_type.as_deref().map(Value::from));
            set("skuNum", sku_num.map(Value::from));
            set("pinnedCellId", pinned_cell.as_deref().map(Value::from));
            set("affinityGroupName", affinity_group.as_deref().map(Value::from));
            // A priority applies to the listed roles, and the server rejects an empty list.
            if !cell.is_empty() || settings.priority.is_some() {
                let called = self.names.role(&role.name);
                let setting = if cell.is_empty() { "priority" } else { "roles" };
                self.target_origin(&at.keys(["taskRoles", &called]), setting);
                roles.insert(called, cell.into());
            }
        }
        if settings.priority.is_none() && roles.is_empty() {
            return None;
        }
        let mut out = Map::new();
        if let Some(priority) = settings.priority {
            out.insert("jobPriorityClass".into(), json!(priority));
            self.target_origin(&at.key("jobPriorityClass"), "priority");
        }
        out.insert("taskRoles".into(), roles.into());
        Some(out.into())
    }

    fn storages(&mut self, settings: &OpenpaiTarget) -> Vec<Value> {
        let job = self.job;
        let mut items = Vec::new();
        for (number, stored) in settings.storages.iter().enumerate() {
            let provided = stored.provides.as_deref();
            if provided.is_some_and(|volume| !job.volumes.contains_key(volume)) {
                // A target serves many jobs; this one has no such volume.
                continue;
            }
            let writable =
                provided.is_none_or(|volume| storage::mounts(job, volume).any(|mount| mount.writable));
            if let Some(volume) = provided {
                self.check_storage(volume, stored.read_only && writable, &stored.name, number);
            }
            let mut item = Map::new();
            item.insert("name".into(), stored.name.clone().into());
            if let Some(path) = storage::path(job, stored) {
                item.insert("mountPath".into(), path.into());
            }
            if stored.read_only || !writable {
                item.insert("readOnly".into(), true.into());
            }
            if let Some(share) = stored.share {
                item.insert("share".into(), share.into());
            }
            items.push(item.into());
        }
        items
    }

    fn check_storage(&mut self, volume: &str, refused: bool, name: &str, number: usize) {
        let under = match self.job.volumes[volume].kind {
            jobc_schema::plan::VolumeKind::Data => "data",
            jobc_schema::plan::VolumeKind::Output => "outputs",
        };
        let at = Pointer::ROOT.keys([under, volume]);
        let place =
            Pointer::ROOT.keys(["targets", &self.job.target.name, "openpai", "storages"]).index(number);
        if refused {
            self.sink.push(
                Diagnostic::error(
                    codes::PAI_STORAGE,
                    format!("`{volume}` is writable, but storage `{name}` is read-only"),
                )
                .at_key(&at, "written by a role")
                .at_place(Location::target(&place.key("read_only")), "the target's storage"),
            );
        }
        if self.job.volumes[volume].secret.is_some() {
            let message =
                format!("storage `{name}` has its own credentials; the secret of `{volume}` is not used");
            let found = if self.context.losses.allowed() {
                Diagnostic::warning(codes::PAI_STORAGE, message)
            } else {
                Diagnostic::error(codes::PAI_STORAGE, message)
            };
            self.sink.push(
                found.at(&at.key("secret"), "requested here").note("leave `secret` out for this target"),
            );
        }
    }

    /// The target's own plugins, and ssh between the instances where the job needs it.
    fn plugins(&mut self, settings: &OpenpaiTarget) -> Vec<Value> {
        let mut plugins: Vec<Value> = settings.plugins.clone();
        for plugin in &mut plugins {
            let Some(Value::Array(roles)) = plugin.get_mut("taskroles") else { continue };
            for role in roles {
                if let Some(known) = role.as_str().and_then(|name| self.job.role(name)) {
                    *role = self.names.role(&known.name).into();
                }
            }
        }
        if !plugins.is_empty() {
            self.target_origin(&Pointer::ROOT.keys(["extras", PLUGINS]), "plugins");
        }
        let has_ssh = plugins.iter().any(|plugin| plugin.get("plugin").is_some_and(|name| name == "ssh"));
        if self.job.distributed.as_ref().is_some_and(|distributed| distributed.ssh.is_some()) && !has_ssh {
            let at = Pointer::ROOT.keys(["extras", PLUGINS]).index(plugins.len());
            self.origin(&at, &Pointer::ROOT.key("distributed"));
            plugins.push(json!({"plugin": "ssh", "parameters": {"jobssh": true, "sshbarrier": true}}));
        }
        plugins
    }
}
