//! The location of a volume: `source` of `data` and `outputs`.

use jobc_schema::Bytes;
use jobc_schema::plan::VolumeSource;

/// Why a source is invalid, and what to write instead.
pub(super) struct SourceError {
    pub(super) message: String,
    pub(super) note: String,
    /// The replacement, if that is certain.
    pub(super) instead: Option<String>,
}

/// Parses a source: a path, `nfs://`, `s3://`, `pvc:`, `job:`, `instance:`, `memory:`, `https://` or `git+https://`.
pub(super) fn read_source(text: &str) -> Result<VolumeSource, SourceError> {
    let error = |message: String, note: String| Err(SourceError { message, note, instead: None });
    let instead = |message: String, source: String| {
        Err(SourceError { message, note: format!("write `{source}`"), instead: Some(source) })
    };
    if let Some(name) = text.strip_prefix("pvc:") {
        let name = name.trim_start_matches('/');
        if name.is_empty() || name.contains('/') {
            return error(
                format!("`{text}` does not name a claim"),
                "write `pvc:NAME`, the name of a PersistentVolumeClaim".to_owned(),
            );
        }
        return Ok(VolumeSource::Pvc { name: name.to_owned() });
    }
    if let Some(name) = text.strip_prefix("job:") {
        if name == "memory" {
            return Ok(VolumeSource::Job { in_memory: true });
        }
        if !name.is_empty() {
            return instead(
                format!("`{text}`: a volume of the job has no name but its key"),
                "job:".to_owned(),
            );
        }
        return Ok(VolumeSource::Job { in_memory: false });
    }
    for other in ["memory:", "tmpfs:", "mem:", "ram:"] {
        let Some(size) = text.strip_prefix(other).map(|rest| rest.trim_start_matches('/')) else { continue };
        return match Bytes::parse(size) {
            Ok(Bytes(bytes)) if bytes > 0 && other == "memory:" => {
                Ok(VolumeSource::Memory { size_bytes: bytes })
            }
            Ok(Bytes(bytes)) if bytes > 0 => {
                instead(format!("unsupported source `{other}`"), format!("memory:{size}"))
            }
            _ if size.is_empty() => error(
                format!("`{text}` has no size"),
                "write the maximum size, as in `memory:8GiB`; it counts against `memory`".to_owned(),
            ),
            _ => error(
                format!("`{size}` is not the size of a directory"),
                "write a number and a unit, as in `memory:8GiB`".to_owned(),
            ),
        };
    }
    for other in ["instance:", "pvc-template:", "ephemeral:", "scratch:"] {
        let Some(size) = text.strip_prefix(other).map(|rest| rest.trim_start_matches('/')) else { continue };
        let written = || format!("instance:{size}");
        return match Bytes::parse(size) {
            _ if other != "instance:" => instead(format!("unsupported source `{other}`"), written()),
            Ok(Bytes(bytes)) if bytes > 0 => Ok(VolumeSource::Instance { size_bytes: Some(bytes) }),
            _ if size.is_empty() => Ok(VolumeSource::Instance { size_bytes: None }),
            _ => error(
                format!("`{size}` is not the size of a directory"),
                "write a number and a unit, as in `instance:100GiB`; a storage class is a setting of the target"
                    .to_owned(),
            ),
        };
    }
    let Some((scheme, rest)) = scheme(text) else { return path(text) };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    match scheme.to_ascii_lowercase().as_str() {
        "nfs" if !host.is_empty() => {
            Ok(VolumeSource::Nfs { host: host.to_owned(), path: format!("/{path}") })
        }
        "nfs" => error(format!("`{text}` has no server"), "write `nfs://HOST/PATH`".to_owned()),
        "s3" if !host.is_empty() => Ok(VolumeSource::S3 { bucket: host.to_owned(), path: path.to_owned() }),
        "s3" => error(format!("`{text}` has no bucket"), "write `s3://BUCKET/PATH`".to_owned()),
        "https" if !host.is_empty() => Ok(VolumeSource::Https { url: text.to_owned(), unpack: false }),
        "git+https" if !host.is_empty() => {
            Ok(VolumeSource::Git { url: text["git+".len()..].to_owned(), reference: None })
        }
        "https" | "git+https" => error(format!("`{text}` has no server"), "write a whole address".to_owned()),
        "http" => instead(
            "content from `http://` can be changed in transit".to_owned(),
            format!("https://{rest}"),
        ),
        "git" | "git+ssh" | "ssh" => error(
            format!("unsupported source `{scheme}://`"),
            format!("write `git+https://{rest}`; a `secret` opens a private repository"),
        ),
        "file" => instead("write a path without `file://`".to_owned(), format!("/{path}")),
        _ => error(
            format!("unsupported source `{scheme}://`"),
            "write a path, `nfs://HOST/PATH`, `s3://BUCKET/PATH`, `pvc:NAME`, `https://…` or `git+https://…`; leave `source` out if the target provides it".to_owned(),
        ),
    }
}

