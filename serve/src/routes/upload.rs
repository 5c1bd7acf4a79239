//! `/uploads`: directories that browsers send.

use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::problem::Problem;
use crate::reply::{Answer, json, nothing};
use crate::uploads::{Manifest, Upload};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::change(
            "POST",
            "/uploads",
            "upload",
            "Announce the files of a directory",
            handler!(announce),
        )
        .body(schema::<Manifest>)
        .answer(schema::<Upload>),
        Endpoint::change(
            "PUT",
            "/uploads/blobs/{sha256}",
            "upload_content",
            "Send a content that is missing",
            handler!(receive),
        )
        .status(204),
    ]
}

async fn announce(mut call: Call) -> Answer {
    let manifest: Manifest = call.json().await?;
    let upload = call.server.uploads.add(&manifest)?;
    call.note(|notes| notes.about = format!("{} files, {}", manifest.files.len(), upload.id));
    json(&upload)
}

async fn receive(mut call: Call) -> Answer {
    if call.headers.contains_key(hyper::header::CONTENT_ENCODING) {
        let detail = "compressed contents are not accepted";
        return Err(Problem::new(hyper::StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let body = call.take_body();
    let digest = call.part("sha256").to_owned();
    call.server.uploads.receive(&digest, body).await?;
    Ok(nothing())
}
