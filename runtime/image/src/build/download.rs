//! Files that `ADD` downloads, kept in the store from one build to the next.
//!
//! `cache/downloads` has a content by its digest, and a record for each URL: its validators (RFC 9110, section 8.8),
//! the name of the file and its digest. A file with a checksum in the Dockerfile is not requested again; others are
//! requested with their validators and sent only if they have changed.

mod file_name;
mod http_date;

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Builder;
use super::access::{DownloadRequest, MAX_DOWNLOAD_BYTES, Validators, without_password};
use super::cache::replace_file;
use jobc_schema::digest::{Digest, Hasher};
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// A file that was downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Downloaded {
    /// Where its content is.
    pub(super) path: PathBuf,
    /// Its name, where the target is a directory.
    pub(super) name: String,
    /// When it was changed, in seconds since 1970; 0 if the server does not send it.
    pub(super) modified: i64,
    /// Its SHA-256.
    pub(super) digest: Digest,
}

/// The cache entry of a URL.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Without a password; the file's name is derived from the whole URL.
    url: String,
    validators: Validators,
    /// The content's digests: SHA-256, and that of a checksum by another algorithm.
    digests: Vec<Digest>,
    size: u64,
}

impl Builder<'_> {
    /// A file by its URL, from the cache or from its server.
    ///
    /// # Errors
    ///
    /// See [`Download::download`]; also a content of another checksum.
    pub(super) fn download(&self, url: &str, checksum: Option<&Digest>) -> Result<Downloaded> {
        let directory = self.store.root().join("cache/downloads");
        let full = |error: std::io::Error| self.store.write_error("write to", &error);
        fs::create_dir_all(&directory).map_err(full)?;
        let place = directory.join(format!("{}.json", Digest::of(url.as_bytes()).hex()));
        let content = |digest: &Digest| directory.join(digest.hex());
        let known = fs::read(&place).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        let known = known.filter(|record| {
            let path = record.digests.first().map(content);
            record.url == without_password(url)
                && path.is_some_and(|path| fs::metadata(path).is_ok_and(|data| data.len() == record.size))
        });
        if let (Some(record), Some(checksum)) = (&known, checksum)
            && record.digests.contains(checksum)
        {
            return record.downloaded(content);
        }
        let client = self.request.access.downloads.ok_or_else(|| {
            Error::new(Kind::Unsupported, format!("cannot download `{}`", without_password(url)))
        })?;
        // A content of another checksum than expected cannot be right as it is; neither is it with `--no-cache`.
        let reusable = known.as_ref().filter(|_| checksum.is_none() && !self.request.no_cache);
        // The directory of a running build, which the next one removes if this one is killed.
        let partial = self.work()?.new_file();
        let mut file =
            File::options().read(true).write(true).create_new(true).open(&partial).map_err(full)?;
        let request = DownloadRequest {
            url,
            known: reusable.map(|record| &record.validators),
            limit: MAX_DOWNLOAD_BYTES,
        };
        let Some(validators) = client.download(&request, &mut file, &self.canceled)? else {
            let _ = fs::remove_file(&partial);
            let record = known.ok_or_else(|| {
                Error::new(
                    Kind::System,
                    format!("the server of `{}` answered a request that was not made", without_password(url)),
                )
            })?;
            return record.downloaded(content);
        };
        let (digests, size) = digests(&mut file, checksum).map_err(full)?;
        if let Some(checksum) = checksum
            && !digests.contains(checksum)
        {
            let _ = fs::remove_file(&partial);
            let found = digests.iter().find(|digest| digest.algorithm() == checksum.algorithm());
            let found = found.map(ToString::to_string).unwrap_or_default();
            let message = format!(
                "the checksum of `{}` does not match: expected `{checksum}`, got `{found}`",
                without_password(url)
            );
            return Err(Error::new(Kind::Config, message)
                .help("the file has changed, or is not the one that was meant; verify it, then correct `--checksum`"));
        }
        let record = Record { url: without_password(url), validators, digests, size };
        let downloaded = record.downloaded(content)?;
        fs::rename(&partial, &downloaded.path).map_err(full)?;
        let text = serde_json::to_vec(&record).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        replace_file(&place, &text)?;
        Ok(downloaded)
    }
}

impl Record {
    fn downloaded(&self, content: impl Fn(&Digest) -> PathBuf) -> Result<Downloaded> {
        let digest = self.digests.first().cloned();
        let digest = digest.ok_or_else(|| Error::new(Kind::State, "a download without a digest"))?;
        let Validators { last_modified, disposition, .. } = &self.validators;
        Ok(Downloaded {
            path: content(&digest),
            name: file_name::of(&self.url, disposition.as_deref()),
            modified: last_modified.as_deref().and_then(http_date::parse).unwrap_or(0),
            digest,
        })
    }
}

/// The SHA-256 of a file, that of the checksum's algorithm, and its size.
fn digests(file: &mut File, checksum: Option<&Digest>) -> std::io::Result<(Vec<Digest>, u64)> {
    file.rewind()?;
    let mut hashers = vec![Hasher::default()];
    if let Some(checksum) =
        checksum.filter(|checksum| checksum.algorithm() != jobc_schema::digest::Algorithm::Sha256)
    {
        hashers.push(Hasher::new(checksum.algorithm()));
    }
    let mut buffer = vec![0; 1 << 16];
    let mut size = 0;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(std::io::Error::other(describe_io(&error))),
        };
        for hasher in &mut hashers {
            hasher.update(&buffer[..read]);
        }
        size += read as u64;
    }
    Ok((hashers.into_iter().map(Hasher::finish).collect(), size))
}
