//! The scopes of late expressions: the job, the role and the instance as values of the engine.

use std::cell::OnceCell;
use std::sync::Arc;

use jobc_schema::plan::{MountPlan, PortPlan, Reference};
use minijinja::Value;
use minijinja::value::{Enumerator, Object};

use super::context::{Context, RoleTable};
use super::distributed::Rendezvous;
use crate::expression::holes::{Hole, HoleList, mark};
use crate::expression::{Names, Scope};

/// The names that all roles share.
pub(super) fn shared_names(context: &Context<'_>, rendezvous: Option<&Rendezvous>) -> Names {
    let mut names = early_names(context);
    names.insert(Scope::Roles, Value::from_object(Roles(context.table.clone())));
    names.insert(Scope::Hosts, Value::from_object(Hosts(context.table.clone())));
    if let Some(rendezvous) = rendezvous {
        let world_size = Value::from(rendezvous.plan.world_size);
        names.insert(Scope::Distributed, Value::from_pairs([("world_size", world_size)]));
    }
    names
}

/// The names that depend on the file alone.
pub(super) fn early_names(context: &Context<'_>) -> Names {
    early_names_of_role(context, "")
}

/// The same in a role, which may have a matrix of its own.
pub(super) fn early_names_of_role(context: &Context<'_>, role: &str) -> Names {
    let mut names = Names::default();
    names.insert_written(Scope::Params, &Arc::new(context.variant.params.clone()));
    if let Some(values) = context.variant.matrix_values(role) {
        names.insert_written(Scope::Matrix, &Arc::new(values));
    }
    names.insert(Scope::Job, Value::from_pairs([("name", Value::from(context.name.as_str()))]));
    names
}

/// The scope of one role's texts, created on demand.
pub(super) struct RoleScope<'a> {
    context: &'a Context<'a>,
    base: &'a Names,
    /// The role's index in the table.
    number: usize,
    /// The ports of every role, by the role's index.
    all_ports: &'a Arc<Vec<Vec<PortPlan>>>,
    mounts: &'a [MountPlan],
    names: OnceCell<Names>,
}

impl<'a> RoleScope<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        base: &'a Names,
        number: usize,
        all_ports: &'a Arc<Vec<Vec<PortPlan>>>,
        mounts: &'a [MountPlan],
    ) -> Self {
        Self { context, base, number, all_ports, mounts, names: OnceCell::new() }
    }

    /// The role's own ports.
    pub(super) fn ports(&self) -> &'a [PortPlan] {
        &self.all_ports[self.number]
    }

    /// The names with their values.
    pub(super) fn names(&self) -> &Names {
        self.names.get_or_init(|| self.make())
    }

    fn make(&self) -> Names {
        let mut names = self.base.clone();
        if let Some((name, facts)) = self.context.table.get_index(self.number) {
            let role = [
                ("name", Value::from(name.as_str())),
                ("instances", Value::from(facts.instances)),
                ("gpu", Value::from(facts.gpus)),
            ];
            names.insert(Scope::Role, Value::from_pairs(role));
            if self.context.variant.groups.get(name).is_some()
                && let Some(values) = self.context.variant.matrix_values(name)
            {
                names.insert_written(Scope::Matrix, &Arc::new(values));
            }
        }
        names.insert(Scope::Instance, Value::from_pairs([("index", Value::from(mark("0")))]));
        let ports =
            PortNames { own: self.number, table: self.context.table.clone(), ports: self.all_ports.clone() };
        names.insert(Scope::Ports, Value::from_object(ports));
        let job = self.context.job;
        let seen = |source: &dyn Fn(&str) -> Option<Option<String>>| {
            let volumes = self.mounts.iter().filter_map(|mount| {
                let source = source(&mount.volume)?;
                let fields = [("mount", Some(mount.path.clone())), ("source", source)];
                let fields = fields.into_iter().filter_map(|(key, text)| Some((key, Value::from(text?))));
                Some((mount.volume.as_str(), Value::from_pairs(fields)))
            });
            Value::from_pairs(volumes)
        };
        names.insert(Scope::Data, seen(&|name| Some(job.data.get(name)?.source.clone())));
        names.insert(Scope::Outputs, seen(&|name| Some(job.outputs.get(name)?.source.clone())));
        names
    }

    /// The placeholder for the content of a mark.
    pub(super) fn reference(&self, mark: &str) -> Option<Reference> {
        let mut fields = mark.split('.').map(str::parse::<u32>);
        let mut next = || fields.next()?.ok();
        let role = |number: u32| Some(self.context.table.get_index(number as usize)?.0.clone());
        match next()? {
            0 => Some(Reference::Index {}),
            1 => Some(Reference::Host { role: role(next()?)?, index: Some(next()?) }),
            2 => {
                let label = self.ports().get(next()? as usize)?.label.clone();
                let role = role(u32::try_from(self.number).ok()?)?;
                Some(Reference::Port { role, label, index: None })
            }
            3 => {
                let role = role(next()?)?;
                let separator = fields.map(|c| char::from_u32(c.ok()?)).collect::<Option<String>>()?;
                let (label, before, after) = (None, String::new(), String::new());
                Some(Reference::Hosts { role, label, before, after, separator })
            }
            4 => {
                let (number, port, index) = (next()?, next()?, next()?);
                let label = self.all_ports.get(number as usize)?.get(port as usize)?.label.clone();
                Some(Reference::Port { role: role(number)?, label, index: Some(index) })
            }
            _ => None,
        }
    }
}

