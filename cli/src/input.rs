//! Finds and reads the input of a command: the job file, `targets.yaml`, parameter files.

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::backend::Losses;
use jobc_compiler::compile::Request;
use jobc_compiler::files;
use jobc_compiler::import::Selection;
use jobc_compiler::lock::Locking;
use jobc_compiler::source::{Source, SourceId, Sources};

use crate::args::{JobArgs, SelectionArgs};
use crate::disk::DiskFiles;
use crate::platform::files::canonicalize;
use crate::plugins::InstalledPlugins;
use crate::{boundary, confine, inputs, watch};

/// A job file with all files that belong to it.
pub(crate) struct Input {
    /// All texts.
    pub sources: Sources,
    /// The job file's directory, absolute.
    pub directory: Utf8PathBuf,
    files: DiskFiles,
    plugins: InstalledPlugins,
    /// The job file, by its name on the command line or [`STDIN`].
    pub job: SourceId,
    /// The targets file, if there is one.
    pub targets: Option<SourceId>,
    params: Vec<SourceId>,
    selection: Selection,
}

/// Why an input cannot be used, as a message.
pub(crate) struct InputError(pub String);

pub(crate) const JOB_FILE_NAMES: [&str; 3] = ["job.yaml", "job.yml", "job.json"];
/// The name of stdin in findings.
pub(crate) const STDIN: &str = "<stdin>";

impl Input {
    /// Reads the files of the arguments.
    pub(crate) fn read(args: &JobArgs) -> Result<Self, InputError> {
        let path = job_path(args.job.as_deref())?;
        if path == "-" {
            return Self::with_text(Source::new(STDIN, read_stdin()?), args);
        }
        let (directory, text) = (directory_of(&path)?, read(&path)?);
        Self::with_files(directory, Source::new(path, text), args)
    }

    /// A job without a file, in the current directory, with the files of the arguments.
    pub(crate) fn with_text(job: Source, args: &JobArgs) -> Result<Self, InputError> {
        Self::with_files(absolute(Utf8Path::new("."))?, job, args)
    }

    fn with_files(directory: Utf8PathBuf, job: Source, args: &JobArgs) -> Result<Self, InputError> {
        let mut sources = Sources::new();
        let job = sources.add(job);
        let targets = match &args.targets {
            Some(path) => Some(path.clone()),
            None => find_targets(&directory).map(|path| shorten(&path)),
        };
        let plugins = InstalledPlugins::new(targets.as_deref().and_then(Utf8Path::parent), &directory);
        let targets =
            targets.map(|path| Ok(sources.add(Source::new(path.clone(), read(&path)?)))).transpose()?;
        let params = args
            .params
            .iter()
            .map(|path| Ok(sources.add(Source::new(path.clone(), read(path)?))))
            .collect::<Result<_, _>>()?;
        let selection = selection(&args.selection, &mut sources)?;
        let files = DiskFiles::new(directory.clone());
        Ok(Self { sources, directory, files, plugins, job, targets, params, selection })
    }

    /// The request to the compiler; `to_job` is the way from an output directory back to the job.
    pub(crate) fn request<'a>(
        &'a self,
        args: &JobArgs,
        to_job: &'a dyn Fn(&str) -> Utf8PathBuf,
    ) -> Request<'a> {
        Request {
            targets: self.targets,
            set: args.set.clone(),
            params: self.params.clone(),
            selection: self.selection.clone(),
            only_targets: args.target.clone(),
            environment: Some(&|name| {
                let value = std::env::var(name).ok();
                inputs::note_variable(name, value.as_deref());
                value
            }),
            only_backends: args.backend.clone(),
            losses: Losses::new(args.allow_lossy),
            gpu_injection: args.gpu_injection.map(Into::into),
            locking: if args.locked { Locking::Required } else { Locking::Followed },
            plugins: Some(&self.plugins),
            ..Request::new(self.job, &self.files, to_job)
        }
    }
}

/// What the user chooses of a file of another tool; the named files are added to the sources.
pub(crate) fn selection(args: &SelectionArgs, sources: &mut Sources) -> Result<Selection, InputError> {
    let mut files = Vec::new();
    for path in &args.file {
        files.push(sources.add(read_source(path)?));
    }
    let only_named = !files.is_empty();
    Ok(Selection {
        name: args.name.clone(),
        files,
        profiles: args.profile.clone(),
        only_named,
        ..Selection::default()
    })
}

/// Reads a file, or stdin for `-`, with its name in findings.
pub(crate) fn read_source(path: &Utf8Path) -> Result<Source, InputError> {
    if path == "-" { Ok(Source::new(STDIN, read_stdin()?)) } else { Ok(Source::new(path, read(path)?)) }
}

