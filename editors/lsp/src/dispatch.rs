//! Dispatches requests by name: one line per request.

use lsp_server::ErrorCode;
use lsp_types::{self as lsp, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::Settings;
use crate::kind::Kind;
use crate::session::Session;
use crate::tree::Tree;
use crate::{
    actions, complete, format, goto, hints, hover, import, links, outline, requests, select, tokens, why,
};

/// Why a request has no result.
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Failure {
    /// A request that panicked, which is logged.
    pub(crate) fn bug(method: &str) -> Self {
        let message = format!("internal error in `{method}`; please report it with the job file");
        Self { code: ErrorCode::InternalError, message }
    }

    /// An error in the job.
    fn reason(message: String) -> Self {
        Self { code: ErrorCode::RequestFailed, message }
    }
}

/// What a request needs besides the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The tree of the current text.
    Text,
    /// The tree of the current text and a plan: an outdated one is better than waiting.
    Plan,
    /// The findings of the current text, or its plan.
    Findings,
}

/// What a request needs besides the texts.
pub(crate) fn needs(method: &str) -> Needs {
    match method {
        "textDocument/hover" => Needs::Plan,
        "textDocument/codeAction" | "textDocument/inlayHint" | "textDocument/diagnostic" => Needs::Findings,
        _ => Needs::Text,
    }
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
            // Having nothing to rename is a result, not an error: editors ask at every position of the cursor.
            let found = goto::prepare_rename(session, &at.text_document.uri, at.position).ok();
            Ok(found.map(|(range, name)| json!({"range": range, "placeholder": name})))
        }),
        "textDocument/rename" => with(params, |it: lsp::RenameParams| {
            let at = it.text_document_position_params;
            goto::rename(session, &at.text_document.uri, at.position, &it.new_name)
        }),
        "textDocument/documentSymbol" => with(params, |it: lsp::DocumentSymbolParams| {
            let uri = &it.text_document.uri;
            let symbols = session.tree(uri).map(outline::symbols).unwrap_or_default();
            let nested = session.client.nested_symbols;
            Ok(if nested { json!(symbols) } else { json!(outline::flat(symbols, uri)) })
        }),
        "textDocument/foldingRange" => with(params, |it: lsp::FoldingRangeParams| {
            Ok(session.tree(&it.text_document.uri).map(outline::folds).unwrap_or_default())
        }),
        "textDocument/documentHighlight" => with(params, |it: lsp::DocumentHighlightParams| {
            let at = it.text_document_position_params;
            let uri = &at.text_document.uri;
            let found = session.tree(uri).map(|tree| select::highlights(session, uri, tree, at.position));
            Ok(found.unwrap_or_default())
        }),
        "textDocument/selectionRange" => with(params, |it: lsp::SelectionRangeParams| {
            let tree = session.tree(&it.text_document.uri);
            Ok(tree
                .map(|tree| it.positions.iter().map(|at| select::selection(tree, *at)).collect::<Vec<_>>()))
        }),
        "textDocument/documentLink" => with(params, |it: lsp::DocumentLinkParams| {
            let uri = &it.text_document.uri;
            let tree = session.tree(uri).filter(|_| is_job(session, uri));
            Ok(tree.map(|tree| links::links(session, uri, tree)).unwrap_or_default())
        }),
        "textDocument/semanticTokens/full" => with(params, |it: lsp::SemanticTokensParams| {
            Ok(semantic_tokens(session, &it.text_document.uri, None))
        }),
        "textDocument/semanticTokens/range" => with(params, |it: lsp::SemanticTokensRangeParams| {
            Ok(semantic_tokens(session, &it.text_document.uri, Some(it.range)))
        }),
        "textDocument/diagnostic" => with(params, |it: lsp::DocumentDiagnosticParams| {
            Ok(json!({"kind": "full", "items": session.findings(&it.text_document.uri)}))
        }),
        "workspace/symbol" => {
            with(params, |it: lsp::WorkspaceSymbolParams| Ok(select::workspace_symbols(session, &it.query)))
        }
        "workspace/willRenameFiles" => with(params, |it: lsp::RenameFilesParams| {
            let pair = |it: &lsp::FileRename| (it.old_uri.clone(), it.new_uri.clone());
            let renames: Vec<(Uri, Uri)> = it.files.iter().map(pair).collect();
            let edits = links::renamed(session, &renames);
            Ok((!edits.is_empty()).then(|| actions::workspace_edit(session, edits)))
        }),
        "textDocument/inlayHint" => with(params, |it: lsp::InlayHintParams| {
            Ok(session.job(&it.text_document.uri).map(|job| hints::inlay(job, it.range)).unwrap_or_default())
        }),
        "textDocument/codeLens" => with(params, |it: lsp::CodeLensParams| {
            let uri = &it.text_document.uri;
            let tree = session.tree(uri).filter(|_| is_job(session, uri));
            let settings = &session.client.settings;
            Ok(tree.map(|tree| lenses(session, uri, tree, settings)).unwrap_or_default())
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
        "jobc/build" => with(params, |it: requests::BuildParams| requests::build(session, &it)),
        "jobc/import" => with(params, |it: import::ImportParams| import::import(session, it)),
        "jobc/targets" => with(params, |it: requests::TargetsParams| requests::known_targets(session, &it)),
        "jobc/why" => with(params, |it: why::WhyParams| why::why(session, &it)),
        "jobc/explain" => with(params, |it: requests::ExplainParams| requests::explain(&it)),
        #[cfg(test)]
        "jobc/panic" => panic!("asked to"),
        _ => Err(Failure { code: ErrorCode::MethodNotFound, message: format!("unknown request `{method}`") }),
    }
}

fn lenses(session: &Session<'_>, uri: &Uri, tree: &Tree, settings: &Settings) -> Vec<lsp::CodeLens> {
    let mut found = vec![];
    if settings.code_lens {
        found.extend(hints::lenses(tree, uri));
    }
    if settings.why_lens {
        found.extend(why::lenses(session, uri, tree));
    }
    found
}

fn is_job(session: &Session<'_>, uri: &Uri) -> bool {
    session.documents.get(uri).is_some_and(|open| open.kind == Kind::Job)
}

fn semantic_tokens(session: &Session<'_>, uri: &Uri, lines: Option<lsp::Range>) -> Value {
    let data = session.tree(uri).map(|tree| tokens::tokens(session, uri, tree, lines));
    json!({"data": data.unwrap_or_default()})
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
