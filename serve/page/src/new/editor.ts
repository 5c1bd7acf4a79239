// The editor of the job: Monaco with the server's language features, the problems below it, and what is built beside it.

import { toMarker, toRange } from "../../../../editors/web/src/editor/convert";
import { YAML } from "../../../../editors/web/src/editor/languages";
import { makeEditor, monaco } from "../../../../editors/web/src/editor/monaco";
import { Outputs } from "../../../../editors/web/src/editor/outputs";
import { Problems, reveal, type Problem } from "../../../../editors/web/src/editor/problems";
import type { Artifact, Diagnostic } from "../../../../editors/web/src/editor/protocol";
import type { Compiler } from "../../../../editors/web/src/editor/server";

import { attach, language, reconnect } from "./socket";

const NAME = "job.yaml";
const URI = monaco.Uri.file(`/${NAME}`);

export interface Elements {
    editor: HTMLElement;
    findings: HTMLElement;
    summary: HTMLElement;
    explanation: HTMLDialogElement;
    outputs: HTMLElement;
    panel: HTMLElement;
    notice: HTMLElement;
    viewer: HTMLElement;
}

export interface Owner {
    changed(text: string): void;
    connected(isConnected: boolean): void;
}

export class JobEditor {
    private readonly editor: monaco.editor.IStandaloneCodeEditor;
    private readonly model: monaco.editor.ITextModel;
    private readonly problems: Problems;
    private readonly outputs: Outputs;
    private readonly detach: () => void;
    private own: Diagnostic[] = [];
    private theirs: Diagnostic[] = [];
    private entries: Record<string, string | boolean> = { "/": true };
    private target = "";
    private upload = "";

    constructor(elements: Elements, text: string, owner: Owner) {
        monaco.editor.getModel(URI)?.dispose();
        this.model = monaco.editor.createModel(text, YAML, URI);
        this.model.updateOptions({ tabSize: 2, insertSpaces: true });
        this.editor = makeEditor(elements.editor);
        this.editor.setModel(this.model);
        this.problems = new Problems(elements.findings, elements.summary, elements.explanation, {
            reveal: (problem) => reveal(this.editor, toRange(problem.range)),
            explain: (code) => language().ask("jobc/explain", { code }),
        });
        this.outputs = new Outputs(elements.outputs, elements.panel, elements.notice, elements.viewer);
        this.detach = attach({
            document: () => ({ uri: URI.toString(), text: this.model.getValue(), version: this.model.getVersionId() }),
            files: () => this.entries,
            target: () => this.target,
            upload: () => this.upload,
            onDiagnostics: (diagnostics) => {
                this.own = diagnostics;
                this.show();
            },
            onConnection: (isConnected) => {
                if (!isConnected) {
                    this.own = [];
                }
                owner.connected(isConnected);
            },
        });
        this.model.onDidChangeContent(({ changes, versionId }) => {
            const contentChanges = changes.map(({ range, text }) => ({
                range: { start: { line: range.startLineNumber - 1, character: range.startColumn - 1 }, end: { line: range.endLineNumber - 1, character: range.endColumn - 1 } },
                text,
            }));
            language().tell("textDocument/didChange", { textDocument: { uri: URI.toString(), version: versionId }, contentChanges });
            // What the server found was about another text.
            this.theirs = [];
            owner.changed(this.model.getValue());
        });
    }

    get text(): string {
        return this.model.getValue();
    }

    /** Replaces a part of the text, as the user could, so that it can be undone. */
    edit({ from, to, insert }: { from: number; to: number; insert: string }): void {
        const [start, end] = [this.model.getPositionAt(from), this.model.getPositionAt(to)];
        this.editor.pushUndoStop();
        this.editor.executeEdits("form", [{ range: new monaco.Range(start.lineNumber, start.column, end.lineNumber, end.column), text: insert, forceMoveMarkers: true }]);
        this.editor.pushUndoStop();
    }

    /** Another text altogether. */
    replace(text: string): void {
        this.edit({ from: 0, to: this.model.getValueLength(), insert: text });
    }

    setTarget(target: string): void {
        this.target = target;
        language().tell("workspace/didChangeConfiguration", { settings: { jobc: { target } } });
    }

    /** The files beside the job. */
    setFiles(entries: Record<string, string | boolean>, upload: string): void {
        this.entries = { "/": true, ...entries };
        if (upload !== this.upload) {
            this.upload = upload;
            reconnect();
            return;
        }
        language().tell("jobc/files", this.entries);
    }

    /** Shows what a check of the server has found beyond the language server. */
    setFindings(found: Diagnostic[]): void {
        this.theirs = found;
        this.show();
    }

    build(plan: () => Promise<string>, files: () => Promise<Artifact[]>): Promise<boolean> {
        const answer = async (method: string): Promise<unknown> => (method === "jobc/plan" ? { text: await plan() } : { files: await files() });
        return this.outputs.build({ ask: answer as Compiler["ask"] }, URI.toString(), () => undefined);
    }

    focus(): void {
        this.editor.focus();
    }

    dispose(): void {
        this.detach();
        this.editor.dispose();
        this.outputs.viewer.dispose();
        this.outputs.viewer.getModel()?.dispose();
        monaco.editor.getModels().forEach((model) => model.dispose());
    }

    private show(): void {
        const keyOf = ({ code, message, range }: Diagnostic): string => `${code} ${range.start.line} ${message.split("\n")[0]}`;
        const known = new Set(this.own.map(keyOf));
        const all = [...this.own, ...this.theirs.filter((it) => !known.has(keyOf(it)))];
        monaco.editor.setModelMarkers(this.model, "jobc", all.map(toMarker));
        this.problems.show(all.filter(({ severity }) => (severity ?? 1) < 4).map((it): Problem => ({ ...it, file: NAME })));
    }
}
