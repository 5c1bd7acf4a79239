//! Images that are built: the steps in their order, with build arguments substituted.

use std::sync::Arc;

use camino::{Utf8Component, Utf8Path};
use indexmap::IndexMap;
use jobc_schema::gpu::OneOrMany;
use jobc_schema::image::{Conda, Copy, ImageBlock, Python, Step};
use jobc_schema::plan::{BuildStep, ImageSource};
use jobc_schema::{EnvValue, Pointer};

use super::context::Context;
use super::images::{check_reference, locked};
use super::{files, secrets};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::expression::{Names, Part, Scope, has_expression, split};

/// An image block that is being resolved.
pub(super) struct Build<'a> {
    context: &'a Context<'a>,
    names: Names,
    block: &'a ImageBlock,
    at: &'a Pointer,
}

/// The resolved block.
pub(super) struct ResolvedBuild {
    pub(super) source: ImageSource,
    /// The contents of the files that the image is built from, for its digest.
    pub(super) texts: Vec<String>,
}

impl<'a> Build<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        names: &Names,
        block: &'a ImageBlock,
        at: &'a Pointer,
    ) -> Self {
        let mut names = names.clone();
        names.insert_written(Scope::Args, &Arc::new(block.args.clone()));
        Self { context, names, block, at }
    }

    /// The source of a block that builds with `from` or `dockerfile`.
    pub(super) fn resolve(&self, sink: &mut Sink) -> ResolvedBuild {
        let args: IndexMap<String, String> =
            self.block.args.iter().map(|(name, value)| (name.clone(), value.text.clone())).collect();
        let mut texts = Vec::new();
        if let Some(path) = &self.block.dockerfile {
            let source = self.dockerfile(path, args, &mut texts, sink);
            return ResolvedBuild { source, texts };
        }
        let block = self.block;
        let from_at = self.at.key("from");
        let from = self.reference(block.from.as_deref().unwrap_or_default(), &from_at, sink);
        if from == "host" {
            sink.push(
                Diagnostic::error(codes::IMAGE_FORM, "nothing can be built on `host`")
                    .at(&from_at, "")
                    .note("write an image to build on, or `image: host` to run on the files of the host"),
            );
        }
        let from = locked(self.context, from, &from_at, sink);
        let mut steps = Vec::new();
        if !block.env.is_empty() {
            steps.push(BuildStep::Env(self.env(&block.env, &self.at.key("env"), sink)));
        }
        if block.steps.is_empty() {
            self.default_steps(&mut steps, &mut texts, sink);
        } else {
            self.own_steps(&mut steps, &mut texts, sink);
        }
        for (number, name) in block.secrets.iter().enumerate() {
            secrets::check_secret(self.context, name, &self.at.key("secrets").index(number), sink);
        }
        let fill = |text: &Option<String>, key: &str, sink: &mut Sink| {
            text.as_ref().map(|text| self.fill(text, &self.at.key(key), sink))
        };
        let source = ImageSource::Build {
            from,
            args,
            steps,
            workdir: fill(&block.workdir, "workdir", sink),
            user: fill(&block.user, "user", sink),
            entrypoint: block.entrypoint.as_ref().map(|e| self.list(e, &self.at.key("entrypoint"), sink)),
            labels: block
                .labels
                .iter()
                .map(|(key, text)| (key.clone(), self.fill(text, &self.at.keys(["labels", key]), sink)))
                .collect(),
            platform: fill(&block.platform, "platform", sink),
            secrets: block.secrets.clone(),
        };
        ResolvedBuild { source, texts }
    }

    /// Checks only the references of a block that is not built.
    pub(super) fn check_references(&self, sink: &mut Sink) {
        if let Some(from) = &self.block.from {
            self.reference(from, &self.at.key("from"), sink);
        }
        let copies = self.block.copy.iter().enumerate();
        let copies = copies.map(|(number, copy)| (copy, self.at.key("copy").index(number)));
        let steps = self.block.steps.iter().enumerate();
        let steps = steps.filter_map(|(number, step)| {
            Some((step.copy.as_ref()?, self.at.key("steps").index(number).key("copy")))
        });
        for (copy, at) in copies.chain(steps) {
            if let Some(image) = &copy.image {
                self.reference(image, &at.key("image"), sink);
            }
        }
    }

    /// A reference with its expressions evaluated, checked if possible.
    pub(super) fn reference(&self, text: &str, at: &Pointer, sink: &mut Sink) -> String {
        let before = sink.error_count();
        let reference = self.fill(text, at, sink);
        if sink.error_count() == before {
            check_reference(&reference, at, sink);
        }
        reference
    }

    /// A string with its expressions evaluated.
    pub(super) fn fill(&self, text: &str, at: &Pointer, sink: &mut Sink) -> String {
        if !has_expression(text) {
            return text.to_owned();
        }
        let mut out = String::new();
        for part in split(text).unwrap_or_default() {
            let expression = match part {
                Part::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Expression(expression) => expression,
            };
            match self.context.engine.evaluate(expression.code, &self.names).and_then(|value| value.text()) {
                Ok(text) => out.push_str(&text),
                Err(failure) => {
                    let spans = self.context.variant.late.get(at);
                    let span = spans.and_then(|spans| spans.get(expression.number)).copied();
                    sink.push(failure.diagnose(expression.code, span, Location::value(at)));
                }
            }
        }
        out
    }

    fn dockerfile(
        &self,
        path: &str,
        args: IndexMap<String, String>,
        texts: &mut Vec<String>,
        sink: &mut Sink,
    ) -> ImageSource {
        // The pass that reads the file reports its errors, or that it is missing.
        let text = self.context.files.read(Utf8Path::new(path));
        texts.extend(text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        let context = self.block.context.clone().unwrap_or_else(|| ".".to_owned());
        self.check_there(&context, &self.at.key("context"), sink);
        ImageSource::Dockerfile {
            path: path.to_owned(),
            context,
            target: self.block.target.clone(),
            args,
            // A later pass extracts the facts from the file.
            base: None,
            env: IndexMap::new(),
            entrypoint: vec![],
            locked: IndexMap::new(),
        }
    }

    /// The fixed order: apt, conda, python, copy, run; spec section "Job level".
    fn default_steps(&self, steps: &mut Vec<BuildStep>, texts: &mut Vec<String>, sink: &mut Sink) {
        let block = self.block;
        if !block.apt.is_empty() {
            steps.push(BuildStep::Apt(self.list(&block.apt, &self.at.key("apt"), sink)));
        }
        if let Some(conda) = &block.conda {
            steps.push(BuildStep::Conda(self.conda(conda, &self.at.key("conda"), texts, sink)));
        }
        if let Some(python) = &block.python {
            steps.push(BuildStep::Python(self.python(python, &self.at.key("python"), texts, sink)));
        }
        for (number, copy) in block.copy.iter().enumerate() {
            steps.push(BuildStep::Copy(self.copy(copy, &self.at.key("copy").index(number), sink)));
        }
        for (number, run) in block.run.iter().enumerate() {
            steps.push(BuildStep::Run(self.fill(run, &self.at.key("run").index(number), sink)));
        }
    }

    fn own_steps(&self, steps: &mut Vec<BuildStep>, texts: &mut Vec<String>, sink: &mut Sink) {
        let block = self.block;
        for (number, step) in block.steps.iter().enumerate() {
            self.step(step, &self.at.key("steps").index(number), steps, texts, sink);
        }
    }

    fn step(
        &self,
        step: &Step,
        at: &Pointer,
        steps: &mut Vec<BuildStep>,
        texts: &mut Vec<String>,
        sink: &mut Sink,
    ) {
        if let Some(apt) = &step.apt {
            steps.push(BuildStep::Apt(self.list(apt, &at.key("apt"), sink)));
        }
        if let Some(conda) = &step.conda {
            steps.push(BuildStep::Conda(self.conda(conda, &at.key("conda"), texts, sink)));
        }
        if let Some(python) = &step.python {
            steps.push(BuildStep::Python(self.python(python, &at.key("python"), texts, sink)));
        }
        if let Some(copy) = &step.copy {
            steps.push(BuildStep::Copy(self.copy(copy, &at.key("copy"), sink)));
        }
        if let Some(run) = &step.run {
            steps.push(BuildStep::Run(self.fill(run, &at.key("run"), sink)));
        }
        if let Some(env) = &step.env {
            steps.push(BuildStep::Env(self.env(env, &at.key("env"), sink)));
        }
        if let Some(workdir) = &step.workdir {
            steps.push(BuildStep::Workdir(self.fill(workdir, &at.key("workdir"), sink)));
        }
        if let Some(user) = &step.user {
            steps.push(BuildStep::User(self.fill(user, &at.key("user"), sink)));
        }
    }

    fn list(&self, texts: &[String], at: &Pointer, sink: &mut Sink) -> Vec<String> {
        texts.iter().enumerate().map(|(number, text)| self.fill(text, &at.index(number), sink)).collect()
    }

    fn env(
        &self,
        env: &IndexMap<String, EnvValue>,
        at: &Pointer,
        sink: &mut Sink,
    ) -> IndexMap<String, String> {
        let mut filled = IndexMap::new();
        for (name, value) in env {
            let at = at.key(name);
            match &value.0 {
                Some(scalar) => {
                    filled.insert(name.clone(), self.fill(&scalar.text, &at, sink));
                }
                None => sink.push(
                    Diagnostic::error(codes::IMAGE_FORM, format!("a build cannot remove `{name}`"))
                        .at(&at, "")
                        .note("write an empty string, or remove it from the role's `env`"),
                ),
            }
        }
        filled
    }

    fn conda(&self, conda: &Conda, at: &Pointer, texts: &mut Vec<String>, sink: &mut Sink) -> Conda {
        let channels = self.list(&conda.channels, &at.key("channels"), sink);
        let file = conda.file.as_ref().map(|file| self.made_from(file, &at.key("file"), texts, sink));
        Conda {
            packages: self.list(&conda.packages, &at.key("packages"), sink),
            channels: if channels.is_empty() { vec!["conda-forge".to_owned()] } else { channels },
            file,
        }
    }

    fn python(&self, python: &Python, at: &Pointer, texts: &mut Vec<String>, sink: &mut Sink) -> Python {
        let requirements = python.requirements.as_ref().map(|requirements| {
            let at = at.key("requirements");
            match requirements {
                OneOrMany::One(file) => OneOrMany::One(self.made_from(file, &at, texts, sink)),
                OneOrMany::Many(files) => OneOrMany::Many(
                    files
                        .iter()
                        .enumerate()
                        .map(|(number, file)| self.made_from(file, &at.index(number), texts, sink))
                        .collect(),
                ),
            }
        });
        let fill = |text: &Option<String>, key: &str, sink: &mut Sink| {
            text.as_ref().map(|text| self.fill(text, &at.key(key), sink))
        };
        Python {
            version: fill(&python.version, "version", sink),
            packages: self.list(&python.packages, &at.key("packages"), sink),
            requirements,
            index: fill(&python.index, "index", sink),
            extra_index: self.list(&python.extra_index, &at.key("extra_index"), sink),
        }
    }

    /// A file whose content affects the build.
    fn made_from(&self, file: &str, at: &Pointer, texts: &mut Vec<String>, sink: &mut Sink) -> String {
        let file = self.fill(file, at, sink);
        if is_inside(&file, at, sink) {
            texts.extend(files::read(self.context, &file, at, sink));
        }
        file
    }

    fn copy(&self, copy: &Copy, at: &Pointer, sink: &mut Sink) -> Copy {
        let from = self.fill(&copy.from, &at.key("from"), sink);
        let from_at = at.key("from");
        if copy.image.is_none() && is_inside(&from, &from_at, sink) && !from.contains(['*', '?', '[']) {
            self.check_there(&from, &from_at, sink);
        }
        let fill = |text: &Option<String>, key: &str, sink: &mut Sink| {
            text.as_ref().map(|text| self.fill(text, &at.key(key), sink))
        };
        let image_at = at.key("image");
        let image = copy.image.as_ref().map(|image| self.reference(image, &image_at, sink));
        Copy {
            from,
            to: self.fill(&copy.to, &at.key("to"), sink),
            image: image.map(|image| locked(self.context, image, &image_at, sink)),
            owner: fill(&copy.owner, "owner", sink),
            // Other builders read no `0o`.
            mode: copy.mode.as_ref().map(|mode| mode.replacen("0o", "0", 1)),
        }
    }

    fn check_there(&self, path: &str, at: &Pointer, sink: &mut Sink) {
        if !self.context.files.exists(Utf8Path::new(path)) {
            sink.push(
                Diagnostic::error(codes::MISSING_FILE, format!("`{path}` is not there"))
                    .at(at, "no such file or directory")
                    .note("paths are relative to the job file's directory"),
            );
        }
    }
}

/// Reports a path that leaves the directory of the job file, which a build cannot see.
fn is_inside(path: &str, at: &Pointer, sink: &mut Sink) -> bool {
    let leaves = path.contains("://")
        || Utf8Path::new(path).components().any(|c| {
            matches!(c, Utf8Component::ParentDir | Utf8Component::RootDir | Utf8Component::Prefix(_))
        });
    if leaves {
        sink.push(
            Diagnostic::error(codes::MISSING_FILE, format!("the build of an image cannot see `{path}`"))
                .at(at, "not in the job file's directory")
                .note("a build sees the directory of the job file and what is below it; write a relative path without `..`"),
        );
    }
    !leaves
}
