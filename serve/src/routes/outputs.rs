//! The files that a job of this host has written, and what was built for it.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};

use axum::body::Body;
use axum::response::Response;
use camino::{Utf8Path, Utf8PathBuf};
use futures_util::stream::unfold;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HeaderValue};
use jobc_job::directory::Directory;
use jobc_job::record::Record;
use jobc_schema::percent;
use jobc_sys::open_inside::open_inside;
use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reference::reference;
use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::guard::POLICY_OF_FILES;
use crate::problem::Problem;
use crate::reply::{Answer, json, typed};

/// Files of a list.
const MAX_ENTRIES: usize = 10_000;
/// What is read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// What is listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OutputsQuery {
    /// A directory of an output [default: the outputs].
    #[serde(default)]
    path: Option<String>,
}

/// A file or a directory of an output.
#[derive(Debug, Serialize, JsonSchema)]
struct OutputFile {
    /// The name of the output, and the path in it.
    path: String,
    /// Bytes; 0 of a directory.
    size: u64,
    /// Whether it is a directory.
    directory: bool,
    /// When it was changed, in seconds since 1970.
    modified: i64,
}

/// The content of a directory.
#[derive(Debug, Serialize, JsonSchema)]
struct Outputs {
    /// Its files and directories, by name.
    files: Vec<OutputFile>,
    /// Whether there are more.
    truncated: bool,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get(
            "/jobs/{ref}/outputs",
            "outputs",
            "List the files that a job has written",
            handler!(list),
        )
        .query(schema::<OutputsQuery>)
        .answer(schema::<Outputs>),
        Endpoint {
            action: Some("download"),
            ..Endpoint::get(
                "/jobs/{ref}/outputs/{*path}",
                "download",
                "Download a file that a job has written",
                handler!(download),
            )
            .media(&["application/octet-stream"])
        },
        Endpoint {
            action: Some("artifacts"),
            ..Endpoint::get(
                "/jobs/{ref}/artifacts",
                "artifacts",
                "Download the files that were built for a job",
                handler!(artifacts),
            )
            .media(&["application/x-tar"])
        },
    ]
}

/// The outputs of a job of this host: names and directories.
fn outputs(directory: &Directory) -> Result<Vec<(String, Utf8PathBuf)>, Problem> {
    let record = Record::require(directory)?;
    let plan = std::fs::read(directory.plan_file()).unwrap_or_default();
    let plan: Value = serde_json::from_slice(&plan).unwrap_or_default();
    let base = Utf8PathBuf::from_path_buf(record.directory).unwrap_or_default();
    let volumes = plan["volumes"].as_object().into_iter().flatten();
    let of_host =
        volumes.filter(|(_, volume)| volume["kind"] == "output" && volume["source"]["kind"] == "path");
    Ok(of_host
        .filter_map(|(name, volume)| Some((name.clone(), base.join(volume["source"]["path"].as_str()?))))
        .collect())
}

