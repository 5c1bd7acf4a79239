// Linked lines: what a line of the job causes in built files, and what causes a line of a built file. The line under the
// pointer counts, otherwise that of the cursor.

import { count } from "./editor/display";
import { monaco } from "./editor/monaco";
import type { Outputs } from "./editor/outputs";
import { sameFile, type BuiltFile, type BuiltLine, type Why } from "./editor/protocol";
import type { Server } from "./editor/server";
import type { Tabs } from "./editor/tabs";

/** How long the pointer or the cursor must stay on a line, in milliseconds. */
const PAUSE = 120;
/** Maximum number of fields and causes in the sentence about a line. */
const MAX_NAMES = 3;

/** A line of the job, or of the built file that is shown; from 0. */
interface Place {
    file?: BuiltFile;
    line: number;
}

/** What the links need of the page. */
export interface Page {
    editor: monaco.editor.IStandaloneCodeEditor;
    outputs: Outputs;
    /** The tabs of the files of the job. */
    inputs: Tabs;
    /** The sentence about the line. */
    sentence: HTMLElement;
    server(): Server;
    /** The job's file in the tabs, and its address. */
    job(): { name: string; uri: string };
    /** Shows what is built, or the job, where there is room for one of them. */
    turn(isBuilt: boolean): void;
}

export class Links {
    private readonly inJob: monaco.editor.IEditorDecorationsCollection;
    private readonly inBuilt: monaco.editor.IEditorDecorationsCollection;
    /** Where the cursor was set last; undefined before and in other files. */
    private cursor: Place | undefined;
    private shown: Place | undefined;
    private answer: Why | undefined;
    private request: monaco.CancellationTokenSource | undefined;
    private timer = 0;

    constructor(private readonly page: Page) {
        const { editor, outputs } = page;
        this.inJob = editor.createDecorationsCollection();
        this.inBuilt = outputs.viewer.createDecorationsCollection();
        this.listen(editor, (line) => (this.isJobShown() ? { line } : undefined));
        this.listen(outputs.viewer, (line) => outputs.current && { line, file: outputs.current });
        outputs.onShow = (isOther) => this.refresh(isOther);
        const KEYS = { next: monaco.KeyCode.F4, back: monaco.KeyMod.Shift | monaco.KeyCode.F4 };
        const menu = { contextMenuGroupId: "navigation" };
        const next = { ...menu, id: "jobc.linked.next", label: "Go to Next Linked Line", keybindings: [KEYS.next] };
        editor.addAction({ ...next, run: () => this.enter() });
        outputs.viewer.addAction({ ...next, run: () => this.advance() });
        outputs.viewer.addAction({ ...menu, id: "jobc.linked.back", label: "Go to the Line of the Job", keybindings: [KEYS.back], run: () => this.back() });
    }

    /** Forgets every line, for another project. */
    clear(): void {
        clearTimeout(this.timer);
        this.cursor = undefined;
        void this.show(undefined, false);
    }

    /** Asks again: the job or what is built has changed, or another file of them is shown. */
    refresh(reveal: boolean): void {
        if (this.isGone(this.cursor)) {
            this.cursor = undefined;
        }
        if (this.isGone(this.shown)) {
            this.shown = this.cursor;
            this.answer = undefined;
        }
        this.draw();
        void this.show(this.shown, reveal);
    }

    private listen(editor: monaco.editor.IStandaloneCodeEditor, placeOf: (line: number) => Place | undefined): void {
        const atCursor = (): void => {
            if (editor.hasTextFocus()) {
                this.cursor = placeOf((editor.getPosition()?.lineNumber ?? 1) - 1);
                this.turnTo(this.cursor, true);
            }
        };
        editor.onDidChangeCursorPosition(atCursor);
        editor.onDidFocusEditorText(atCursor);
        editor.onMouseMove(({ target }) => {
            const isBelow = target.type === monaco.editor.MouseTargetType.CONTENT_EMPTY && target.detail.isAfterLines;
            const place = target.position === null || isBelow ? undefined : placeOf(target.position.lineNumber - 1);
            this.turnTo(place ?? this.cursor);
        });
        editor.onMouseLeave(() => this.turnTo(this.cursor));
    }

