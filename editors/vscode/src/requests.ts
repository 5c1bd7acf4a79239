// What `jobc lsp` answers besides the protocol; docs/reference/language-server.md is the contract.

import type { Diagnostic } from "vscode-languageclient";

/** A request by its method's name, with the types of its parameters and of its answer. */
export interface Request<P, R> {
    method: string;
    /** Never there: it ties the two types to the method. */
    types?: (parameters: P) => R;
}

/** The plan of an open job file, as `jobc plan --format yaml` prints it. */
export const PLAN: Request<{ uri: string }, ViewContent> = { method: "jobc/plan" };

/** What a backend writes for an open job file, all files in one text. */
export const ARTIFACT: Request<{ uri: string; backend: string }, ViewContent> = { method: "jobc/artifact" };

/** The targets of an open job file. */
export const TARGETS: Request<{ uri: string }, Targets> = { method: "jobc/targets" };

/** A text of another tool as a job file, with findings at its lines. */
export const IMPORT: Request<{ uri: string; text: string }, Imported> = { method: "jobc/import" };

/** The page of a diagnostic code, as `jobc explain` prints it. */
export const EXPLAIN: Request<{ code: string }, { code: string; title: string; markdown: string }> = { method: "jobc/explain" };

/** What a line of an open job file causes, or with `file` what causes a line of a built file. Lines are from 0. */
export const WHY: Request<{ uri: string; line: number; file?: BuiltFile }, WhyAnswer> = { method: "jobc/why" };

/** Every file that a build of an open job file writes. */
export const BUILD: Request<{ uri: string }, { files: (BuiltFile & { text: string })[] }> = { method: "jobc/build" };

export interface Imported {
    /** Null: the findings have errors. */
    text: string | null;
    /** A targets file with the settings of the cluster, where the source has any. */
    targets: string | null;
    /** As the protocol has them. */
    findings: Diagnostic[];
}

/** A file of a build. */
export interface BuiltFile {
    job: string;
    target: string;
    path: string;
}

export interface WhyAnswer {
    fields: string[];
    lines: (BuiltFile & { line: number; text: string })[];
    causes: { text: string; line: number | null }[];
}

/** A text to show. */
export interface ViewContent {
    text: string;
    languageId: string;
}

/** The targets that a job may be shown for. */
export interface Targets {
    /** The targets file; null: the built-in targets. */
    file: string | null;
    targets: { name: string; description: string; backends: string[] }[];
    /** Those that the command line uses if none is requested; empty: all. */
    default: string[];
    /** Those that the job is shown for. */
    shown: string[];
}
