//! A container's environment: the instance's number first if others are made of it, what jobc provides, then what the
//! user wrote.

use jobc_schema::plan::{EnvPlan, FileContent, Piece, ProbePlan, Reference, RolePlan, SecretPlan, Text};
use jobc_schema::preemption::{ATTEMPT, RESUME};
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};

use crate::backend::PartSource;
use crate::backend::command::argv;
use crate::backend::reasons::Reasons;
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::address::{Expander, GROUP, INDEX, POD, PodAddress, has_sum, render_expanded};
use super::cluster::Cluster;
use super::env_file;
use super::gpu;
use super::naming::{has_number, index_field, is_unknown_to_ray};
use super::origins::Origins;
use super::secrets;
use super::shape::Shape;

/// The longest string that execve(2) takes in an environment: MAX_ARG_STRLEN of Linux, less the name.
const MAX_BYTES: usize = 131_072 - 256;

/// A container's environment.
pub(super) struct Environment<'a> {
    /// The variables, ordered so that each comes after those that it uses.
    pub vars: Vec<EnvVar>,
    /// Variables that only a shell can compute.
    pub sums: Vec<(&'a str, &'a Text)>,
    /// Those of them that the kubelet reads from a file.
    pub in_file: Vec<(&'a str, &'a Text)>,
}

impl<'a> Environment<'a> {
    /// Adds a variable that needs a sum; returns whether it has a place among the container's variables.
    fn add_sum(&mut self, cluster: &Cluster<'_>, name: &'a str, text: &'a Text) -> bool {
        let variable = env_file::variable(cluster, name, text);
        let is_in_file = variable.is_some();
        self.vars.extend(variable);
        if is_in_file { &mut self.in_file } else { &mut self.sums }.push((name, text));
        is_in_file
    }
}

/// The environment of a role's container.
pub(super) fn environment<'a>(
    cluster: &Cluster<'a>,
    role: &'a RolePlan,
    given: Option<&gpu::PodRequest>,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Environment<'a> {
    let mut environment = Environment { vars: vec![], sums: vec![], in_file: vec![] };
    let reasons = Reasons::of(cluster.job, role);
    let vars = &mut environment.vars;
    if cluster.shape == Shape::LeaderWorkerSet {
        origins.from(place(vars), reasons.variable(POD));
        vars.push(from_field(POD, "metadata.name"));
        if cluster.groups() > 1 {
            origins.from(place(vars), reasons.variable(GROUP));
            vars.push(from_field(GROUP, "metadata.labels['leaderworkerset.sigs.k8s.io/group-index']"));
        }
    }
    let has_numbers = cluster.has_numbers(role);
    let has_index = !role.env.contains_key(INDEX)
        && has_numbers
        && (role.provided_env.contains_key(INDEX) || uses_index(cluster, role));
    if has_index {
        let is_part = !role.provided_env.contains_key(INDEX);
        let part = PartSource::Default("the number of the instance, of which other lines are made");
        origins.from(place(vars), if is_part { part } else { reasons.variable(INDEX) });
        vars.push(index_variable(cluster, role));
    }
    let mut left_out = vec![];
    for (name, text) in &role.provided_env {
        // No pod learns which attempt it is.
        if name == INDEX || [ATTEMPT, RESUME].contains(&name.as_str()) || role.env.contains_key(name) {
            continue;
        }
        let of_lost_file = |text: &Text| {
            role.provided_files.iter().any(|file| match &file.content {
                FileContent::Text(content) => {
                    text.as_literal() == Some(&file.path) && is_unknown_to_ray(role, content)
                }
                FileContent::Secret { .. } => false,
            })
        };
        if !has_numbers && has_number(text) {
            continue;
        }
        if cluster.shape == Shape::RayJob && (is_unknown_to_ray(role, text) || of_lost_file(text)) {
            continue;
        }
        let at = place(&environment.vars);
        if has_sum(text, role) {
            if environment.add_sum(cluster, name, text) {
                origins.from(at, reasons.variable(name));
            }
            continue;
        }
        if !has_index && is_index(text) {
            origins.from(at, reasons.variable(name));
            environment.vars.push(numbered(cluster, role, name));
            continue;
        }
        match value(cluster, role, text) {
            Some(value) => {
                origins.from(at, reasons.variable(name));
                environment.vars.push(plain(name, value));
            }
            None => left_out.push(name.as_str()),
        }
    }
    if !left_out.is_empty() {
        sink.push(too_long(cluster, role, &left_out));
    }
    let of_gpu = role.at().keys(["resources", "gpu"]);
    for (name, value) in gpu::environment(cluster.job, role) {
        if !role.env.contains_key(name) {
            origins.spec(place(&environment.vars), &of_gpu);
            environment.vars.push(plain(name, value));
        }
    }
    if let Some(given) = given {
        let fields = given.fields.iter().map(|(name, path)| from_field(name, path));
        let plain = given.env.iter().map(|(name, value)| plain(name, value.clone()));
        for var in plain.chain(fields).filter(|var| !role.env.contains_key(&var.name)) {
            origins.spec(place(&environment.vars), &of_gpu);
            environment.vars.push(var);
        }
    }
    for (name, given) in &role.env {
        let at = role.at().keys(["env", name]);
        let var = match given {
            EnvPlan::Secret { secret } => secret_variable(cluster, name, secret),
            EnvPlan::Text(text) if has_sum(text, role) => {
                let part = place(&environment.vars);
                if environment.add_sum(cluster, name, text) {
                    origins.spec(part, &at);
                }
                continue;
            }
            EnvPlan::Text(text) if !has_index && is_index(text) => numbered(cluster, role, name),
            EnvPlan::Text(text) => {
                let Some(value) = value(cluster, role, text) else {
                    sink.push(
                        Diagnostic::error(
                            codes::KUBERNETES_SIZE,
                            format!(
                                "the value of `{name}` is longer than the 128 KiB a process can be given"
                            ),
                        )
                        .at(&at, "")
                        .note("put the text into `files`, or read it from `/etc/jobc/job.json`"),
                    );
                    continue;
                };
                plain(name, value)
            }
        };
        origins.spec(place(&environment.vars), &at);
        environment.vars.push(var);
    }
    environment
}

