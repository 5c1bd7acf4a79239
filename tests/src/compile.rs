//! Compiling one job with everything that belongs to it, and what came of it.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::adjust::Adjustments;
use jobc_compiler::backend::{Backend, Losses, PluginError, Plugins};
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_compiler::compile::{Output, Request, build, check_all, lower_all, plan};
use jobc_compiler::diagnostic::render::{Format, TextStyle, render};
use jobc_compiler::diagnostic::{Code, Diagnostic, Severity, Sink, codes};
use jobc_compiler::files::Files;
use jobc_compiler::lock::Locking;
use jobc_compiler::lower::BackendOutput;
use jobc_compiler::source::{Source, Sources};
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use jobc_schema::target::GpuInjection;
use jobc_schema::target::PluginName;

use crate::disk::DiskFiles;

/// What of the command line a case may set.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// `--target`.
    pub targets: Vec<String>,
    /// `--backend`.
    pub backends: Vec<BackendName>,
    /// `--set`.
    pub set: Vec<(String, String)>,
    /// `--params`.
    pub params: Vec<Utf8PathBuf>,
    /// `--allow-lossy`, or more.
    pub losses: Losses,
    /// `--gpu-injection`.
    pub gpu_injection: Option<GpuInjection>,
    /// `--locked`.
    pub locking: Locking,
    /// The environment, instead of that of the test: `NAME=value` in a file of options.
    pub environment: BTreeMap<String, String>,
    /// `--scale` and `--no-gpu`.
    pub adjustments: Adjustments,
}

impl Arguments {
    /// Reads a file of options, one a line: `--target lab`, `--set a=b`, `--allow-lossy`.
    ///
    /// # Panics
    /// On an option it does not know: a case that asks for nothing tests nothing.
    pub fn parse(text: &str) -> Self {
        let mut arguments = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (option, value) = line.split_once(' ').unwrap_or((line, ""));
            arguments.add(option, value);
        }
        arguments
    }

    /// Reads the options of a command: `jobc build --target lab --allow-lossy`.
    ///
    /// # Panics
    /// As [`Arguments::parse`].
    pub fn of_command(command: &str) -> Self {
        let mut arguments = Self::default();
        let mut words = command.split_whitespace().skip_while(|word| !word.starts_with("--")).peekable();
        while let Some(option) = words.next() {
            let value = words.next_if(|word| !word.starts_with("--")).unwrap_or_default();
            arguments.add(option, value);
        }
        arguments
    }

    fn add(&mut self, option: &str, value: &str) {
        match option {
            "--target" => self.targets.push(value.to_owned()),
            "--backend" => self.backends.push(backend(value)),
            "--set" => {
                let (name, value) =
                    value.split_once('=').unwrap_or_else(|| panic!("no `=` in `--set {value}`"));
                self.set.push((name.to_owned(), value.to_owned()));
            }
            "--params" => self.params.push(value.into()),
            "--allow-lossy" => self.losses = Losses::Allow,
            "--locked" => self.locking = Locking::Required,
            "--no-gpu" => self.adjustments.no_gpu = true,
            "--scale" => {
                let (role, number) = value.split_once('=').unwrap_or_default();
                let number = number.parse().unwrap_or_else(|_| panic!("no number in `--scale {value}`"));
                self.adjustments.scale.push((role.to_owned(), number));
            }
            "--gpu-injection" => {
                let how = serde_json::from_value(value.into());
                self.gpu_injection = Some(how.unwrap_or_else(|_| panic!("no such injection: `{value}`")));
            }
            _ => match option.split_once('=') {
                Some((name, value)) if !name.starts_with('-') => {
                    self.environment.insert(name.to_owned(), value.to_owned());
                }
                _ => panic!("no such option: `{option}`"),
            },
        }
    }
}

fn backend(name: &str) -> BackendName {
    BackendName::ALL
        .into_iter()
        .find(|known| known.as_str() == name)
        .unwrap_or_else(|| panic!("no such backend: `{name}`"))
}

/// The texts of a case, before they are compiled.
pub struct Case<'a> {
    /// The job file.
    pub job: Source,
    /// `targets.yaml`, where there is one.
    pub targets: Option<Source>,
    /// Parameter files.
    pub params: Vec<Source>,
    /// The rest of the command line.
    pub arguments: Arguments,
    /// The files next to the job file.
    pub files: &'a dyn Files,
}

/// The findings and files of a compilation.
pub struct Compilation {
    /// The texts that the findings point into.
    pub sources: Sources,
    /// The findings, in order.
    pub findings: Vec<Diagnostic>,
    /// The files; none where there were errors.
    pub outputs: Vec<Output>,
    /// What the backends meant, before it became bytes.
    pub lowered: Vec<(JobPlan, Vec<BackendOutput>)>,
}

