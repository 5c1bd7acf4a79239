//! Backend `openpai`: one protocol v2 job for an OpenPAI cluster.
//!
//! The file satisfies the published schema (openpai-protocol) and what a rest-server checks (pai,
//! `config/v2/protocol.js`), which differ; `docs/reference/openpai.md` has the table of fields.

mod extras;
mod names;
mod protocol_fields;
mod resources;
mod role;
mod script;
mod shell;
mod storage;
mod support;
#[cfg(test)]
mod tests;

use indexmap::IndexMap;
use jobc_schema::plan::{JobPlan, Launch, SecretPlan};
use jobc_schema::reference::split_registry;
use jobc_schema::role::RetryScope;
use jobc_schema::{BackendName, Pointer};
use serde_json::{Map, Value, json};

use crate::backend::{Backend, Capability, Content, Context, File, FilePart, Origin, PartSource, Support};
use crate::diagnostic::Sink;
use crate::openpai::Names;

use protocol_fields::ProtocolFields;

/// The maximum number of retries that OpenPAI's controller accepts; `unlimited` becomes this number.
const MAX_RETRIES: u32 = 2_147_483_647;

/// Writes an OpenPAI protocol v2 job.
#[derive(Debug)]
pub struct OpenpaiBackend;

impl Backend for OpenpaiBackend {
    fn name(&self) -> BackendName {
        BackendName::Openpai
    }

    fn about(&self) -> &'static str {
        "an OpenPAI protocol v2 job"
    }

    fn support(&self, capability: Capability, job: &JobPlan) -> Support {
        support::support(capability, job)
    }

    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File> {
        names::check(job, sink);
        let settings = job.target.settings.openpai.as_ref();
        let mut out = Lowering {
            job,
            context,
            sink,
            names: Names::new(settings),
            some_serve: job.roles.iter().any(|role| role.launch != Launch::All),
            kept: ProtocolFields::new(job),
            secrets: IndexMap::new(),
            origins: vec![],
        };
        let yaml = out.job();
        let mut file = File::new("job.yaml", Content::Yaml(yaml));
        file.origins = out.origins;
        vec![file]
    }
}

/// A job that is being converted to the protocol.
struct Lowering<'a> {
    job: &'a JobPlan,
    context: &'a Context<'a>,
    sink: &'a mut Sink,
    /// The names of roles and ports in OpenPAI.
    names: Names<'a>,
    /// Whether some instances only serve: they never end by themselves.
    some_serve: bool,
    /// Fields kept from the original OpenPAI job.
    kept: ProtocolFields,
    /// Secrets in use, by their name in the protocol; the values are placeholders.
    secrets: IndexMap<String, String>,
    origins: Vec<Origin>,
}

