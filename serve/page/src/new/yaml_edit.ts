// Reads fields of a job file and changes one of them in its text; all other text stays as it is.

import { isMap, isScalar, parseDocument, stringify, type Document, type Pair, type Scalar, type YAMLMap } from "yaml";

export interface Edit {
    from: number;
    to: number;
    insert: string;
}

export type Path = string[];

export interface JobFile {
    value(path: Path): unknown;
    has(path: Path): boolean;
    keys(path: Path): string[];
    /** The change that sets a field; null where the text has something else there. */
    set(path: Path, value: string | number | boolean): Edit | null;
}

export function read(text: string): JobFile | null {
    let document: Document;
    try {
        document = parseDocument(text, { keepSourceTokens: true, logLevel: "silent" });
    } catch {
        return null;
    }
    if (document.errors.length > 0 || !isMap(document.contents)) {
        return null;
    }
    const node = (path: Path): unknown => (path.length === 0 ? document.contents : document.getIn(path, true));
    return {
        value(path) {
            const found = node(path);
            return isScalar(found) ? found.value : undefined;
        },
        has: (path) => document.hasIn(path),
        keys(path) {
            const found = node(path);
            return isMap(found) ? found.items.map(({ key }) => String(isScalar(key) ? key.value : key)) : [];
        },
        set: (path, value) => change(text, document, path, value),
    };
}

function change(text: string, document: Document, path: Path, value: string | number | boolean): Edit | null {
    const found = document.getIn(path, true);
    if (isScalar(found) && found.range) {
        const [from, end] = found.range;
        const indent = indentAt(text, from);
        return { from, to: isBlock(found) ? trimmedEnd(text, from, found.range[2]) : end, insert: written(value, indent, isFlowAt(document, path)) };
    }
    if (found !== undefined && found !== null) {
        return null;
    }
    // The nearest map above that there is gets what is missing.
    let depth = path.length - 1;
    while (depth > 0 && !isMap(document.getIn(path.slice(0, depth), true))) {
        if (document.hasIn(path.slice(0, depth))) {
            return null;
        }
        depth -= 1;
    }
    const map = (depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true)) as YAMLMap;
    const [key = "", ...below] = path.slice(depth);
    const isFlow = map.flow === true;
    const inner = below.reduceRight((so, name) => `{${name}: ${so}}`, below.length === 0 ? "" : written(value, 0, true));
    if (isFlow) {
        const close = (map.range?.[1] ?? 0) - 1;
        const rest = below.length > 0 ? inner : written(value, 0, true);
        return { from: close, to: close, insert: `${map.items.length > 0 ? ", " : ""}${key}: ${rest}` };
    }
    const first = map.items[0] as Pair<Scalar> | undefined;
    const last = map.items.at(-1) as Pair<Scalar> | undefined;
    const start = first?.key.range?.[0];
    if (start === undefined || last === undefined) {
        return null;
    }
    const column = start - (text.lastIndexOf("\n", start - 1) + 1);
    const lastEnd = trimmedEnd(text, start, (last.value as Scalar | null)?.range?.[2] ?? last.key.range?.[2] ?? text.length);
    const rest = below.length > 0 ? inner : written(value, column, false);
    return { from: lastEnd, to: lastEnd, insert: `\n${" ".repeat(column)}${key}: ${rest}` };
}

const isBlock = ({ type }: Scalar): boolean => type === "BLOCK_LITERAL" || type === "BLOCK_FOLDED";

function isFlowAt(document: Document, path: Path): boolean {
    return path.some((_, depth) => {
        const above = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
        return isMap(above) && above.flow === true;
    });
}

/** The end without line breaks and spaces. */
function trimmedEnd(text: string, from: number, end: number): number {
    let at = end;
    while (at > from && /\s/.test(text[at - 1] ?? "")) {
        at -= 1;
    }
    return at;
}

/** The indentation of the line that a place is in. */
function indentAt(text: string, at: number): number {
    const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
    return /^ */.exec(line)?.[0].length ?? 0;
}

function written(value: string | number | boolean, indent: number, isFlow: boolean): string {
    if (typeof value === "string" && value.includes("\n") && !isFlow) {
        const pad = " ".repeat(indent + 2);
        return `|\n${value.replace(/\n+$/, "").split("\n").map((line) => (line === "" ? "" : pad + line)).join("\n")}`;
    }
    const text = stringify(value, { lineWidth: 0, ...(isFlow && { defaultStringType: typeof value === "string" && /[,[\]{}\n]/.test(value) ? "QUOTE_DOUBLE" : "PLAIN" }) }).trim();
    return text.includes("\n") ? JSON.stringify(value) : text;
}