/// The job file that an argument means.
pub(crate) fn job_path(given: Option<&Utf8Path>) -> Result<Utf8PathBuf, InputError> {
    let Some(given) = given else {
        let found = JOB_FILE_NAMES.iter().map(Utf8Path::new).find(|path| path.is_file());
        return found.map(Utf8Path::to_owned).ok_or_else(|| {
            let like = file_like_a_job(Utf8Path::new("."));
            let like = like.map(|name| format!(", such as `{name}`")).unwrap_or_default();
            InputError(format!(
                "no job.yaml in the current directory; name a job file{like}, or create one with `jobc init`"
            ))
        });
    };
    if given.is_dir() {
        let found = JOB_FILE_NAMES.iter().map(|name| given.join(name)).find(|path| inputs::is_file(path));
        return found.ok_or_else(|| {
            let like = file_like_a_job(given);
            let like = like.map(|name| format!("; name its job file, such as `{}`", given.join(name)));
            InputError(format!("`{given}` is a directory without a job.yaml{}", like.unwrap_or_default()))
        });
    }
    Ok(given.to_owned())
}

/// The first file of a directory that has the key `roles` of job files.
fn file_like_a_job(directory: &Utf8Path) -> Option<String> {
    let names = directory.read_dir_utf8().ok()?.flatten().map(|entry| entry.file_name().to_owned());
    let is_yaml = |name: &String| [".yaml", ".yml"].iter().any(|ending| name.ends_with(ending));
    let is_job = |name: &String| {
        let text = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        text.lines().any(|line| line.starts_with("roles:"))
    };
    let mut names: Vec<String> = names.filter(is_yaml).filter(is_job).collect();
    names.sort();
    names.into_iter().next()
}

/// Reads a file as text; other encodings than UTF-8 are rejected with the line.
pub(crate) fn read(path: &Utf8Path) -> Result<String, InputError> {
    watch::note(path);
    let bytes = confine::permit(path).and_then(|()| std::fs::read(path));
    inputs::note_content(path, bytes.as_deref().ok());
    let bytes = bytes.map_err(|error| InputError(format!("cannot read `{path}`: {}", reason(&error))))?;
    text(bytes, path.as_str())
}

fn read_stdin() -> Result<String, InputError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| InputError(format!("cannot read standard input: {}", reason(&error))))?;
    text(bytes, STDIN)
}

fn text(bytes: Vec<u8>, name: &str) -> Result<String, InputError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return InputError(format!("`{name}` is UTF-16; save it as UTF-8"));
        }
        let line = bytes[..valid].iter().filter(|&&b| b == b'\n').count() + 1;
        InputError(format!("`{name}` is not UTF-8 from line {line} on; save it as UTF-8"))
    })
}

/// The message of a system error, without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string().to_lowercase();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The real absolute path of the directory of a file.
pub(crate) fn directory_of(path: &Utf8Path) -> Result<Utf8PathBuf, InputError> {
    let parent = path.parent().filter(|p| !p.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    if !path.exists() {
        return Err(InputError(format!("cannot read `{path}`: no such file")));
    }
    absolute(parent)
}

/// The real absolute path of a directory.
pub(crate) fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, InputError> {
    canonicalize(path).map_err(|error| InputError(format!("cannot use `{path}`: {}", reason(&error))))
}

/// `targets.yaml` next to the job file, or in a parent directory up to the root of the repository; outside a repository,
/// up to the home directory or the last one that is the user's ([`boundary::is_last`]).
pub(crate) fn find_targets(directory: &Utf8Path) -> Option<Utf8PathBuf> {
    let exists = |path: &Utf8Path| {
        watch::note(path);
        if path.file_name() == Some(".git") {
            let exists = path.exists();
            inputs::note_existence(path, exists);
            return exists;
        }
        inputs::is_file(path) && confine::permit(path).is_ok()
    };
    files::find_targets(directory, exists, |directory| boundary::is_last(directory.as_std_path()))
}

/// A path for messages: relative if it is in the current directory.
pub(crate) fn shorten(path: &Utf8Path) -> Utf8PathBuf {
    let here = Utf8PathBuf::from_path_buf(std::env::current_dir().unwrap_or_default()).unwrap_or_default();
    let short = relative(path, &here);
    if short.as_str().len() < path.as_str().len() { short } else { path.to_owned() }
}

/// The relative path from an absolute directory to a path, lexically; with `/`, also on Windows. The path itself if they
/// are on different drives.
pub(crate) fn relative(path: &Utf8Path, from: &Utf8Path) -> Utf8PathBuf {
    let common = path.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    if common == 0 && path.is_absolute() {
        return path.to_owned();
    }
    let up = from.components().skip(common).map(|_| "..");
    let down = path.components().skip(common).map(|part| part.as_str());
    let way: Vec<&str> = up.chain(down).collect();
    if way.is_empty() { ".".into() } else { way.join("/").into() }
}

/// Removes `.` and `..` from an absolute path, lexically; it need not exist.
pub(crate) fn normalize(path: &Utf8Path) -> Utf8PathBuf {
    let mut out = Utf8PathBuf::new();
    for part in path.components() {
        match part.as_str() {
            "." => {}
            ".." => drop(out.pop()),
            name => out.push(name),
        }
    }
    out
}
