//! Finding and reading what a command names: the job file, `targets.yaml`, parameter files.

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::adjust::Adjustments;
use jobc_compiler::compile::Request;
use jobc_compiler::files;
use jobc_compiler::lock::Locking;
use jobc_compiler::source::{Source, SourceId, Sources};

use crate::args::JobArgs;
use crate::disk::DiskFiles;

/// A job file with everything that belongs to it, read.
pub(crate) struct Input {
    /// All texts.
    pub sources: Sources,
    /// The job file's folder, absolute.
    pub folder: Utf8PathBuf,
    /// The job file as it was named.
    name: Utf8PathBuf,
    files: DiskFiles,
    job: SourceId,
    targets: Option<SourceId>,
    params: Vec<SourceId>,
}

/// Why an input cannot be used, in words for a person.
pub(crate) struct Unusable(pub String);

pub(crate) const JOB_NAMES: [&str; 3] = ["job.yaml", "job.yml", "job.json"];
/// What standard input is called in findings.
const STDIN: &str = "<stdin>";

impl Input {
    /// Reads what the arguments name.
    pub(crate) fn read(args: &JobArgs) -> Result<Self, Unusable> {
        let mut sources = Sources::new();
        let path = job_path(args.job.as_deref())?;
        let (folder, text) = if path == "-" {
            (absolute(Utf8Path::new("."))?, read_stdin()?)
        } else {
            (folder_of(&path)?, read(&path)?)
        };
        let name = if path == "-" { Utf8PathBuf::from(STDIN) } else { path };
        let job = sources.add(Source::new(name.clone(), text));
        let targets = match &args.targets {
            Some(path) => Some(path.clone()),
            None => find_targets(&folder).map(|path| shorten(&path)),
        };
        let targets =
            targets.map(|path| Ok(sources.add(Source::new(path.clone(), read(&path)?)))).transpose()?;
        let params = args
            .params
            .iter()
            .map(|path| Ok(sources.add(Source::new(path.clone(), read(path)?))))
            .collect::<Result<_, _>>()?;
        let files = DiskFiles::new(folder.clone());
        Ok(Self { sources, folder, name, files, job, targets, params })
    }

    /// The job file, absolute as far as its name can be; `<stdin>` for standard input.
    #[cfg(target_os = "linux")]
    pub(crate) fn path(&self) -> Utf8PathBuf {
        if self.name == STDIN {
            self.name.clone()
        } else {
            self.folder.join(self.name.file_name().unwrap_or_default())
        }
    }

    /// What the compiler is asked; `to_job` tells the way from an output folder back.
    pub(crate) fn request<'a>(
        &'a self,
        args: &JobArgs,
        to_job: &'a dyn Fn(&str) -> Utf8PathBuf,
    ) -> Request<'a> {
        Request {
            job: self.job,
            targets: self.targets,
            set: args.set.clone(),
            params: self.params.clone(),
            only_targets: args.target.clone(),
            run_here: false,
            gpus_here: None,
            only_backends: args.backend.clone(),
            allow_lossy: args.allow_lossy,
            gpu_injection: args.gpu_injection.map(Into::into),
            locking: if args.locked { Locking::Required } else { Locking::Followed },
            adjustments: Adjustments::default(),
            files: &self.files,
            to_job,
        }
    }
}

/// Reads a file, or standard input where it is `-`, with the name it has in findings.
pub(crate) fn read_one(path: &Utf8Path) -> Result<Source, Unusable> {
    if path == "-" { Ok(Source::new(STDIN, read_stdin()?)) } else { Ok(Source::new(path, read(path)?)) }
}

fn job_path(given: Option<&Utf8Path>) -> Result<Utf8PathBuf, Unusable> {
    let Some(given) = given else {
        let found = JOB_NAMES.iter().map(Utf8Path::new).find(|path| path.is_file());
        return found.map(Utf8Path::to_owned).ok_or_else(|| {
            Unusable("there is no job.yaml here; name a job file, or write one with `jobc init`".to_owned())
        });
    };
    if given.is_dir() {
        let found = JOB_NAMES.iter().map(|name| given.join(name)).find(|path| path.is_file());
        return found.ok_or_else(|| Unusable(format!("`{given}` is a folder without a job.yaml")));
    }
    Ok(given.to_owned())
}

/// Reads a file as text; what is no UTF-8 is refused with the line where it stops being so.
pub(crate) fn read(path: &Utf8Path) -> Result<String, Unusable> {
    let bytes =
        std::fs::read(path).map_err(|error| Unusable(format!("cannot read `{path}`: {}", reason(&error))))?;
    text(bytes, path.as_str())
}

fn read_stdin() -> Result<String, Unusable> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Unusable(format!("cannot read standard input: {}", reason(&error))))?;
    text(bytes, STDIN)
}

fn text(bytes: Vec<u8>, name: &str) -> Result<String, Unusable> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Unusable(format!("`{name}` is UTF-16; save it as UTF-8"));
        }
        let line = bytes[..valid].iter().filter(|&&b| b == b'\n').count() + 1;
        Unusable(format!("`{name}` is not UTF-8 from line {line} on; save it as UTF-8"))
    })
}

/// The system's words for an error, without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string().to_lowercase();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn folder_of(path: &Utf8Path) -> Result<Utf8PathBuf, Unusable> {
    let parent = path.parent().filter(|p| !p.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    if !path.exists() {
        return Err(Unusable(format!("cannot read `{path}`: no such file")));
    }
    absolute(parent)
}

/// The real absolute path of a folder.
pub(crate) fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, Unusable> {
    path.canonicalize_utf8().map_err(|error| Unusable(format!("cannot use `{path}`: {}", reason(&error))))
}

/// `targets.yaml` beside the job file, or in a parent folder up to the root of the repository.
pub(crate) fn find_targets(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    files::find_targets(
        folder,
        |path| if path.file_name() == Some(".git") { path.exists() } else { path.is_file() },
    )
}

/// A path as a person here would write it: relative to this folder where it lies in it.
pub(crate) fn shorten(path: &Utf8Path) -> Utf8PathBuf {
    let here = Utf8PathBuf::from_path_buf(std::env::current_dir().unwrap_or_default()).unwrap_or_default();
    let short = relative(path, &here);
    if short.as_str().len() < path.as_str().len() { short } else { path.to_owned() }
}

/// The way from one absolute folder to a path, by names alone.
pub(crate) fn relative(path: &Utf8Path, from: &Utf8Path) -> Utf8PathBuf {
    let common = path.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..");
    let down = path.components().skip(common).map(|part| part.as_str());
    let way: Utf8PathBuf = up.chain(down).collect();
    if way.as_str().is_empty() { ".".into() } else { way }
}
