// The parts of the language server protocol that the page uses, and what is our own.

export interface Message {
    jsonrpc?: "2.0";
    id?: number | string;
    method?: string;
    params?: unknown;
    result?: unknown;
    error?: { code: number; message: string };
}

/** What is beside a job: a file's text, or whether there is a directory. */
export type Entry = string | boolean;

export interface Position {
    line: number;
    character: number;
}

export interface Range {
    start: Position;
    end: Position;
}

export interface TextEdit {
    range: Range;
    newText: string;
}

export interface Diagnostic {
    range: Range;
    severity?: 1 | 2 | 3 | 4;
    code?: string;
    codeDescription?: { href: string };
    source?: string;
    message: string;
    relatedInformation?: { location: Location; message: string }[];
    data?: unknown;
}

export interface Location {
    uri: string;
    range: Range;
}

export interface Markup {
    kind: string;
    value: string;
}

export interface CompletionItem {
    label: string;
    labelDetails?: { detail?: string; description?: string };
    kind?: number;
    detail?: string;
    documentation?: string | Markup;
    sortText?: string;
    filterText?: string;
    insertText?: string;
    insertTextFormat?: 1 | 2;
    insertTextMode?: 1 | 2;
    textEdit?: TextEdit | { newText: string; insert: Range; replace: Range };
    additionalTextEdits?: TextEdit[];
    command?: unknown;
}

export interface CodeAction {
    title: string;
    kind?: string;
    diagnostics?: Diagnostic[];
    isPreferred?: boolean;
    edit?: { changes?: Record<string, TextEdit[]> };
}

export interface InlayHint {
    position: Position;
    label: string;
    tooltip?: string | Markup;
    paddingLeft?: boolean;
}

/** A file that `jobc build` writes, without its text. */
export interface BuiltFile {
    job: string;
    target: string;
    path: string;
}

export interface Artifact extends BuiltFile {
    text: string;
}

/** Lines of a built file, from 0: one, or all of a script. */
export interface BuiltLine extends BuiltFile {
    line: number;
    last: number;
}

/** What a line of the job causes, or what causes a line of a built file. */
export interface Why {
    fields: string[];
    lines: BuiltLine[];
    /** A field of the job with its lines, or a setting or default without. */
    causes: { text: string; line: number | null; last: number | null }[];
}

export function sameFile(a: BuiltFile | undefined, b: BuiltFile | undefined): boolean {
    return a !== undefined && b !== undefined && a.job === b.job && a.target === b.target && a.path === b.path;
}

export interface Targets {
    file: string | null;
    targets: { name: string; description: string; backends: string[] }[];
    default: string[];
    shown: string[];
}