/// `roles`: each role's `instances`.
#[derive(Debug)]
struct Roles(Arc<RoleTable>);

impl Object for Roles {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let facts = self.0.get(key.as_str()?)?;
        Some(Value::from_pairs([("instances", Value::from(facts.instances))]))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|name| Value::from(name.as_str())).collect())
    }
}

/// `hosts`: each role's addresses.
#[derive(Debug)]
struct Hosts(Arc<RoleTable>);

impl Object for Hosts {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (number, _, facts) = self.0.get_full(key.as_str()?)?;
        Some(Value::from_object(HoleList {
            length: facts.instances as usize,
            item: Box::new(move |index| format!("1.{number}.{index}")),
            joined: Some(Box::new(move |separator| {
                let letters = separator.chars().map(|c| format!(".{}", u32::from(c)));
                format!("3.{number}{}", letters.collect::<String>())
            })),
        }))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|name| Value::from(name.as_str())).collect())
    }
}

/// `ports`: `ports.<label>` of the role itself, `ports.<role>.<label>` of any role.
///
/// A label of the role itself shadows a role of the same name; the keys below the name remain accessible.
#[derive(Debug)]
struct PortNames {
    /// The index of the role that contains the text.
    own: usize,
    table: Arc<RoleTable>,
    /// The ports of every role, by the role's index.
    ports: Arc<Vec<Vec<PortPlan>>>,
}

impl Object for PortNames {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let own = self.ports.get(self.own)?.iter().position(|port| port.label == name);
        let role = self.table.get_index_of(name).filter(|&role| !self.ports[role].is_empty());
        let below = |role| Value::from_object(RolePorts { names: self.clone(), role });
        match (own, role) {
            (Some(own), None) => Some(Value::from(mark(&format!("2.{own}")))),
            (Some(own), Some(role)) => {
                Some(Value::from_object(Hole { inside: format!("2.{own}"), below: below(role) }))
            }
            (None, role) => role.map(below),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let own = self.ports[self.own].iter().map(|port| port.label.as_str());
        let roles = self.table.keys().enumerate().filter(|(role, _)| !self.ports[*role].is_empty());
        Enumerator::Values(own.chain(roles.map(|(_, name)| name.as_str())).map(Value::from).collect())
    }
}

/// `ports.<role>`: the ports of one role, each the number of the first instance, or a list with one per instance.
#[derive(Debug)]
struct RolePorts {
    names: Arc<PortNames>,
    role: usize,
}

impl Object for RolePorts {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let label = key.as_str()?;
        let role = self.role;
        let port = self.names.ports[role].iter().position(|port| port.label == label)?;
        let length = self.names.table.get_index(role)?.1.instances as usize;
        let list = Value::from_object(HoleList {
            length,
            item: Box::new(move |index| format!("4.{role}.{port}.{index}")),
            joined: None,
        });
        if length > 1 {
            return Some(list);
        }
        Some(Value::from_object(Hole { inside: format!("4.{role}.{port}.0"), below: list }))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let labels = self.names.ports[self.role].iter().map(|port| Value::from(port.label.as_str()));
        Enumerator::Values(labels.collect())
    }
}
