//! Requests by name: one line per request.

use lsp_server::ErrorCode;
use lsp_types as lsp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::documents::Kind;
use crate::session::Session;
use crate::{actions, complete, format, goto, hints, hover, outline, requests, targets};

/// Why a request has no result.
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Failure {
    /// A request that ended in a panic, which is logged.
    pub(crate) fn bug(method: &str) -> Self {
        let message = format!("internal error in `{method}`; please report it with the job file");
        Self { code: ErrorCode::InternalError, message }
    }

    /// An error in the job.
    fn reason(message: String) -> Self {
        Self { code: ErrorCode::RequestFailed, message }
    }
}

/// Whether a request needs the compilation of the current text. Completion is requested too often for that, and reads
/// only the text.
pub(crate) fn needs_findings(method: &str) -> bool {
    method != "textDocument/completion"
}

/// The response to a request.
pub(crate) fn answer(session: &Session<'_>, method: &str, params: Value) -> Result<Value, Failure> {
    match method {
        "textDocument/completion" => with(params, |it: lsp::CompletionParams| {
            let at = it.text_document_position_params;
            Ok(complete::complete(session, &at.text_document.uri, at.position))
        }),
        "textDocument/hover" => with(params, |it: lsp::HoverParams| {
            let at = it.text_document_position_params;
            Ok(hover::hover(session, &at.text_document.uri, at.position))
        }),
        "textDocument/definition" => with(params, |it: lsp::DefinitionParams| {
            let at = it.text_document_position_params;
            Ok(goto::definition(session, &at.text_document.uri, at.position))
        }),
        "textDocument/references" => with(params, |it: lsp::ReferenceParams| {
            let at = it.text_document_position_params;
            Ok(goto::references(session, &at.text_document.uri, at.position, it.context.include_declaration))
        }),
        "textDocument/prepareRename" => with(params, |it: lsp::PrepareRenameParams| {
            let at = it.text_document_position_params;
            // Nothing to rename is a result and not an error: editors ask at every position of the cursor.
            let found = goto::prepare_rename(session, &at.text_document.uri, at.position).ok();
            Ok(found.map(|(range, name)| json!({"range": range, "placeholder": name})))
        }),
        "textDocument/rename" => with(params, |it: lsp::RenameParams| {
            let at = it.text_document_position_params;
            goto::rename(session, &at.text_document.uri, at.position, &it.new_name)
        }),
        "textDocument/documentSymbol" => with(params, |it: lsp::DocumentSymbolParams| {
            let uri = &it.text_document.uri;
            let symbols = session.good(uri).map(outline::symbols).unwrap_or_default();
            let nested = session.client.nested_symbols;
            Ok(if nested { json!(symbols) } else { json!(outline::flat(symbols, uri)) })
        }),
        "textDocument/foldingRange" => with(params, |it: lsp::FoldingRangeParams| {
            Ok(session.good(&it.text_document.uri).map(outline::folds).unwrap_or_default())
        }),
        "textDocument/inlayHint" => with(params, |it: lsp::InlayHintParams| {
            Ok(session.job(&it.text_document.uri).map(|job| hints::inlay(job, it.range)).unwrap_or_default())
        }),
        "textDocument/codeLens" => with(params, |it: lsp::CodeLensParams| {
            let uri = &it.text_document.uri;
            let is_job = session.documents.get(uri).is_some_and(|open| open.kind == Kind::Job);
            let good = session.good(uri).filter(|_| is_job);
            Ok(good.map(|good| hints::lenses(good, uri)).unwrap_or_default())
        }),
        "textDocument/formatting" => with(params, |it: lsp::DocumentFormattingParams| {
            let open = session.documents.get(&it.text_document.uri).filter(|open| open.kind != Kind::Other);
            Ok(open.map(|open| format::format(&open.text)).unwrap_or_default())
        }),
        "textDocument/codeAction" => {
            with(params, |it: lsp::CodeActionParams| Ok(actions::actions(session, &it)))
        }
        "jobc/plan" => with(params, |it: requests::PlanParams| requests::plan(session, &it)),
        "jobc/artifact" => with(params, |it: requests::ArtifactParams| requests::artifact(session, &it)),
        "jobc/targets" => with(params, |it: targets::TargetsParams| targets::targets(session, &it)),
        "jobc/explain" => with(params, |it: requests::ExplainParams| requests::explain(&it)),
        #[cfg(test)]
        "jobc/panic" => panic!("asked to"),
        _ => Err(Failure { code: ErrorCode::MethodNotFound, message: format!("unknown request `{method}`") }),
    }
}

/// Parses the parameters, handles the request, and serializes the result.
fn with<P: DeserializeOwned, R: Serialize>(
    params: Value,
    answer: impl FnOnce(P) -> Result<R, String>,
) -> Result<Value, Failure> {
    let params = serde_json::from_value(params)
        .map_err(|error| Failure { code: ErrorCode::InvalidParams, message: error.to_string() })?;
    answer(params).map(|result| json!(result)).map_err(Failure::reason)
}