    /** Shows the links of a line after a pause; with `reveal`, the other side is scrolled to the first one. */
    private turnTo(place: Place | undefined, reveal = false): void {
        clearTimeout(this.timer);
        if (samePlace(place, this.shown)) {
            return;
        }
        this.timer = setTimeout(() => void this.show(place, reveal), PAUSE);
    }

    private async show(place: Place | undefined, reveal: boolean): Promise<void> {
        this.request?.cancel();
        const request = new monaco.CancellationTokenSource();
        this.request = request;
        if (!samePlace(place, this.shown)) {
            this.answer = undefined;
        }
        this.shown = place;
        const answer = place && (await this.ask(place, request.token));
        if (request.token.isCancellationRequested) {
            return;
        }
        this.answer = answer;
        this.draw();
        if (reveal) {
            this.reveal();
        }
    }

    /** The links of a line; undefined if the job has errors. */
    private async ask({ line, file }: Place, token?: monaco.CancellationToken): Promise<Why | undefined> {
        const { uri } = this.page.job();
        return await this.page.server().ask<Why>("jobc/why", { uri, line, ...(file && { file }) }, token).catch(() => undefined);
    }

    private draw(): void {
        const { outputs, inputs, sentence, job } = this.page;
        const { lines = [], causes = [] } = this.answer ?? {};
        const place = this.answer && this.shown;
        const here = lines.filter((line) => sameFile(line, outputs.current));
        const there = causes.flatMap(({ line, last }) => (line === null ? [] : [{ line, last: last ?? line }]));
        const isBuilt = place?.file !== undefined;
        const own = place === undefined ? [] : [decoration(place.line, place.line, true)];
        const linked = (isBuilt ? there : here).map(({ line, last }) => decoration(line, last, false));
        this.inBuilt.set(isBuilt ? own : linked);
        this.inJob.set(!this.isJobShown() ? [] : isBuilt ? linked : own);
        outputs.mark(lines);
        inputs.mark(new Map(isBuilt ? [[job().name, new Set(there.map(({ line }) => line)).size]] : []));
        const text = place === undefined || this.answer === undefined ? "" : isBuilt ? aboutCauses(this.answer, job().name) : aboutEffects(this.answer);
        // The same text again would be read aloud again.
        if (sentence.textContent !== text) {
            sentence.textContent = text;
            sentence.title = text;
        }
    }

    private reveal(): void {
        const { editor, outputs } = this.page;
        const first = this.shown?.file === undefined ? this.answer?.lines.find((line) => sameFile(line, outputs.current)) : this.answer?.causes.find(({ line }) => line !== null);
        if (typeof first?.line === "number") {
            const other = this.shown?.file === undefined ? outputs.viewer : editor;
            if (other !== editor || this.isJobShown()) {
                other.revealLineInCenterIfOutsideViewport(first.line + 1);
            }
        }
    }

    /** From the line of the job to the first line that it causes: in the file that is shown, else in the first one. */
    private async enter(): Promise<void> {
        const { editor, outputs } = this.page;
        const line = (editor.getPosition()?.lineNumber ?? 1) - 1;
        const lines = (this.isJobShown() ? await this.ask({ line }) : undefined)?.lines ?? [];
        this.goTo(lines.find((it) => sameFile(it, outputs.current)) ?? lines[0]);
    }

    /** From a line of a built file to the next line with the same cause, after the last one to the first. */
    private async advance(): Promise<void> {
        const { file, line, cause } = await this.atViewer();
        if (file === undefined || cause === undefined) {
            return;
        }
        const lines = (await this.ask({ line: cause }))?.lines ?? [];
        const at = lines.findLastIndex((it) => sameFile(it, file) && it.line <= line);
        this.goTo(lines[(at + 1) % lines.length]);
    }

