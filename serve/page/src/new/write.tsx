// Writing a job: a form and its text, what each place says of it, what comes out, and one button that says where and what.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Problem, epoch, path, post } from "../api";
import { confirm, say } from "../dialogs";
import { bytes, count, cpus } from "../format";
import { go, jobAddress } from "../route";
import type { Difference, Place, Totals } from "../types";
import { useDocument } from "../use";
import { useValue } from "../value";
import { check, compile, newKey, reasonOf, toEditor, type Compiled, type Verdict } from "./compile";
import { DifferenceView } from "./difference";
import type { Draft } from "./draft";
import { JobEditor } from "./editor";
import { Form } from "./form";
import { entriesOf, register, upload, type Given } from "./upload";

/** How long the user must pause before the server is asked, in milliseconds. */
const PAUSE = 250;

interface Submitted {
    ref: string;
    notes?: string[];
}

type Pane = "form" | "text" | "built";

export function Write({ draft, storage, again, startOver }: { draft: Draft; storage: string; again: string | undefined; startOver(): void }) {
    const [text, setText] = useState(draft.text);
    const [files, setFiles] = useState(draft.files);
    const [uploadId, setUpload] = useState(draft.upload);
    const [notes, setNotes] = useState(draft.notes);
    const [busy, setBusy] = useState("");
    const [pane, turn] = useState<Pane>("text");
    const [isConnected, setConnected] = useState(true);
    const places = useDocument<{ places: Place[] }>("/places").data;
    const all = useMemo(() => places?.places ?? [], [places]);
    const [wanted, choose] = useState(draft.place);
    const place = all.find(({ name }) => name === wanted) ?? all[0];
    const [verdicts, setVerdicts] = useState<Record<string, Verdict>>({});
    const [compiled, setCompiled] = useState<Compiled | null>(null);
    const [isFresh, setFresh] = useState(false);
    const [problem, setProblem] = useState("");
    const [difference, setDifference] = useState<{ diff: Difference; text: string } | null>(null);
    const editor = useRef<JobEditor | null>(null);
    const submission = useRef({ text: "", place: "", key: "" });
    const elements = { editor: useRef<HTMLDivElement>(null), findings: useRef<HTMLUListElement>(null), summary: useRef<HTMLSpanElement>(null), explanation: useRef<HTMLDialogElement>(null), outputs: useRef<HTMLDivElement>(null), panel: useRef<HTMLDivElement>(null), notice: useRef<HTMLParagraphElement>(null), viewer: useRef<HTMLDivElement>(null) };
    const back = useValue(epoch);

    useEffect(() => {
        const at = Object.fromEntries(Object.entries(elements).map(([name, { current }]) => [name, current])) as unknown as ConstructorParameters<typeof JobEditor>[0];
        const made = new JobEditor(at, draft.text, { changed: setText, connected: setConnected });
        editor.current = made;
        made.setFiles(entriesOf(draft.files), draft.upload);
        return () => made.dispose();
    }, []);
    useEffect(() => {
        sessionStorage.setItem(storage, JSON.stringify({ text, place: place?.name ?? "", files, upload: uploadId, template: draft.template, notes } satisfies Draft));
    }, [text, place?.name, files, uploadId, notes]);
    useEffect(() => {
        if (place !== undefined) {
            editor.current?.setTarget(place.name);
        }
    }, [place?.name]);
    useEffect(() => editor.current?.setFiles(entriesOf(files), uploadId), [files, uploadId]);

    // The server is asked after a pause: first about the place that is chosen, then about the others.
    useEffect(() => {
        if (place === undefined) {
            return undefined;
        }
        const controller = new AbortController();
        setFresh(false);
        const body = { text, ...(uploadId !== "" && { upload: uploadId }) };
        const ask = async (): Promise<void> => {
            try {
                const verdict = await check(body, place.name, controller.signal);
                setVerdicts((before) => ({ ...before, [place.name]: verdict }));
                editor.current?.setFindings(toEditor(verdict.diagnostics));
                setProblem("");
                const result = compile(body, place.name, verdict, controller.signal);
                await editor.current?.build(
                    async () => JSON.stringify((await result).plan, null, 2),
                    async () => (await result).files,
                );
                setCompiled(await result.catch(() => null));
                setFresh(true);
                for (const other of all.filter(({ name }) => name !== place.name)) {
                    const theirs = await check(body, other.name, controller.signal);
                    setVerdicts((before) => ({ ...before, [other.name]: theirs }));
                }
            } catch (error) {
                if (controller.signal.aborted) {
                    return;
                }
                if (error instanceof Problem && error.status === 404 && uploadId !== "") {
                    // A server that has started again may not know the upload.
                    register(files, new Map(), () => undefined).then(({ id }) => setUpload(id), (other: Problem) => setProblem(other.message));
                } else {
                    setProblem(reasonOf(error));
                }
            }
        };
        const timer = setTimeout(() => void ask(), PAUSE);
        return () => {
            clearTimeout(timer);
            controller.abort();
        };
    }, [text, place?.name, uploadId, all, back]);

    const change = async (send: () => ReturnType<typeof upload>): Promise<void> => {
        try {
            const sent = await send();
            setFiles(sent.files);
            setUpload(sent.id);
        } catch (error) {
            say(reasonOf(error), true);
        } finally {
            setBusy("");
        }
    };
    const give = (given: Given[]): Promise<void> => change(() => upload(files, given, setBusy));
    const remove = (name: string): Promise<void> => {
        const rest = files.filter((file) => file.path !== name);
        return change(async () => (rest.length > 0 ? register(rest, new Map(), setBusy) : { id: "", files: [] }));
    };
    const submit = async (): Promise<void> => {
        if (place === undefined) {
            return;
        }
        if (again !== undefined && difference?.text !== text) {
            setBusy("comparing");
            try {
                const { diff } = await post<{ diff: Difference }>(path("jobs", again, "rerun"), { text });
                setDifference({ diff, text });
            } catch (error) {
                failed(error);
            } finally {
                setBusy("");
            }
            return;
        }
        // The same again, as after a lost answer, is the same submission.
        if (submission.current.text !== text || submission.current.place !== place.name) {
            submission.current = { text, place: place.name, key: newKey() };
        }
        const headers = { "Idempotency-Key": submission.current.key };
        const body = { text, place: place.name, ...(uploadId !== "" && { upload: uploadId }) };
        setBusy("submitting");
        try {
            // With files of its own the directory of the earlier job does not count.
            const isNew = again === undefined || uploadId !== "";
            const { ref, notes = [] } = isNew ? await post<Submitted>("/jobs", body, { headers }) : await post<Submitted>(path("jobs", again, "rerun"), { text, place: place.name, confirm: true }, { headers });
            notes.forEach((note) => say(note));
            sessionStorage.removeItem(storage);
            setDifference(null);
            const isSweep = (compiled?.jobs ?? 0) > 1;
            go(isSweep ? `/sweeps/${encodeURIComponent(ref)}` : jobAddress(ref));
        } catch (error) {
            failed(error);
        } finally {
            setBusy("");
        }
    };
    const failed = (error: unknown): void => {
        if (error instanceof Problem && error.diagnostics.length > 0) {
            editor.current?.setFindings(toEditor(error.diagnostics));
        }
        setDifference(null);
        setProblem(reasonOf(error));
    };
    const verdict = place && verdicts[place.name];
    const refusal = place === undefined ? "no place to run" : !place.can_submit ? (place.why ?? `${place.name} takes no jobs from here`) : (verdict?.errors ?? 0) > 0 ? `${count(verdict?.errors ?? 0, "error")} to fix first` : "";
    const where = place === undefined ? "" : place.name === "local" ? "on this host" : `on ${place.name}`;
    const takes = isFresh && compiled?.totals ? amounts(compiled.totals, compiled.jobs) : "";
    const action = again === undefined ? `${place?.name === "local" ? "Run" : "Submit"} ${where}` : `Compare and run ${where}`;
    return (
        <div class={`page fill new pane-${pane}`}>
            <div class="top">
                <h1 tabIndex={-1}>{again === undefined ? "New job" : <>Run <a href={jobAddress(again)}>{again}</a> again</>}</h1>
                {!isConnected && <span class="badge" role="status">completion is not connected</span>}
                <span class="space" />
                <div class="segments" role="group" aria-label="What is shown">
                    {([["form", "Form"], ["text", "Job file"], ["built", "What comes out"]] as const).map(([name, label]) => <button type="button" key={name} aria-pressed={pane === name} onClick={() => turn(name)}>{label}</button>)}
                </div>
                <button type="button" onClick={() => void confirm("Start over?", <p>The text of this job is dropped.</p>, "Start over").then((yes) => yes && startOver())}>Start over</button>
            </div>
            {notes.length > 0 && (
                <div class="banner warning imported" role="status">
                    <ul>{notes.map((note) => <li key={note}>{note}</li>)}</ul>
                    <button type="button" onClick={() => setNotes([])}>Hide</button>
                </div>
            )}
            <div class="split">
                <Form text={text} files={files} busy={busy} edit={(change) => editor.current?.edit(change)} give={(given) => void give(given)} remove={(name) => void remove(name)} />
                <section class="written" aria-label="Job file">
                    <div class="code" ref={elements.editor} />
                    <section class="problems" aria-label="Problems">
                        <h2>Problems <span ref={elements.summary} class="summary" role="status">checking</span></h2>
                        <ul class="findings" ref={elements.findings} />
                    </section>
                </section>
                <section class="built" aria-label="What comes out">
                    <div class="outputs" id="outputs" ref={elements.outputs} aria-label="Files that are built" />
                    <div class="output-panel" id="output-panel" ref={elements.panel}>
                        <p class="notice" role="status" hidden ref={elements.notice} />
                        <div class="viewer" ref={elements.viewer} />
                    </div>
                </section>
            </div>
            <footer class="submit" data-fresh={isFresh}>
                <div class="places" role="radiogroup" aria-label="Where it runs">
                    {all.map((each) => <PlaceChoice key={each.name} place={each} verdict={verdicts[each.name]} isChosen={each.name === place?.name} choose={() => choose(each.name)} />)}
                </div>
                <p class={problem === "" ? "quiet why" : "problem why"} role="status" id="refusal">{problem || busy || refusal}</p>
                <button type="button" class="primary submit-button" disabled={refusal !== "" || busy !== "" || !isFresh || compiled === null} aria-describedby="refusal" onClick={() => void submit()}>
                    {action}{takes && <span class="takes"> {takes}</span>}
                </button>
            </footer>
            <dialog ref={elements.explanation} class="explanation" aria-label="What a code means">
                <form method="dialog"><button aria-label="Close">×</button></form>
                <article />
            </dialog>
            {difference && <DifferenceView diff={difference.diff} action={`Run ${where}`} busy={busy !== ""} onCancel={() => setDifference(null)} onConfirm={() => void submit()} />}
        </div>
    );
}

