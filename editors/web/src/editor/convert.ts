// Between the protocol, which counts from 0, and Monaco, which counts from 1.

import * as monaco from "monaco-editor/editor/editor.api.js";

import type { CompletionItem, Diagnostic, Markup, Position, Range, TextEdit } from "./protocol";

export function position({ lineNumber, column }: monaco.IPosition): Position {
    return { line: lineNumber - 1, character: column - 1 };
}

export function range(it: monaco.IRange): Range {
    return {
        start: { line: it.startLineNumber - 1, character: it.startColumn - 1 },
        end: { line: it.endLineNumber - 1, character: it.endColumn - 1 },
    };
}

export function toRange({ start, end }: Range): monaco.IRange {
    return {
        startLineNumber: start.line + 1,
        startColumn: start.character + 1,
        endLineNumber: end.line + 1,
        endColumn: end.character + 1,
    };
}

export function toEdit({ range, newText }: TextEdit): monaco.languages.TextEdit {
    return { range: toRange(range), text: newText };
}

export function toMarkdown(text: string | Markup): monaco.IMarkdownString {
    return { value: typeof text === "string" ? text : text.value };
}

const SEVERITIES = { 1: 8, 2: 4, 3: 2, 4: 1 } as const;

export function toMarker(it: Diagnostic): monaco.editor.IMarkerData {
    const code = it.code ?? "";
    return {
        ...toRange(it.range),
        severity: SEVERITIES[it.severity ?? 1] as monaco.MarkerSeverity,
        message: it.message,
        source: it.source ?? "jobc",
        code: it.codeDescription ? { value: code, target: monaco.Uri.parse(it.codeDescription.href) } : code,
        relatedInformation: (it.relatedInformation ?? []).map(({ location, message }) => ({
            resource: monaco.Uri.parse(location.uri),
            message,
            ...toRange(location.range),
        })),
    };
}

/** The kinds of the protocol by number, of which ours uses a few. */
const KINDS = [
    "Text", "Method", "Function", "Constructor", "Field", "Variable", "Class", "Interface", "Module", "Property", "Unit", "Value",
    "Enum", "Keyword", "Snippet", "Color", "File", "Reference", "Folder", "EnumMember", "Constant", "Struct", "Event", "Operator",
    "TypeParameter",
] as const;

export function toSuggestion(it: CompletionItem, word: monaco.IRange): monaco.languages.CompletionItem {
    const edit = it.textEdit;
    const replaced = edit === undefined ? word : "range" in edit ? toRange(edit.range) : { insert: toRange(edit.insert), replace: toRange(edit.replace) };
    // `KeepWhitespace` where the server has indented the lines, `InsertAsSnippet` where there are tab stops.
    const rules = (it.insertTextMode === 1 ? 1 : 0) | (it.insertTextFormat === 2 ? 4 : 0);
    return {
        label: it.labelDetails ? { label: it.label, ...it.labelDetails } : it.label,
        kind: monaco.languages.CompletionItemKind[KINDS[(it.kind ?? 1) - 1] ?? "Text"],
        insertText: edit?.newText ?? it.insertText ?? it.label,
        insertTextRules: rules,
        range: replaced,
        ...(it.detail !== undefined && { detail: it.detail }),
        ...(it.documentation !== undefined && { documentation: toMarkdown(it.documentation) }),
        ...(it.sortText !== undefined && { sortText: it.sortText }),
        ...(it.filterText !== undefined && { filterText: it.filterText }),
        ...(it.additionalTextEdits && { additionalTextEdits: it.additionalTextEdits.map(toEdit) }),
        ...(it.command !== undefined && { command: { id: "editor.action.triggerSuggest", title: "" } }),
    };
}
