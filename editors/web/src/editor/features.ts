// The server's features in Monaco: one provider each.

import * as monaco from "monaco-editor/editor/editor.api.js";

import { position, range, toEdit, toMarkdown, toRange, toSuggestion } from "./convert";
import type { CodeAction, CompletionItem, Diagnostic, InlayHint, Location, Markup, Range, TextEdit } from "./protocol";
import type { Server } from "./server";

/** What the features need of the page: the server that runs now, and the last findings of a text. */
export interface Context {
    server(): Server;
    findings(uri: monaco.Uri): Diagnostic[];
}

const { languages } = monaco;

/** Registers the features for the languages whose texts the server knows. */
export function registerFeatures(selector: string[], context: Context, { completionProvider, semanticTokensProvider }: Server["capabilities"]): void {
    /** A request about a position in a text. */
    const at = <R>(method: string, model: monaco.editor.ITextModel, where: monaco.IPosition, token: monaco.CancellationToken, more = {}): Promise<R | null> =>
        context.server().ask<R | null>(method, { textDocument: { uri: model.uri.toString() }, position: position(where), ...more }, token).catch(() => null);
    /** A request about a text. */
    const about = <R>(method: string, model: monaco.editor.ITextModel, token: monaco.CancellationToken, more = {}): Promise<R | null> =>
        context.server().ask<R | null>(method, { textDocument: { uri: model.uri.toString() }, ...more }, token).catch(() => null);

    languages.registerCompletionItemProvider(selector, {
        triggerCharacters: completionProvider.triggerCharacters,
        async provideCompletionItems(model, where, _, token) {
            const found = await at<CompletionItem[] | { items: CompletionItem[]; isIncomplete: boolean }>("textDocument/completion", model, where, token);
            const items = Array.isArray(found) ? found : (found?.items ?? []);
            const { startColumn, endColumn } = model.getWordUntilPosition(where);
            const word = { startLineNumber: where.lineNumber, endLineNumber: where.lineNumber, startColumn, endColumn };
            return { suggestions: items.map((item) => toSuggestion(item, word)), incomplete: !Array.isArray(found) && (found?.isIncomplete ?? false) };
        },
    });

    languages.registerHoverProvider(selector, {
        async provideHover(model, where, token) {
            const found = await at<{ contents: Markup; range?: Range }>("textDocument/hover", model, where, token);
            return found && { contents: [toMarkdown(found.contents)], ...(found.range && { range: toRange(found.range) }) };
        },
    });

    languages.registerCodeActionProvider(selector, {
        async provideCodeActions(model, where, { only, trigger: triggerKind }, token) {
            const touched = context.findings(model.uri).filter((it) => monaco.Range.areIntersectingOrTouching(toRange(it.range), where));
            const asked = { range: range(where), context: { diagnostics: touched, triggerKind, ...(only && { only: [only] }) } };
            const found = await about<CodeAction[]>("textDocument/codeAction", model, token, asked);
            return { actions: (found ?? []).map(toAction), dispose: () => undefined };
        },
    }, { providedCodeActionKinds: ["quickfix", "refactor.extract", "source.fixAll"] });

    languages.registerInlayHintsProvider(selector, {
        async provideInlayHints(model, where, token) {
            const found = await about<InlayHint[]>("textDocument/inlayHint", model, token, { range: range(where) });
            const hints = (found ?? []).map(({ position: at, label, tooltip, paddingLeft }) => ({
                label,
                position: { lineNumber: at.line + 1, column: at.character + 1 },
                paddingLeft: paddingLeft ?? false,
                ...(tooltip !== undefined && { tooltip: toMarkdown(tooltip) }),
            }));
            return { hints, dispose: () => undefined };
        },
    });

    languages.registerDocumentSemanticTokensProvider(selector, {
        getLegend: () => semanticTokensProvider.legend,
        async provideDocumentSemanticTokens(model, _, token) {
            const found = await about<{ data: number[] }>("textDocument/semanticTokens/full", model, token);
            return found && { data: new Uint32Array(found.data) };
        },
        releaseDocumentSemanticTokens: () => undefined,
    });

    languages.registerDefinitionProvider(selector, {
        provideDefinition: async (model, where, token) => locations(await at("textDocument/definition", model, where, token)),
    });
    languages.registerReferenceProvider(selector, {
        provideReferences: async (model, where, context, token) => locations(await at("textDocument/references", model, where, token, { context })),
    });
    languages.registerDocumentHighlightProvider(selector, {
        async provideDocumentHighlights(model, where, token) {
            const found = await at<{ range: Range }[]>("textDocument/documentHighlight", model, where, token);
            return (found ?? []).map(({ range }) => ({ range: toRange(range) }));
        },
    });

    languages.registerRenameProvider(selector, {
        async provideRenameEdits(model, where, newName, token) {
            const asked = { textDocument: { uri: model.uri.toString() }, position: position(where), newName };
            try {
                const edit = await context.server().ask<CodeAction["edit"]>("textDocument/rename", asked, token);
                return toWorkspaceEdit(edit);
            } catch (error) {
                return { edits: [], rejectReason: (error as Error).message };
            }
        },
        async resolveRenameLocation(model, where, token) {
            const found = await at<{ range: Range; placeholder: string }>("textDocument/prepareRename", model, where, token);
            const nothing = { range: new monaco.Range(1, 1, 1, 1), text: "", rejectReason: "there is no name to rename here" };
            return found ? { range: toRange(found.range), text: found.placeholder } : nothing;
        },
    });

    languages.registerDocumentFormattingEditProvider(selector, {
        async provideDocumentFormattingEdits(model, options, token) {
            return ((await about<TextEdit[]>("textDocument/formatting", model, token, { options })) ?? []).map(toEdit);
        },
    });
    languages.registerFoldingRangeProvider(selector, {
        async provideFoldingRanges(model, _, token) {
            const found = await about<{ startLine: number; endLine: number }[]>("textDocument/foldingRange", model, token);
            return (found ?? []).map(({ startLine, endLine }) => ({ start: startLine + 1, end: endLine + 1 }));
        },
    });
}

function locations(found: Location | Location[] | null): monaco.languages.Location[] {
    const all = found === null ? [] : Array.isArray(found) ? found : [found];
    return all.map(({ uri, range }) => ({ uri: monaco.Uri.parse(uri), range: toRange(range) }));
}

function toAction({ title, kind, isPreferred, edit }: CodeAction): monaco.languages.CodeAction {
    return { title, kind: kind ?? "quickfix", isPreferred: isPreferred ?? false, edit: toWorkspaceEdit(edit) };
}

function toWorkspaceEdit(edit: CodeAction["edit"]): monaco.languages.WorkspaceEdit {
    const edits = Object.entries(edit?.changes ?? {}).flatMap(([uri, edits]) =>
        edits.map((edit) => ({ resource: monaco.Uri.parse(uri), textEdit: toEdit(edit), versionId: undefined })),
    );
    return { edits };
}