function amounts(totals: Totals, jobs: number): string {
    return [jobs > 1 ? count(jobs, "job") : "", count(totals.instances, "task"), totals.cpu_millis ? cpus(totals.cpu_millis) : "", totals.memory_bytes ? bytes(totals.memory_bytes) : "", totals.gpus ? count(totals.gpus, "GPU") : ""].filter((it) => it !== "").join(", ");
}

function PlaceChoice({ place, verdict, isChosen, choose }: { place: Place; verdict: Verdict | undefined; isChosen: boolean; choose(): void }) {
    const [kind, text] = verdict === undefined ? ["still", "…"] : verdict.errors > 0 ? ["bad", `✕ ${count(verdict.errors, "error")}`] : !place.can_submit ? ["still", "builds"] : verdict.warnings > 0 ? ["waiting", `! ${count(verdict.warnings, "warning")}`] : ["fine", "✓ ready"];
    const title = [place.description, place.can_submit ? "" : place.why, ...(verdict?.diagnostics.slice(0, 3).map(({ message }) => message) ?? [])].filter((it) => it).join("\n");
    return (
        <label class={isChosen ? "place chosen" : "place"} title={title}>
            <input type="radio" name="place" checked={isChosen} onChange={choose} />
            {place.name} <span class={`state ${kind}`}>{text}</span>
        </label>
    );
}
