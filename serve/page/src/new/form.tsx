// The form beside the text: parameters of the template or the job, the roles, and the files beside the job. Each field is a
// place of the text, so either changes the other.

import { useMemo, useState } from "preact/hooks";

import { path } from "../api";
import { bytes, count } from "../format";
import type { Param, Template } from "../types";
import { useDocument } from "../use";
import { chosen, dropped, type Entry, type Given } from "./upload";
import { read, type Edit, type JobFile, type Path } from "./yaml_edit";

interface Props {
    text: string;
    files: Entry[];
    busy: string;
    edit(change: Edit): void;
    give(files: Given[]): void;
    remove(path: string): void;
}

export function Form({ text, files, busy, edit, give, remove }: Props) {
    const job = useMemo(() => read(text), [text]);
    return (
        <section class="form" aria-label="Form">
            {job === null ? <p class="quiet">The form is here again when the text can be read.</p> : <Fields job={job} edit={edit} />}
            <Beside files={files} busy={busy} give={give} remove={remove} />
        </section>
    );
}

interface FieldSpec {
    path: Path;
    label: string;
    hint?: string;
    fallback?: unknown;
    choices?: unknown[];
    isNumber?: boolean;
    isLong?: boolean;
    isWide?: boolean;
    min?: number;
    max?: number;
}

function ofParam({ name, type, rule = "", description, default: fallback, choices }: Param, at: Path): FieldSpec {
    return {
        path: at,
        label: name,
        // `integer, at least 1`: the type is seen.
        hint: [description ?? "", rule.split(", ").slice(1).join(", ")].filter((it) => it !== "").join("; "),
        ...(fallback !== null && { fallback }),
        ...(choices !== undefined && choices.length > 0 && { choices }),
        isNumber: type === "integer" || type === "number",
    };
}

/** The parameters that a job file declares. */
function declared(job: JobFile): FieldSpec[] {
    return job.keys(["params"]).map((name) => {
        const isMap = job.keys(["params", name]).length > 0;
        const at = isMap ? ["params", name, "default"] : ["params", name];
        const number = (key: string): number | undefined => {
            const value = job.value(["params", name, key]);
            return typeof value === "number" ? value : undefined;
        };
        const [hint, min, max] = [job.value(["params", name, "description"]), number("min"), number("max")];
        return { path: at, label: name, isNumber: typeof job.value(at) === "number", ...(typeof hint === "string" && { hint }), ...(min !== undefined && { min }), ...(max !== undefined && { max }) };
    });
}

/** The parameters of a template of the library that the job or a role uses. */
function Parameters({ job, at, edit }: { job: JobFile; at: Path; edit(change: Edit): void }) {
    const uses = job.value([...at, "uses"]);
    const name = typeof uses === "string" && uses.startsWith("std/") ? uses : null;
    const { data } = useDocument<Template>(name === null ? null : path("templates", name));
    if (data === undefined || data.params.length === 0) {
        return null;
    }
    return (
        <fieldset>
            <legend>{at.length > 0 ? `${at.at(-1)}: ` : ""}{name}</legend>
            {data.params.map((param) => <Field key={param.name} spec={ofParam(param, [...at, "with", param.name])} job={job} edit={edit} />)}
        </fieldset>
    );
}

function Fields({ job, edit }: { job: JobFile; edit(change: Edit): void }) {
    const roles = job.keys(["roles"]);
    const own = declared(job);
    const group = (title: string, fields: FieldSpec[]) => fields.length > 0 && (
        <fieldset key={title}>
            <legend>{title}</legend>
            {fields.map((spec) => <Field key={spec.path.join(".")} spec={spec} job={job} edit={edit} />)}
        </fieldset>
    );
    return (
        <>
            {group("Job", [{ path: ["name"], label: "name", isWide: true }, ...(job.has(["image"]) && job.keys(["image"]).length === 0 ? [{ path: ["image"], label: "image", isWide: true }] : [])])}
            <Parameters job={job} at={[]} edit={edit} />
            {group("Parameters", own)}
            {roles.map((role) => job.has(["roles", role, "uses"]) ? (
                <Parameters key={role} job={job} at={["roles", role]} edit={edit} />
            ) : (
                group(role, [
                    { path: ["roles", role, "instances"], label: "instances", isNumber: true, min: 1, fallback: 1 },
                    { path: ["roles", role, "resources", "cpu"], label: "CPUs", isNumber: true, min: 0 },
                    { path: ["roles", role, "resources", "memory"], label: "memory" },
                    ...(job.keys(["roles", role, "resources", "gpu"]).length === 0 ? [{ path: ["roles", role, "resources", "gpu"], label: "GPUs", isNumber: true, min: 0, fallback: 0 }] : []),
                    ...(job.keys(["roles", role, "run"]).length === 0 ? [{ path: ["roles", role, "run"], label: "run", isLong: true }] : []),
                ])
            ))}
        </>
    );
}