/// The place of the next variable, below the `spec` of the pod.
fn place(vars: &[EnvVar]) -> [String; 4] {
    ["containers", "0", "env", &vars.len().to_string()].map(str::to_owned)
}

/// `JOBC_INDEX`: from the pod's annotation where there are several pods.
pub(super) fn index_variable(cluster: &Cluster<'_>, role: &RolePlan) -> EnvVar {
    numbered(cluster, role, INDEX)
}

/// A variable that is the number of the instance.
fn numbered(cluster: &Cluster<'_>, role: &RolePlan, name: &str) -> EnvVar {
    if role.instances == 1 {
        return plain(name, "0".to_owned());
    }
    from_field(name, index_field(cluster.shape))
}

/// Whether a text is the number of the instance alone, which Kubernetes has as a field of the pod.
fn is_index(text: &Text) -> bool {
    matches!(text.pieces(), [Piece::Reference(Reference::Index {} | Reference::Rank { offset: 0 })])
}

/// Whether a command or variable has the number of the instance as a part, which `JOBC_INDEX` puts there.
fn uses_index(cluster: &Cluster<'_>, role: &RolePlan) -> bool {
    let is_number = |reference: &Reference| match reference {
        Reference::Index {} | Reference::Rank { .. } => true,
        // In a LeaderWorkerSet the name of the pod does.
        Reference::Host { index: None, .. } => cluster.shape != Shape::LeaderWorkerSet,
        _ => false,
    };
    let has_number = |text: &Text| text.references().any(is_number);
    let own = role.env.values().filter_map(|value| match value {
        EnvPlan::Text(text) => Some(text),
        EnvPlan::Secret { .. } => None,
    });
    let probe = match role.ready.as_ref().map(|ready| &ready.probe) {
        Some(ProbePlan::Exec(argv)) => argv.as_slice(),
        _ => &[],
    };
    role.instances > 1
        && (own.chain(role.provided_env.values()).any(|text| !is_index(text) && has_number(text))
            || argv(cluster.job, role).iter().flatten().chain(probe).any(has_number))
}

/// A variable that holds a field of the pod.
///
/// `apiVersion` is what an API server fills in. It compares such a selector as a whole, so an apply without it conflicts
/// with the object that the server has.
pub(super) fn from_field(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector { api_version: Some("v1".to_owned()), field_path: path.to_owned() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}

fn plain(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value), value_from: None }
}

/// The rendered value, or `None` if no process could be started with it.
fn value(cluster: &Cluster<'_>, role: &RolePlan, text: &Text) -> Option<String> {
    let at = PodAddress { cluster, role, by: Expander::Kubelet };
    if super::address::min_length(text, &at) > MAX_BYTES {
        return None;
    }
    Some(render_expanded(text, &at)).filter(|value| value.len() <= MAX_BYTES)
}

/// A variable whose value is in a Secret.
fn secret_variable(cluster: &Cluster<'_>, name: &str, secret: &str) -> EnvVar {
    let (object, key) = match cluster.job.secrets.get(secret) {
        Some(SecretPlan::Store { name, key }) => (name.clone(), key.clone()),
        _ => (secrets::job_secret(cluster.job), secret.to_owned()),
    };
    let selector = SecretKeySelector { name: object, key, optional: None };
    let source = EnvVarSource { secret_key_ref: Some(selector), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}

fn too_long(cluster: &Cluster<'_>, role: &RolePlan, names: &[&str]) -> Diagnostic {
    let host = match cluster.shape {
        Shape::JobSet | Shape::TrainJob => "<job>-<role>-0-<index>.<job>",
        Shape::Volcano | Shape::MpiJob => "<job>-<role>-<index>.<job>",
        Shape::LeaderWorkerSet => "<job>-0-<index>.<job>",
        _ => "<job>-<index>.<job>",
    };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Diagnostic::info(
        codes::KUBERNETES_LEFT_OUT,
        format!("role `{}` does not get {}", role.name, names.join(", ")),
    )
    .at_key(&role.at(), "sees more instances than one variable can list")
    .note("a process cannot be started with a variable of more than 128 KiB; the other variables are there")
    .note(format!("the address of an instance is `{host}`"))
}