fn path(text: &str) -> Result<VolumeSource, SourceError> {
    if text.starts_with('~') {
        return Err(SourceError {
            message: "`~` is not expanded: the plan is the same for every user".to_owned(),
            note: "write an absolute path, or one relative to the job file".to_owned(),
            instead: None,
        });
    }
    if let Some((host, path)) = text.split_once(":/")
        && !host.contains('/')
        && host.len() > 1
    {
        return Err(SourceError {
            message: format!("`{text}` is not a path"),
            note: format!("write `nfs://{host}/{}` for an NFS export", path.trim_start_matches('/')),
            instead: None,
        });
    }
    Ok(VolumeSource::Path { path: text.to_owned() })
}

/// Splits a source at `://` into the scheme and the rest.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let letters = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(letters))
        .then_some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources() {
        let check = |text: &str, json: &str| {
            let source = read_source(text).map(|source| serde_json::to_string(&source).unwrap());
            assert_eq!(source.unwrap_or_else(|e| format!("{}; {}", e.message, e.note)), json, "{text}");
        };
        check("./out", r#"{"kind":"path","path":"./out"}"#);
        check("/data/a:b/c", r#"{"kind":"path","path":"/data/a:b/c"}"#);
        check("数据", r#"{"kind":"path","path":"数据"}"#);
        check("nfs://filer/a/b", r#"{"kind":"nfs","host":"filer","path":"/a/b"}"#);
        check("nfs://filer", r#"{"kind":"nfs","host":"filer","path":"/"}"#);
        check("s3://bucket/a/b", r#"{"kind":"s3","bucket":"bucket","path":"a/b"}"#);
        check("pvc:claim", r#"{"kind":"pvc","name":"claim"}"#);
        check("https://x.org/a.tar", r#"{"kind":"https","url":"https://x.org/a.tar","unpack":false}"#);
        check("git+https://x.org/a", r#"{"kind":"git","url":"https://x.org/a"}"#);
        check("http://x.org/a", "content from `http://` can be changed in transit; write `https://x.org/a`");
        check("job:", r#"{"kind":"job"}"#);
        check("job:work", "`job:work`: a volume of the job has no name but its key; write `job:`");
        check("job:memory", r#"{"kind":"job","in_memory":true}"#);
        check("memory:2KiB", r#"{"kind":"memory","size_bytes":2048}"#);
        check(
            "memory:",
            "`memory:` has no size; write the maximum size, as in `memory:8GiB`; it counts against `memory`",
        );
        check("tmpfs:1GiB", "unsupported source `tmpfs:`; write `memory:1GiB`");
        check(
            "memory:much",
            "`much` is not the size of a directory; write a number and a unit, as in `memory:8GiB`",
        );
        check("instance:", r#"{"kind":"instance"}"#);
        check("instance:2KiB", r#"{"kind":"instance","size_bytes":2048}"#);
        check("pvc-template:100GiB", "unsupported source `pvc-template:`; write `instance:100GiB`");
        check(
            "instance:100GiB:fast",
            "`100GiB:fast` is not the size of a directory; write a number and a unit, as in `instance:100GiB`; a storage class is a setting of the target",
        );
        check("filer:/a", "`filer:/a` is not a path; write `nfs://filer/a` for an NFS export");
        check("pvc:", "`pvc:` does not name a claim; write `pvc:NAME`, the name of a PersistentVolumeClaim");
        check("file:///a/b", "write a path without `file://`; write `/a/b`");
    }
}
