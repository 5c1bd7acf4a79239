// The parts of the language server protocol that the page uses, and what is our own.

export interface Message {
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

/** A file that `jobc build` writes. */
export interface Artifact {
    job: string;
    target: string;
    path: string;
    text: string;
}

export interface Targets {
    file: string | null;
    targets: { name: string; description: string; backends: string[] }[];
    default: string[];
    shown: string[];
}