impl Case<'_> {
    /// Resolves the job, and lowers nothing: the jobs, and the findings.
    pub fn plan(self) -> (Option<Vec<JobPlan>>, Vec<Diagnostic>) {
        self.with_request(|mut sources, request| {
            let mut sink = Sink::new();
            let planned = plan(&mut sources, request, &mut sink);
            (planned.map(|planned| planned.jobs), sink.finish())
        })
    }

    /// Runs all passes.
    pub fn compile(self) -> Compilation {
        self.with_request(|mut sources, request| {
            let mut sink = Sink::new();
            let planned = plan(&mut sources, request, &mut sink);
            let lowered = planned.as_ref().map(|planned| {
                let lowered = {
                    let (mut checked, mut lowered) = (Sink::new(), Sink::new());
                    check_all(&sources, planned, request, &mut checked);
                    let files = lower_all(&sources, planned, request, &mut lowered);
                    let mut found = lowered.finish();
                    // `check` is also for `jobc submit`, which builds images.
                    found.retain(|finding| {
                        finding.code != codes::REFUSED
                            || !finding.notes.iter().any(|note| note.contains("`jobc submit`"))
                    });
                    assert_eq!(checked.finish(), found, "`check` and `build` find the same");
                    files
                };
                planned.jobs.iter().cloned().zip(lowered).collect()
            });
            let outputs = planned.map(|planned| build(&sources, planned, request, &mut sink));
            let (outputs, lowered) = (outputs.unwrap_or_default(), lowered.unwrap_or_default());
            Compilation { findings: sink.finish(), outputs, lowered, sources }
        })
    }

    fn with_request<T>(self, run: impl FnOnce(Sources, &Request<'_>) -> T) -> T {
        let mut sources = Sources::new();
        let environment = self.arguments.environment;
        let job = sources.add(self.job);
        let targets = self.targets.map(|source| sources.add(source));
        let params = self.params.into_iter().map(|source| sources.add(source)).collect();
        // `out/<job>/<target>/` is next to the job file.
        let to_job = |_: &str| Utf8PathBuf::from("../../..");
        let request = Request {
            targets,
            set: self.arguments.set,
            params,
            only_targets: self.arguments.targets,
            environment: Some(&|name| environment.get(name).cloned()),
            only_backends: self.arguments.backends,
            losses: self.arguments.losses,
            gpu_injection: self.arguments.gpu_injection,
            plugins: Some(&NoPlugins),
            locking: self.arguments.locking,
            adjustments: self.arguments.adjustments,
            ..Request::new(job, self.files, &to_job)
        };
        run(sources, &request)
    }
}

impl Compilation {
    /// The findings, a line each.
    pub fn short(&self) -> String {
        render(Format::Short, &self.sources, &self.findings, &TextStyle::default())
    }

    /// The findings with excerpts, as a pipe gets them.
    pub fn text(&self) -> String {
        render(Format::Text, &self.sources, &self.findings, &TextStyle::default())
    }

    /// Whether a code was given.
    pub fn has(&self, code: Code) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }

    /// How many findings are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Compiles a job file with the `targets.yaml` beside it and the options in the file `args` there.
///
/// Findings name files by their last part alone, so that they do not depend on the directory.
///
/// # Panics
/// If a file of the case cannot be read.
pub fn compile_directory(job: &Utf8Path) -> Compilation {
    let arguments = job.with_file_name("args");
    let arguments =
        if arguments.is_file() { Arguments::parse(&text(&arguments)) } else { Arguments::default() };
    compile_with(job, arguments)
}

/// As above, with other options.
///
/// # Panics
/// If a file of the case cannot be read.
pub fn compile_with(job: &Utf8Path, arguments: Arguments) -> Compilation {
    let directory = job.parent().expect("a job file lies in a directory");
    let source = |path: &Utf8Path| Source::new(path.file_name().expect("a file has a name"), text(path));
    let targets = directory.join("targets.yaml");
    let files = DiskFiles(directory.to_owned());
    Case {
        job: source(job),
        targets: targets.is_file().then(|| source(&targets)),
        params: arguments.params.iter().map(|path| source(&directory.join(path))).collect(),
        arguments,
        files: &files,
    }
    .compile()
}

fn text(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compiles for the default target and, until a code is given, for each built-in target by its name.
///
/// What a target cannot express is an error only where somebody asked for that target. The result comes with the
/// target that gave the code; with the first result where none does.
pub fn until(
    code: Code,
    arguments: &Arguments,
    mut compile: impl FnMut(Arguments) -> Compilation,
) -> (Option<&'static str>, Compilation) {
    let first = compile(arguments.clone());
    if first.has(code) || !arguments.targets.is_empty() {
        return (None, first);
    }
    for (name, _) in built_in_targets() {
        let compiled = compile(Arguments { targets: vec![name.to_owned()], ..arguments.clone() });
        if compiled.has(code) {
            return (Some(name), compiled);
        }
    }
    (None, first)
}

/// A host without plug-ins.
struct NoPlugins;

impl Plugins for NoPlugins {
    fn find(&self, _name: PluginName) -> Result<Option<&dyn Backend>, PluginError> {
        Ok(None)
    }
}