function Field({ spec, job, edit }: { spec: FieldSpec; job: JobFile; edit(change: Edit): void }) {
    const { path: at, label, hint, fallback, choices, isNumber, isLong, isWide, min, max } = spec;
    const id = `field-${at.join("-")}`;
    const value = job.value(at);
    // While a field has the focus, what is typed stays as it is typed.
    const [typed, setTyped] = useState<string | null>(null);
    const shown = typed ?? (value === undefined || value === null ? "" : String(value));
    const put = (text: string): void => {
        const isPlain = text.trim() !== "" && Number.isFinite(Number(text)) && !/^0\d/.test(text);
        if (text === "" || (isNumber && !isPlain && !text.includes("${{"))) {
            return;
        }
        const change = job.set(at, (isNumber || typeof value === "number") && isPlain ? Number(text) : text);
        if (change !== null) {
            edit(change);
        }
    };
    const common = {
        id,
        "aria-describedby": hint ? `${id}-hint` : undefined,
        onBlur: () => setTyped(null),
        onInput: ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => {
            setTyped(currentTarget.value);
            put(currentTarget.value);
        },
    };
    const placeholder = fallback === undefined || fallback === null ? "" : String(fallback);
    const isFlag = typeof value === "boolean" || typeof fallback === "boolean";
    return (
        <div class={isLong ? "field long" : isWide ? "field wide" : "field"}>
            <label for={id} title={hint}>{label}</label>
            {choices ? (
                <select id={id} value={shown || placeholder} aria-describedby={hint ? `${id}-hint` : undefined} onChange={({ currentTarget }) => put(currentTarget.value)}>{choices.map((it) => <option key={String(it)} value={String(it)}>{String(it)}</option>)}</select>
            ) : isFlag ? (
                <input id={id} type="checkbox" checked={Boolean(value ?? fallback)} onChange={({ currentTarget }) => { const change = job.set(at, currentTarget.checked); if (change) edit(change); }} />
            ) : isLong ? (
                <textarea {...common} rows={Math.min(8, shown.split("\n").length + 1)} value={shown} spellcheck={false} />
            ) : (
                <input {...common} type="text" inputMode={isNumber ? "decimal" : "text"} value={shown} placeholder={placeholder} spellcheck={false} aria-invalid={outside(shown, min, max) || undefined} />
            )}
            {hint && <p class="hint" id={`${id}-hint`}>{hint}{range(min, max)}</p>}
        </div>
    );
}

function outside(text: string, min: number | undefined, max: number | undefined): boolean {
    const value = Number(text);
    return text !== "" && Number.isFinite(value) && ((min !== undefined && value < min) || (max !== undefined && value > max));
}

function range(min: number | undefined, max: number | undefined): string {
    return min === undefined && max === undefined ? "" : max === undefined ? `; at least ${min}` : min === undefined ? `; at most ${max}` : `; ${min} to ${max}`;
}

function Beside({ files, busy, give, remove }: { files: Entry[]; busy: string; give(files: Given[]): void; remove(path: string): void }) {
    const [isOver, setOver] = useState(false);
    const size = files.reduce((sum, it) => sum + it.size, 0);
    return (
        <fieldset
            class={isOver ? "beside over" : "beside"}
            onDragOver={(event) => { event.preventDefault(); setOver(true); }}
            onDragLeave={() => setOver(false)}
            onDrop={(event) => {
                event.preventDefault();
                setOver(false);
                if (event.dataTransfer) {
                    void dropped(event.dataTransfer.items).then(give);
                }
            }}
        >
            <legend>Files beside the job</legend>
            <p class="hint">What <code>copy</code>, <code>files</code> and <code>source: ./…</code> name. Drop a directory here, or choose:</p>
            <p class="row-of">
                <label class="button">files<input type="file" multiple class="hidden" onChange={({ currentTarget }) => { if (currentTarget.files) give(chosen(currentTarget.files)); currentTarget.value = ""; }} /></label>
                <label class="button">a directory<input type="file" multiple class="hidden" {...{ webkitdirectory: true }} onChange={({ currentTarget }) => { if (currentTarget.files) give(chosen(currentTarget.files)); currentTarget.value = ""; }} /></label>
            </p>
            {busy && <p class="quiet" role="status">{busy}</p>}
            {files.length > 0 && <p class="quiet">{count(files.length, "file")}, {bytes(size)}</p>}
            <ul class="given">
                {files.slice(0, 100).map(({ path: name }) => <li key={name}><span class="cut mono" title={name}>{name}</span><button type="button" class="plain" aria-label={`remove ${name}`} onClick={() => remove(name)}>×</button></li>)}
            </ul>
            {files.length > 100 && <p class="quiet">and {files.length - 100} more</p>}
        </fieldset>
    );
}
