// What the server says of a text: findings for each place, the plan, and the files that are built.

import type { Artifact, Diagnostic as EditorDiagnostic } from "../../../../editors/web/src/editor/protocol";

import { Problem, post } from "../api";
import { bytes } from "../format";
import type { Checked, Diagnostic, Plan, Totals } from "../types";

export interface Body {
    text: string;
    upload?: string;
}

/** What a place makes of the job. */
export interface Verdict {
    errors: number;
    warnings: number;
    diagnostics: Diagnostic[];
}

export async function check(body: Body, place: string, signal: AbortSignal): Promise<Verdict> {
    const { errors = 0, warnings = 0, diagnostics = [] } = await post<Partial<Checked>>("/check", { ...body, targets: [place] }, { signal });
    return { errors, warnings, diagnostics };
}

interface PlanDocument {
    jobs?: Plan[];
    totals?: Totals;
}

export interface Compiled {
    plan: PlanDocument;
    totals: Totals | undefined;
    jobs: number;
    files: Artifact[];
}

/** What comes out for a place whose verdict has no errors; otherwise it fails with the first of them. */
export async function compile(body: Body, place: string, { diagnostics: found }: Verdict, signal: AbortSignal): Promise<Compiled> {
    const first = found.find(({ severity }) => severity === "error");
    if (first !== undefined) {
        throw new Error(`${first.code}: ${first.message}`);
    }
    const more = { signal };
    const [plan, built] = await Promise.all([post<PlanDocument>("/plan", { ...body, targets: [place] }, more), post<{ files?: BuiltFile[] }>("/build", { ...body, targets: [place] }, more)]);
    const jobs = plan.jobs ?? [];
    return { plan, totals: total(jobs), jobs: jobs.length, files: artifacts(built.files ?? [], jobs[0]?.name ?? "") };
}

interface BuiltFile {
    /** Null where there is one. */
    job: string | null;
    target: string;
    path: string;
    /** Null where it is no text, or there is too much of it. */
    text: string | null;
    size: number;
}

function artifacts(files: BuiltFile[], only: string): Artifact[] {
    return files.map(({ job, target, path, text, size }) => ({ job: job ?? only, target, path, text: text ?? `(${bytes(size)} that are not shown)` }));
}

/** What all jobs of a sweep take together. */
function total(jobs: Plan[]): Totals | undefined {
    const all = jobs.flatMap(({ totals }) => (totals ? [totals] : []));
    const sum = (of: (it: Totals) => number | undefined): number => all.reduce((so, it) => so + (of(it) ?? 0), 0);
    return all.length === 0 ? undefined : { instances: sum((it) => it.instances), cpu_millis: sum((it) => it.cpu_millis), memory_bytes: sum((it) => it.memory_bytes), gpus: sum((it) => it.gpus) };
}

const SEVERITIES = { error: 1, warning: 2, note: 3 } as const;

/** A finding of the API as one of the language server; those of other files are not in the editor. */
export function toEditor(found: Diagnostic[]): EditorDiagnostic[] {
    return found.map(({ code, severity, message, start, end, notes }) => {
        const place = (span: Diagnostic["start"]): { line: number; character: number } => ({ line: Math.max(0, (span?.line ?? 1) - 1), character: Math.max(0, (span?.column ?? 1) - 1) });
        return { code, severity: SEVERITIES[severity] ?? 1, message: [message, ...notes].join("\n"), range: { start: place(start), end: place(end ?? start) }, source: "jobc" };
    });
}

/** The sentence about a request that failed. */
export function reasonOf(error: unknown): string {
    return error instanceof Problem ? [error.message, ...error.hints].join("; ") : (error as Error).message;
}

/** A key that tells one submission from another; a browser has no UUIDs where the page comes without HTTPS from another host. */
export function newKey(): string {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((it) => it.toString(16).padStart(2, "0")).join("");
}