/// The directory of an output, if it lies below an open one: a job file may name any.
fn open_output(call: &Call, directory: &Utf8Path) -> Result<OwnedFd, Problem> {
    let outside = || {
        Problem::forbidden("this output is outside of the directories that are open")
            .hint("start the server with `--root DIR` to open more")
    };
    let real =
        directory.canonicalize_utf8().map_err(|_| Problem::not_found("the output does not exist yet"))?;
    let trees = call.server.uploads.trees();
    let root = call
        .server
        .workspace
        .roots()
        .iter()
        .map(Utf8PathBuf::as_path)
        .chain([trees])
        .find(|root| real.starts_with(root));
    let root = root.ok_or_else(outside)?;
    // Opened below the root once more: a directory may have become a link meanwhile.
    let top = std::fs::File::open(root)?;
    let below = real.strip_prefix(root).map(Utf8Path::as_str).unwrap_or_default();
    open(top.as_fd(), below, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Opens a path below a directory; no link leads out.
fn open(top: std::os::fd::BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Problem> {
    let missing = || Problem::not_found("no such file");
    let path = CString::new(if path.is_empty() { "." } else { path }).map_err(|_| missing())?;
    open_inside(top, &path, flags | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(|errno| match errno {
        Errno::ACCESS => Problem::forbidden("permission denied"),
        _ => missing(),
    })
}

/// The output and the path in it that a path names.
fn find(call: &Call, name: &str, path: &str) -> Result<(OwnedFd, String), Problem> {
    let directory = call.server.jobs.find(name)?;
    let (output, rest) = path.split_once('/').unwrap_or((path, ""));
    if rest.split('/').any(|part| part == "..") {
        return Err(Problem::bad_request("the path has `..`"));
    }
    let found = outputs(&directory)?.into_iter().find(|(known, _)| known == output);
    let (_, root) = found.ok_or_else(|| Problem::not_found(format!("`{name}` has no such output")))?;
    Ok((open_output(call, &root)?, rest.trim_matches('/').to_owned()))
}

/// The name of a job of this host.
async fn local_reference(call: &Call) -> Result<String, Problem> {
    let name = reference(call).await?;
    if name.contains('/') {
        return Err(Problem::not_found(format!("the files of `{name}` are at its target"))
            .hint(format!("`jobc copy {name}:PATH .` copies them")));
    }
    Ok(name)
}

async fn list(call: Call) -> Answer {
    let query: OutputsQuery = call.query()?;
    let name = local_reference(&call).await?;
    let Some(path) = query.path.filter(|path| !path.is_empty()) else {
        let files = outputs(&call.server.jobs.find(&name)?)?.into_iter();
        let files = files.map(|(path, _)| OutputFile { path, size: 0, directory: true, modified: 0 });
        return json(&Outputs { files: files.collect(), truncated: false });
    };
    let (root, below) = find(&call, &name, &path)?;
    let directory = open(root.as_fd(), &below, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let outputs = tokio::task::spawn_blocking(move || entries(&directory, path.trim_end_matches('/'))).await;
    json(&outputs.map_err(|_| Problem::of_host("the directory cannot be read"))??)
}

fn entries(directory: &OwnedFd, path: &str) -> Result<Outputs, Problem> {
    let failed = |errno: Errno| Problem::from(std::io::Error::from(errno));
    let mut files = vec![];
    let mut truncated = false;
    for entry in Dir::read_from(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name == "." || name == ".." {
            continue;
        }
        if files.len() == MAX_ENTRIES {
            truncated = true;
            break;
        }
        let Ok(status) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let kind = FileType::from_raw_mode(status.st_mode);
        if matches!(kind, FileType::RegularFile | FileType::Directory) {
            let is_directory = kind == FileType::Directory;
            files.push(OutputFile {
                path: format!("{path}/{name}"),
                size: if is_directory { 0 } else { u64::try_from(status.st_size).unwrap_or_default() },
                directory: is_directory,
                modified: status.st_mtime,
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Outputs { files, truncated })
}

async fn download(call: Call) -> Answer {
    let name = local_reference(&call).await?;
    let path = call.part("path").to_owned();
    call.note(|notes| notes.about = format!("{name}: {path}"));
    let (root, below) = find(&call, &name, &path)?;
    let file = std::fs::File::from(open(root.as_fd(), &below, OFlags::RDONLY)?);
    let status = file.metadata()?;
    if !status.is_file() {
        return Err(Problem::not_found("that is not a file"));
    }
    let mut response = typed("application/octet-stream", of_file(file, status.len()));
    let last = path.rsplit('/').next().unwrap_or_default();
    attach(&mut response, last);
    response.headers_mut().insert(CONTENT_LENGTH, status.len().into());
    Ok(response)
}

/// A file as a body, of as many bytes as it had.
fn of_file(file: std::fs::File, size: u64) -> Body {
    use std::io::Read as _;
    Body::from_stream(unfold(Some((file, size)), |state| async {
        let (mut file, left) = state?;
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        if wanted == 0 {
            return None;
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut buffer = vec![0; wanted];
            let read = file.read(&mut buffer)?;
            buffer.truncate(read);
            Ok::<_, std::io::Error>((file, buffer))
        });
        match read.await {
            Ok(Ok((file, bytes))) if !bytes.is_empty() => {
                let left = left - bytes.len() as u64;
                Some((Ok(bytes), Some((file, left))))
            }
            // Of a file that became shorter, the answer ends early, which the caller sees.
            _ => Some((Err(std::io::Error::other("the file became shorter")), None)),
        }
    }))
}

/// A file to save, never to show: it is not this server's.
fn attach(response: &mut Response, name: &str) {
    let text = format!("attachment; filename*=UTF-8''{}", percent::encode_segment(name));
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY_OF_FILES));
}

async fn artifacts(call: Call) -> Answer {
    let name = local_reference(&call).await?;
    let directory = call.server.jobs.find(&name)?;
    let record = directory.record.clone();
    if !record.is_dir() {
        return Err(Problem::not_found(format!("nothing is kept of `{name}`")));
    }
    // The plan and what was built of it: bundles of a job that runs, with no secret in them.
    let parts = [
        ("plan.json", directory.plan_file()),
        ("job.yaml", directory.job_file()),
        ("build", directory.build()),
    ];
    let archive = tokio::task::spawn_blocking(move || {
        let mut files = vec![];
        for (name, path) in parts {
            collect(&path, name, &mut files);
        }
        crate::archive::of(&files)
    });
    let archive = archive.await.map_err(|_| Problem::of_host("the files cannot be read"))??;
    let mut response = typed("application/x-tar", archive);
    attach(&mut response, &format!("{name}.tar"));
    Ok(response)
}

fn collect(path: &std::path::Path, name: &str, files: &mut Vec<(String, std::path::PathBuf)>) {
    let Ok(status) = std::fs::symlink_metadata(path) else { return };
    if status.is_file() {
        files.push((name.to_owned(), path.to_owned()));
    } else if status.is_dir() {
        let mut entries: Vec<_> = path.read_dir().into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            if let Ok(below) = entry.file_name().into_string() {
                collect(&entry.path(), &format!("{name}/{below}"), files);
            }
        }
    }
}
