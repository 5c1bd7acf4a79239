//! `ports` in expressions: the role's own ports by their labels, and the ports of every role below its name.

use std::sync::Arc;

use jobc_schema::plan::PortPlan;
use minijinja::Value;
use minijinja::value::{Enumerator, Object};

use super::context::RoleTable;
use crate::expression::holes::{Hole, HoleList, mark};

/// `ports`: `ports.<label>` of the role itself, `ports.<role>.<label>` of any role.
///
/// A label of the role itself wins over the name of a role; what is below the name stays in reach.
#[derive(Debug)]
pub(super) struct PortNames {
    /// The number of the role that reads the text.
    pub(super) own: usize,
    pub(super) table: Arc<RoleTable>,
    /// The ports of every role, by its number.
    pub(super) ports: Arc<Vec<Vec<PortPlan>>>,
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

/// `ports.<role>`: the ports of one role, each the number of the first instance's or a list with one an instance.
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
