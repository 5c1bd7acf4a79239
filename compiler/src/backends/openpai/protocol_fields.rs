//! Protocol fields of a job that came from OpenPAI, which are written back unchanged.

use indexmap::IndexMap;
use jobc_schema::Scalar;
use jobc_schema::plan::{JobPlan, ParamPlan};
use serde_json::{Map, Value};

use crate::openpai::{FIELDS, OWN_PORTS, PLUGINS, ROLE_FIELDS, converted, without_commands};

/// `openpai.protocol` of the job and its target.
pub(super) struct ProtocolFields {
    fields: IndexMap<String, Value>,
    params: Map<String, Value>,
}

/// The parameters with their values; those from the environment are only in the commands that use them.
fn values(job: &JobPlan) -> impl Iterator<Item = (&String, &Scalar)> {
    job.params.iter().filter_map(|(name, param)| match param {
        ParamPlan::Value(value) => Some((name, value)),
        ParamPlan::Environment { .. } => None,
    })
}

impl ProtocolFields {
    /// Reads the kept fields. If a parameter has a new value, commands with the old value are dropped and generated
    /// from the plan.
    pub(super) fn new(job: &JobPlan) -> Self {
        let settings = job.target.settings.openpai.as_ref();
        let mut fields = settings.map(|settings| settings.protocol.clone()).unwrap_or_default();
        let mut changed = false;
        if let Some(parameters) = fields.get_mut("parameters").and_then(Value::as_object_mut) {
            for (name, param) in values(job) {
                if let Some(kept) = parameters.get_mut(name).filter(|kept| !alike(kept, &param.value)) {
                    *kept = param.value.clone();
                    changed = true;
                }
            }
        }
        if changed {
            without_commands(&mut fields);
        }
        let params = values(job).map(|(name, param)| (name.clone(), param.value.clone())).collect();
        Self { fields, params }
    }

    /// Whether the job came from OpenPAI.
    pub(super) fn is_from_openpai(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The prerequisites.
    pub(super) fn prerequisites(&self) -> &[Value] {
        self.fields.get("prerequisites").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The number of the prerequisite that is an image of the plan.
    pub(super) fn image(&self, name: &str, uri: &str) -> Option<usize> {
        let is = |item: &Value| item["type"] == "dockerimage" && item["uri"] == uri;
        let named = |item: &Value| {
            item["name"].as_str().and_then(|known| converted(known, 32, true)).as_deref() == Some(name)
        };
        let items = self.prerequisites();
        items.iter().position(|item| is(item) && named(item)).or_else(|| items.iter().position(is))
    }

    /// The commands of a task role.
    pub(super) fn commands(&self, role: &str) -> Option<Value> {
        self.role(role)?.get("commands").cloned()
    }

    fn role(&self, role: &str) -> Option<&Map<String, Value>> {
        self.fields.get("taskRoles")?.get(role)?.as_object()
    }

    /// Overrides generated fields of a task role with kept ones.
    pub(super) fn finish_role(&self, role: &str, mut out: Map<String, Value>) -> Map<String, Value> {
        for (key, value) in self.role(role).into_iter().flatten() {
            match (key.as_str(), value) {
                // Ports come from the plan; those that every task has by default are not written.
                ("resourcePerInstance", Value::Object(resources)) => {
                    let ports = resources.get("ports").and_then(Value::as_object);
                    for (label, count) in ports.into_iter().flatten() {
                        if OWN_PORTS.contains(&label.as_str()) {
                            let ports = &mut out
                                .entry("resourcePerInstance")
                                .or_insert_with(|| Map::new().into())["ports"];
                            if ports.is_null() {
                                *ports = Map::new().into();
                            }
                            ports[label] = count.clone();
                        }
                    }
                }
                _ => lay_over(out.entry(key.clone()).or_insert(Value::Null), value),
            }
        }
        in_order(&ROLE_FIELDS, out)
    }

    /// Overrides generated fields of the job with kept ones, in the order of the protocol.
    pub(super) fn finish_job(&self, mut out: Map<String, Value>) -> Map<String, Value> {
        if !self.params.is_empty() {
            out.insert("parameters".to_owned(), self.params.clone().into());
        }
        for (key, value) in &self.fields {
            match key.as_str() {
                // Generated in consideration of the kept fields.
                "name" | "prerequisites" | "taskRoles" => {}
                "extras" => {
                    let extras = out.entry("extras").or_insert_with(|| Map::new().into());
                    let made = extras.get(PLUGINS).and_then(Value::as_array).cloned().unwrap_or_default();
                    lay_over(extras, value);
                    let kept = value.get(PLUGINS).and_then(Value::as_array).cloned().unwrap_or_default();
                    if !made.is_empty() && !kept.is_empty() {
                        extras[PLUGINS] = made.into_iter().chain(kept).collect();
                    }
                }
                "jobRetryCount" if out.contains_key("jobRetryCount") => {}
                _ => lay_over(out.entry(key.clone()).or_insert(Value::Null), value),
            }
        }
        in_order(&FIELDS, out)
    }
}

fn in_order(order: &[&str], mut map: Map<String, Value>) -> Map<String, Value> {
    let mut ordered = Map::new();
    for key in order {
        ordered.extend(map.shift_remove(*key).map(|value| ((*key).to_owned(), value)));
    }
    ordered.extend(map);
    ordered
}

/// Merges one value over another: maps are merged, anything else is replaced.
fn lay_over(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// Whether OpenPAI treats two values as equal: `1.0` is 1 there.
fn alike(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= f64::EPSILON * a.abs(),
        _ => a == b,
    }
}
