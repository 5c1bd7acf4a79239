//! `jobc run --watch`: runs a job file or a command again when it or a file that it names changes.
//!
//! Each run is a separate `jobc run`, which ends its job as on Ctrl-C.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::plan;
use jobc_compiler::diagnostic::Sink;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::readable;
use jobc_sys::signals::{Sender, Signal, Signals};

use super::job::job_args;
use crate::args::JobArgs;
use crate::input::{Input, InputError, absolute, shorten};
use crate::runtime::args::run::RunArgs;
use crate::runtime::interruptible::exit_by_signal;
use crate::terminal;
use crate::watch::{self, WatchedFiles};

/// Kinds of files that programs are written in. Others of the same kind belong to the program.
const PROGRAMS: [&str; 10] = ["py", "sh", "bash", "jl", "r", "R", "lua", "js", "ts", "pl"];
/// Kinds of files that a program is configured by. What it writes, such as `log.txt` or `metrics.json`, is not watched: the
/// job would start again and again.
const SETTINGS: [&str; 5] = ["yaml", "yml", "toml", "cfg", "ini"];
/// Directories that hold no source files of the user.
const SKIPPED: [&str; 5] = ["out", "node_modules", "target", "venv", "__pycache__"];
/// Maximum depth of directories below the one of a program that is watched.
const MAX_DEPTH: usize = 4;
/// Maximum number of files that are watched.
const MAX_FILES: usize = 5000;

/// Runs a job file or the command of the arguments until a signal ends it.
pub(super) fn run(args: &RunArgs, path: Option<&Utf8Path>) -> Result<u8> {
    if path.is_some_and(|path| path == "-") {
        return Err(Error::new(Kind::Config, "`--watch` cannot read the job from stdin").help("name a file"));
    }
    let signals = Signals::block_forwarded()?;
    loop {
        let files = files(args, path);
        let changed = run_once(&files, &signals)?;
        watch::settle(&changed);
    }
}

/// Runs the job once; returns the file that has changed since.
fn run_once(files: &WatchedFiles, signals: &Signals) -> Result<Utf8PathBuf> {
    let mut child = Some(start()?);
    loop {
        wait_for_signals(signals, watch::INTERVAL)?;
        while let Some((signal, sender)) = signals.next_with_sender() {
            if !signal.ends_by_default() {
                continue;
            }
            if let Some(mut child) = child.take() {
                // The terminal sends it to both processes.
                if sender == Sender::Process {
                    signal.send_to(child.id())?;
                }
                wait(&mut child, signals)?;
            }
            exit_by_signal(signal);
        }
        if let Some(running) = &mut child
            && try_wait(running)?.is_some()
        {
            child = None;
            terminal::eprint(&watch::waiting_message(files.count()));
        }
        if let Some(changed) = files.changed() {
            let what = if child.is_some() { "; ending the job and starting it again" } else { "" };
            terminal::eprint(&format!("\njobc: `{}` changed{what}\n", shorten(changed)));
            if let Some(mut child) = child {
                Signal::TERM.send_to(child.id())?;
                wait(&mut child, signals)?;
            }
            return Ok(changed.to_owned());
        }
    }
}

fn wait_for_signals(signals: &Signals, longest: Duration) -> Result<()> {
    let waited = readable::wait(&[signals.as_fd()], Some(longest));
    waited.map(drop).map_err(|errno| Error::system("wait for signals", errno))
}

/// Starts this program with the same arguments, without `--watch`.
fn start() -> Result<Child> {
    let failed = |error: std::io::Error| Error::io("start `jobc run`", &error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut options: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = options.iter().position(|word| word == "--").map(|at| options.split_off(at));
    options.retain(|word| word != "--watch");
    Command::new(program).args(options).args(command.unwrap_or_default()).spawn().map_err(failed)
}

fn try_wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    child.try_wait().map_err(|error| Error::io("wait for `jobc run`", &error))
}

/// Waits for the end of a run, and forwards further signals: at the third, the runtime kills what is left.
fn wait(child: &mut Child, signals: &Signals) -> Result<()> {
    while try_wait(child)?.is_none() {
        wait_for_signals(signals, Duration::from_millis(20))?;
        while let Some((signal, sender)) = signals.next_with_sender() {
            if sender == Sender::Process {
                signal.send_to(child.id())?;
            }
        }
    }
    Ok(())
}

/// Silently reads a job file and all of its inputs; returns its directory and the texts.
fn read_all(args: &JobArgs) -> std::result::Result<(Utf8PathBuf, Vec<String>), InputError> {
    let mut input = Input::read(args)?;
    let mut sources = std::mem::take(&mut input.sources);
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let _ = plan(&mut sources, &input.request(args, &to_job), &mut Sink::new());
    let texts = sources.iter().map(|(_, source)| source.text().to_owned()).collect();
    Ok((input.directory, texts))
}

/// The job file and what it is compiled from, the programs and settings that its text names, and files of the same kind
/// next to programs: with `python train.py` every `.py` file of that directory and below.
fn files(args: &RunArgs, path: Option<&Utf8Path>) -> WatchedFiles {
    watch::start();
    let text = match &args.command.command[..] {
        [] => read_all(&job_args(args, path.map(Utf8Path::to_owned))),
        words => absolute(Utf8Path::new(".")).map(|directory| (directory, words.to_vec())),
    };
    let mut files = watch::files();
    let Ok((directory, texts)) = text else { return files };
    let is_part = |c: char| c.is_whitespace() || "\"'`=:;,()[]{}<>|&$".contains(c);
    let words: Vec<&Utf8Path> = texts
        .iter()
        .flat_map(|text| text.split(is_part))
        .filter(|word| !word.is_empty())
        .map(Utf8Path::new)
        .collect();
    // Files below the mount point of `./code` are named by a path in the container.
    let sources = words.iter().filter(|word| word.is_relative()).map(|word| directory.join(word));
    let sources: BTreeSet<Utf8PathBuf> =
        sources.filter(|path| path.is_dir()).chain([directory.clone()]).collect();
    let found = words.iter().filter_map(|word| {
        let parts: Vec<&str> = word.components().map(|part| part.as_str()).collect();
        let below = |from: usize| parts[from..].iter().collect::<Utf8PathBuf>();
        let mut ends =
            (0..parts.len()).flat_map(|from| sources.iter().map(move |source| source.join(below(from))));
        ends.find(|path| is_source(path) && path.is_file())
    });
    for file in found.collect::<BTreeSet<_>>() {
        files.add(&file);
        if let (Some(parent), Some(kind)) = (file.parent(), file.extension())
            && PROGRAMS.contains(&kind)
        {
            add_neighbors(parent, kind, 0, &mut files);
        }
    }
    files
}

fn is_source(path: &Utf8Path) -> bool {
    path.extension().is_some_and(|kind| PROGRAMS.contains(&kind) || SETTINGS.contains(&kind))
}

fn add_neighbors(directory: &Utf8Path, kind: &str, depth: usize, files: &mut WatchedFiles) {
    let Ok(entries) = directory.read_dir_utf8() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if files.count() >= MAX_FILES || name.starts_with('.') || SKIPPED.contains(&name) {
            continue;
        }
        match entry.file_type() {
            Ok(it) if it.is_dir() && depth < MAX_DEPTH => {
                add_neighbors(entry.path(), kind, depth + 1, files);
            }
            Ok(it) if it.is_file() && entry.path().extension() == Some(kind) => files.add(entry.path()),
            _ => {}
        }
    }
}