impl Lowering<'_> {
    fn job(&mut self) -> Value {
        let job = self.job;
        let root = Pointer::ROOT;
        let mut out = Map::new();
        out.insert("protocolVersion".into(), 2.into());
        out.insert("name".into(), self.names.job(&job.name).into());
        self.origin(&root.key("name"), &root.key("name"));
        out.insert("type".into(), "job".into());
        if let Some(description) = &job.description {
            out.insert("description".into(), description.clone().into());
            self.origin(&root.key("description"), &root.key("description"));
        }
        let prerequisites = self.images();
        let roles: Map<String, Value> =
            job.roles.iter().map(|role| (self.names.role(&role.name), self.role(role))).collect();
        let extras = self.extras();
        out.insert("prerequisites".into(), prerequisites);
        if self.kept.is_from_openpai() {
            // They may be used in what is kept.
            job.secrets.keys().for_each(|name| _ = self.secret(name));
        }
        if !self.secrets.is_empty() {
            out.insert("secrets".into(), json!(self.secrets));
        }
        let retries = job.roles.iter().filter(|role| role.retry.scope == RetryScope::Job);
        if let Some(count) = retries.map(|role| role.retry.max).max().filter(|count| *count > 0) {
            out.insert("jobRetryCount".into(), count.min(MAX_RETRIES).into());
            self.origin(&root.key("jobRetryCount"), &root.key("retry"));
        }
        out.insert("taskRoles".into(), roles.into());
        let settings = job.target.settings.openpai.as_ref();
        if let Some(cluster) = settings.and_then(|settings| settings.virtual_cluster.as_ref()) {
            out.insert("defaults".into(), json!({ "virtualCluster": cluster }));
            self.target_origin(&root.keys(["defaults", "virtualCluster"]), "virtual_cluster");
        }
        out.insert("extras".into(), extras);
        self.kept.finish_job(out).into()
    }

    /// The name of the `dockerimage` prerequisite of an image.
    fn image_name(&self, image: &str) -> String {
        let kept = self.job.images.get(image).and_then(|plan| self.kept.image(image, &plan.reference));
        let kept = kept.and_then(|number| self.kept.prerequisites().get(number)?.get("name")?.as_str());
        kept.map_or_else(|| names::image(image), str::to_owned)
    }

    /// The kept prerequisites, and one of type `dockerimage` for each other image that a role runs in.
    fn images(&mut self) -> Value {
        let job = self.job;
        let mut items: Vec<Value> = Vec::new();
        for (name, image) in &job.images {
            if !job.roles.iter().any(|role| role.image == *name) {
                continue;
            }
            let uri = match &job.target.settings.registry {
                Some(registry) if image.source.is_built() => {
                    format!("{}/{}", registry.trim_end_matches('/'), image.reference)
                }
                _ => image.reference.clone(),
            };
            let at = Pointer::ROOT.key("prerequisites").index(self.kept.prerequisites().len() + items.len());
            if let Some(number) = self.kept.image(name, &uri) {
                let at = Pointer::ROOT.key("prerequisites").index(number);
                self.origin(&at.key("uri"), &image.declared_at);
                continue;
            }
            self.origin(&at.key("uri"), &image.declared_at);
            let mut item = json!({"name": names::image(name), "type": "dockerimage", "uri": uri});
            if let Some((host, login)) = job.registries.get_key_value(split_registry(&uri).0) {
                let password = self.secret(&login.password_secret);
                item["auth"] = json!({"username": login.username, "password": password, "registryuri": host});
                self.origin(&at.key("auth"), &Pointer::ROOT.keys(["registries", host]));
            }
            items.push(item);
        }
        let mut all = self.kept.prerequisites().to_vec();
        all.extend(items);
        all.into()
    }

    /// Records that a secret is used and returns the placeholder of its value.
    fn secret(&mut self, name: &str) -> String {
        let placeholder = match self.job.secrets.get(name) {
            Some(SecretPlan::Env(variable)) => format!("${{env:{variable}}}"),
            Some(SecretPlan::File(path)) => format!("${{file:{path}}}"),
            Some(SecretPlan::Store { name, key }) => format!("${{store:{name}/{key}}}"),
            None => format!("${{secret:{name}}}"),
        };
        let called = name.to_owned();
        if self.secrets.insert(called.clone(), placeholder).is_none() {
            let at = Pointer::ROOT.keys(["secrets", &called]);
            self.origin(&at, &Pointer::ROOT.keys(["secrets", name]));
        }
        format!("<% $secrets.{called} %>")
    }

    /// Notes that a part of the output comes from a place of the job file.
    fn origin(&mut self, part: &Pointer, spec: &Pointer) {
        self.origins
            .push(Origin { part: FilePart::Pointer(part.clone()), from: PartSource::Spec(spec.clone()) });
    }

    /// Notes that a part of the output comes from a setting of the target, below `openpai`.
    fn target_origin(&mut self, part: &Pointer, setting: &str) {
        let from = PartSource::Target(Pointer::ROOT.keys(["openpai", setting]));
        self.origins.push(Origin { part: FilePart::Pointer(part.clone()), from });
    }
}
