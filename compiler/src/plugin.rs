//! Backends that are not built in: a program, or a directory of templates. The caller starts programs and reads
//! files; nothing here does.

mod answer;
mod templates;

use jobc_schema::exchange::{CONTRACT, PluginAnswer, PluginManifest, PluginOperation, PluginRequest};
use jobc_schema::plan::JobPlan;
use jobc_schema::target::PluginName;
use jobc_schema::{BackendName, Pointer};

use crate::backend::{Backend, Capability, Context, File, Support};
use crate::diagnostic::render::{Format, TextStyle, render};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::parse::parse;
use crate::source::{Source as Text, Sources};

pub use crate::backend::PluginError;
pub use templates::TemplateSet;

/// Sends a request to a program.
pub type Ask = Box<dyn Fn(&PluginRequest) -> Result<serde_json::Value, PluginError> + Send + Sync>;

/// The implementation of a plug-in.
pub enum Source {
    /// A program that responds to requests.
    Program(Ask),
    /// Templates.
    Templates(TemplateSet),
}

/// A plug-in as a backend.
pub struct PluginBackend {
    name: PluginName,
    manifest: PluginManifest,
    source: Source,
}

impl PluginBackend {
    /// Creates a plug-in from its manifest.
    ///
    /// # Errors
    ///
    /// Fails if the manifest has another version, or names unknown features.
    pub fn new(name: PluginName, manifest: PluginManifest, source: Source) -> Result<Self, PluginError> {
        check_contract(manifest.contract)?;
        let named = manifest.expresses.iter().chain(manifest.lossy.keys()).chain(manifest.refuses.keys());
        for feature in named {
            if !Capability::TABLE.iter().any(|(_, words)| words == feature) {
                let known = Capability::TABLE.iter().map(|(_, words)| *words);
                let near = crate::suggest::nearest(feature, known);
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                return Err(format!(
                    "its manifest names the unknown feature `{feature}`{near}; `jobc backends` lists the features"
                ).into());
            }
        }
        if matches!(source, Source::Program(_)) && !manifest.templates.is_empty() {
            return Err("its manifest has `templates`, which only `backend.yaml` may have".into());
        }
        Ok(Self { name, manifest, source })
    }

    /// Requests the manifest of a program.
    ///
    /// # Errors
    ///
    /// Fails if its response violates the contract.
    pub fn of_program(name: PluginName, ask: Ask) -> Result<Self, PluginError> {
        let request = PluginRequest { contract: CONTRACT, operation: PluginOperation::Describe };
        let answer = ask(&request)?;
        let manifest: PluginManifest =
            serde_json::from_value(answer).map_err(|error| format!("its manifest is not valid: {error}"))?;
        Self::new(name, manifest, Source::Program(ask))
    }

    /// Its manifest.
    pub fn manifest(&self) -> &PluginManifest {
        &self.manifest
    }

    fn answer(&self, job: &JobPlan, context: &Context<'_>) -> Result<PluginAnswer, PluginError> {
        let to_job = format!("../{}", context.to_job);
        let settings = job.target.settings.plugins.get(self.name.as_str()).cloned().unwrap_or_default();
        match &self.source {
            Source::Templates(templates) => templates.render(&self.manifest, job, &settings, &to_job),
            Source::Program(ask) => {
                let operation = PluginOperation::Lower {
                    plan: Box::new(job.clone()),
                    settings,
                    allow_lossy: context.losses.allowed(),
                    to_job,
                };
                let answer = ask(&PluginRequest { contract: CONTRACT, operation })?;
                Ok(serde_json::from_value(answer)
                    .map_err(|error| format!("its answer is not valid: {error}"))?)
            }
        }
    }
}

/// Reads the manifest of templates, `backend.yaml`.
///
/// # Errors
///
/// Fails if it is not YAML, or violates the contract; the error has the line.
pub fn read_manifest(text: &str) -> Result<PluginManifest, PluginError> {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let id = sources.add(Text::new("backend.yaml", text));
    let document = parse(&sources, id, &mut sink).filter(|_| !sink.has_errors());
    let Some(document) = document else {
        let style = TextStyle::default();
        let found = render(Format::Short, &sources, &sink.finish(), &style);
        return Err(found.lines().next().unwrap_or("it is empty").into());
    };
    Ok(serde_json::from_value(document.to_json()).map_err(|error| error.to_string())?)
}

fn check_contract(version: u32) -> Result<(), PluginError> {
    if version == CONTRACT {
        return Ok(());
    }
    Err(format!("it speaks version {version} of the contract, and this jobc version {CONTRACT}").into())
}

impl Backend for PluginBackend {
    fn name(&self) -> BackendName {
        BackendName::Plugin(self.name)
    }

    fn about(&self) -> &str {
        &self.manifest.about
    }

    fn support(&self, capability: Capability, _job: &JobPlan) -> Support {
        let Some((_, words)) = Capability::TABLE.iter().find(|(known, _)| *known == capability) else {
            return Support::None("the contract of plug-ins has no word for it".to_owned());
        };
        if self.manifest.expresses.iter().any(|feature| feature == words) {
            return Support::Full;
        }
        if let Some(why) = self.manifest.lossy.get(*words) {
            return Support::Lossy(why.clone());
        }
        let why = self.manifest.refuses.get(*words).cloned();
        Support::None(
            why.unwrap_or_else(|| format!("the plug-in does not list `{words}` among what it expresses")),
        )
    }

    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File> {
        let answer = self.answer(job, context).and_then(|answer| {
            check_contract(answer.contract)?;
            answer::files(answer, sink)
        });
        answer.unwrap_or_else(|why| {
            sink.push(failed(job, self.name, &why));
            vec![]
        })
    }

    /// Programs are not started only to get findings: an editor checks after every keystroke.
    fn check(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) {
        if matches!(self.source, Source::Templates(_)) {
            self.lower(job, context, sink);
        }
    }
}

/// The error for a plug-in that violates the contract.
pub(crate) fn failed(job: &JobPlan, name: PluginName, why: &PluginError) -> Diagnostic {
    let wanted = &job.target.settings.backends;
    let index = wanted.iter().position(|wanted| wanted.as_str() == name.as_str()).unwrap_or_default();
    Diagnostic::error(codes::PLUGIN_FAILED, format!("the plug-in `{}` failed: {why}", name.as_str()))
        .at_place(backend_at(job, index), "")
        .note(format!("`jobc backend test {}` shows what it does", name.as_str()))
}

/// An item of a target's list of backends.
pub(crate) fn backend_at(job: &JobPlan, index: usize) -> Location {
    Location::target(&Pointer::ROOT.keys(["targets", &job.target.name, "backends"]).index(index))
}