    /** From a line of a built file to the line of the job that causes it. */
    private async back(): Promise<void> {
        const { editor, inputs, job } = this.page;
        const { cause } = await this.atViewer();
        if (cause !== undefined) {
            inputs.select(job().name);
            this.moveTo(editor, { line: cause });
        }
    }

    private async atViewer(): Promise<{ file: BuiltFile | undefined; line: number; cause: number | undefined }> {
        const { viewer, current: file } = this.page.outputs;
        const line = (viewer.getPosition()?.lineNumber ?? 1) - 1;
        const causes = (file && (await this.ask({ line, file })))?.causes ?? [];
        return { file, line, cause: causes.find((it) => it.line !== null)?.line ?? undefined };
    }

    private goTo(line: BuiltLine | undefined): void {
        if (line !== undefined) {
            this.page.outputs.select(line);
            // What was asked for the other file must not scroll this one.
            this.request?.cancel();
            this.shown = this.answer = undefined;
            const { viewer, current: file } = this.page.outputs;
            this.moveTo(viewer, { line: line.line, ...(file && { file }) });
        }
    }

    private moveTo(editor: monaco.editor.IStandaloneCodeEditor, place: Place): void {
        const lineNumber = place.line + 1;
        this.page.turn(place.file !== undefined);
        editor.setPosition({ lineNumber, column: 1 });
        editor.revealLineInCenterIfOutsideViewport(lineNumber);
        editor.focus();
        // The cursor does not move from the first line of a file to that of another one.
        this.cursor = place;
        this.turnTo(place, true);
    }

    /** Whether a line is in a file that is not shown now. */
    private isGone(place: Place | undefined): boolean {
        return place !== undefined && !(place.file === undefined ? this.isJobShown() : sameFile(place.file, this.page.outputs.current));
    }

    private isJobShown(): boolean {
        return this.page.editor.getModel()?.uri.toString() === this.page.job().uri;
    }
}

function samePlace(a: Place | undefined, b: Place | undefined): boolean {
    return a?.line === b?.line && (a?.file === b?.file || sameFile(a?.file, b?.file));
}

/** Lines with a frame or a bar, and a sign beside them: no mark is a color alone. */
function decoration(line: number, last: number, isOwn: boolean): monaco.editor.IModelDeltaDecoration {
    const kind = isOwn ? "own" : "other";
    return {
        range: new monaco.Range(line + 1, 1, last + 1, 1),
        options: {
            isWholeLine: true,
            className: `linked-line ${kind}`,
            linesDecorationsClassName: `linked-sign ${kind}`,
            ...(!isOwn && { overviewRuler: { color: { id: "editorInfo.foreground" }, position: monaco.editor.OverviewRulerLane.Full } }),
        },
    };
}

function aboutEffects({ fields, lines }: Why): string {
    if (fields.length === 0) {
        return "";
    }
    const files = new Set(lines.map(({ job, target, path }) => `${job}/${target}/${path}`));
    const places = new Set(lines.map(({ job, target, path, line }) => `${job}/${target}/${path}:${line}`));
    // The numbers come first: the end may not be on the screen.
    const numbers = places.size === 0 ? "No recorded lines" : `${count(places.size, "line")} in ${count(files.size, "file")}`;
    return `${numbers}: ${listed(fields)}`;
}

function aboutCauses({ causes }: Why, job: string): string {
    const texts = causes.map(({ text, line }) => (line === null ? text.replaceAll("`", "") : `${text} (${job}, line ${line + 1})`));
    return texts.length === 0 ? "Nothing is recorded for this line" : `From ${listed(texts)}`;
}

function listed(names: string[]): string {
    const more = names.length - MAX_NAMES;
    return names.slice(0, MAX_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
