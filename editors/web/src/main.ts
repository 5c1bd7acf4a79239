// The playground: the files of a job in an editor, what is built of it beside it, and the compiler in a worker.

import { startWorker } from "./channel";
import { toMarker, toRange } from "./editor/convert";
import { registerFeatures } from "./editor/features";
import { JSON as JSON_MODE, YAML, languageOfInput, registerLanguages } from "./editor/languages";
import { Import } from "./import";
import { isTooLarge, tooLarge } from "./limit";
import { Links } from "./links";
import { followColors, makeEditor, monaco, useWorker } from "./editor/monaco";
import { Outputs } from "./editor/outputs";
import { Problems, reveal, type Problem } from "./editor/problems";
import type { Diagnostic, Targets } from "./editor/protocol";
import { Server } from "./editor/server";
import { decode, encode, type Project } from "./share";
import { Tabs } from "./editor/tabs";

interface Example {
    name: string;
    title: string;
    main: string;
    files: Record<string, string>;
    directories: string[];
}

/** The directory of the job, which exists nowhere. */
const ROOT = "/playground";
/** Parameters whose default is an environment variable have their other default. */
const OPTIONS = { emptyEnvironment: true };
/** How long the user must pause before the files are built again, in milliseconds. */
const PAUSE = 150;
/** How long a message stays that needs no answer, in milliseconds. */
const MESSAGE = 10_000;

function element<T extends HTMLElement>(id: string): T {
    return document.getElementById(id) as T;
}

const asset = (name: string): Promise<Response> => fetch(new URL(name, import.meta.url));

useWorker(new URL("./editor.worker.js", import.meta.url));

class Playground {
    private readonly editor = makeEditor(element("editor"));
    private readonly inputs = new Tabs(element("inputs"), element("editor-panel"), (key) => this.open(key));
    private readonly outputs = new Outputs(element("outputs"), element("output-panel"), element("notice"), element("viewer"));
    private readonly problems = new Problems(element("findings"), element("summary"), element("page"), {
        reveal: (problem) => this.reveal(problem),
        explain: (code) => this.server.ask("jobc/explain", { code }),
    });
    private readonly links = new Links({
        editor: this.editor,
        outputs: this.outputs,
        inputs: this.inputs,
        sentence: element("links"),
        server: () => this.server,
        job: () => ({ name: this.project.main, uri: this.uri }),
        turn: (isBuilt) => this.turn(isBuilt),
    });
    private readonly imports = new Import(element("import-dialog"), {
        ask: (name, text) => this.server.ask("jobc/import", { uri: uriOf(name), text }),
        show: (project, source, findings) => this.showImported(project, source, findings),
    });
    private readonly findings = new Map<string, Diagnostic[]>();
    private readonly examples = element<HTMLSelectElement>("example");
    private readonly target = element<HTMLSelectElement>("target");
    private models = new Map<string, monaco.editor.ITextModel>();
    private project: Project = { main: "job.yaml", files: {}, target: "" };
    /** The texts that the server has: all but those that are too large. */
    private readonly told = new Set<monaco.editor.ITextModel>();
    /** The URI of the file that the job was made of; its findings are not the server's. */
    private imported = "";
    private stopped = false;
    private timer = 0;
    private message = 0;

    constructor(
        private server: Server,
        private readonly wasm: WebAssembly.Module,
        private readonly known: Example[],
    ) {
        registerLanguages();
        registerFeatures([YAML, JSON_MODE], { server: () => this.server, findings: (uri) => this.findings.get(uri.toString()) ?? [] }, server.capabilities);
        followColors();
        this.listen();
        this.examples.replaceChildren(...known.map(({ name, title }) => new Option(`${name} · ${title}`, name)));
        this.examples.addEventListener("change", () => this.example(this.examples.value));
        this.target.addEventListener("change", () => this.choose(this.target.value));
        element("import").addEventListener("click", () => this.imports.open());
        element("share").addEventListener("click", () => void this.share());
        for (const isBuilt of [false, true]) {
            this.pane(isBuilt).addEventListener("click", () => this.turn(isBuilt));
        }
        addEventListener("hashchange", () => void this.navigate());
    }

    /** Shows what the address names: a shared project, an example, or the first one. */
    async navigate(): Promise<void> {
        const name = /^#example=([\w-]+)$/.exec(location.hash)?.[1];
        let message = "";
        try {
            const shared = await decode(location.hash);
            if (shared !== undefined) {
                this.examples.selectedIndex = -1;
                this.load(shared);
                return;
            }
        } catch (error) {
            message = `The link cannot be read: ${(error as Error).message}`;
        }
        const found = this.known.find((it) => it.name === name) ?? this.known[0];
        if (found !== undefined) {
            this.load({ main: found.main, files: found.files, target: "" }, found.directories);
            this.examples.value = found.name;
        }
        this.say(message, true);
    }

    private example(name: string): void {
        // The address names it, and the way back leads to what was there before.
        location.hash = `example=${name}`;
    }

    /** A job with the file that it was made of, whose findings stay until that is changed. */
    private showImported(project: Project, source: string, findings: Diagnostic[]): void {
        this.examples.selectedIndex = -1;
        history.pushState(null, "", location.pathname + location.search);
        this.load(project);
        this.imported = uriOf(source);
        this.show(this.imported, findings);
        const number = findings.length === 1 ? "1 finding" : `${findings.length} findings`;
        this.say(findings.length === 0 ? "" : `${number} in ${source}: what the job does not have as it was`, true);
    }

    private load(project: Project, directories = directoriesOf(Object.keys(project.files))): void {
        for (const model of this.models.values()) {
            this.close(model);
            model.dispose();
        }
        this.say("");
        this.project = structuredClone(project);
        this.findings.clear();
        this.imported = "";
        this.links.clear();
        this.outputs.clear();
        this.models = new Map(
            Object.entries(project.files).map(([path, text]) => {
                const model = monaco.editor.createModel(text, languageOfInput(path, project.main), monaco.Uri.file(`${ROOT}/${path}`));
                model.updateOptions({ tabSize: 2, insertSpaces: true });
                model.onDidChangeContent((event) => this.changed(model, event));
                return [path, model];
            }),
        );
        this.server.tell("jobc/files", Object.fromEntries(["", ...directories].map((path) => [path === "" ? ROOT : `${ROOT}/${path}`, true])));
        this.tell();
        const order = [project.main, ...Object.keys(project.files).filter((path) => path !== project.main)];
        this.inputs.show(order.map((path) => ({ key: path, label: path })), project.main);
        this.open(project.main);
        void this.listTargets();
    }

    /** Opens every file at the server. */
    private tell(): void {
        this.server.tell("workspace/didChangeConfiguration", { settings: { jobc: { target: this.project.target } } });
        for (const model of this.models.values()) {
            this.tellOf(model);
        }
        this.buildSoon();
    }

    /** Opens a file at the server, if it is not too large. */
    private tellOf(model: monaco.editor.ITextModel): void {
        if (!isTooLarge(model.getValueLength())) {
            const textDocument = { uri: model.uri.toString(), languageId: model.getLanguageId(), version: model.getVersionId(), text: model.getValue() };
            this.server.tell("textDocument/didOpen", { textDocument });
            this.told.add(model);
        }
    }

    private close(model: monaco.editor.ITextModel): void {
        if (this.told.delete(model)) {
            this.server.tell("textDocument/didClose", { textDocument: { uri: model.uri.toString() } });
        }
    }

    private open(path: string): void {
        this.editor.setModel(this.models.get(path) ?? null);
        this.links.refresh(true);
    }

    private changed(model: monaco.editor.ITextModel, { changes, versionId }: monaco.editor.IModelContentChangedEvent): void {
        if (this.stopped) {
            void this.restart();
            return;
        }
        this.say("");
        this.buildSoon();
        if (model.uri.toString() === this.imported) {
            this.show(this.imported, []);
        }
        if (isTooLarge(model.getValueLength())) {
            this.close(model);
            return;
        }
        if (!this.told.has(model)) {
            this.tellOf(model);
            return;
        }
        const contentChanges = changes.map(({ range, text }) => ({
            range: {
                start: { line: range.startLineNumber - 1, character: range.startColumn - 1 },
                end: { line: range.endLineNumber - 1, character: range.endColumn - 1 },
            },
            text,
        }));
        this.server.tell("textDocument/didChange", { textDocument: { uri: model.uri.toString(), version: versionId }, contentChanges });
        if (/targets\.ya?ml$/.test(model.uri.path)) {
            void this.listTargets();
        }
    }

    private buildSoon(): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.build(), PAUSE);
    }

    private async build(): Promise<void> {
        const leftOut = this.leftOut();
        if (leftOut !== undefined) {
            const [path, model] = leftOut;
            this.problems.say("not compiled");
            this.outputs.refuse(tooLarge(path, model.getValue()));
        } else if (await this.outputs.build(this.server, this.uri, () => this.problems.say("compiling"))) {
            this.problems.say("");
        }
    }

    /** A file that is too large, with its path. */
    private leftOut(): [string, monaco.editor.ITextModel] | undefined {
        return [...this.models].find(([, model]) => !this.told.has(model));
    }

    private get uri(): string {
        return uriOf(this.project.main);
    }

    private listen(): void {
        this.server.on<{ uri: string; diagnostics: Diagnostic[] }>("textDocument/publishDiagnostics", ({ uri, diagnostics }) => this.show(uri, diagnostics));
        this.server.on<{ reason: string }>("jobc/stopped", ({ reason }) => {
            this.stopped = true;
            console.error(reason);
            this.say("The compiler has failed on this text, which is a bug of jobc. It starts again with the next change.", true);
        });
    }

    /** Shows the findings of a file beside those of the others. */
    private show(uri: string, diagnostics: Diagnostic[]): void {
        this.findings.set(uri, diagnostics);
        const model = monaco.editor.getModel(monaco.Uri.parse(uri));
        if (model !== null) {
            monaco.editor.setModelMarkers(model, "jobc", diagnostics.map(toMarker));
        }
        const all = [...this.findings].flatMap(([of, found]) => found.map((it): Problem => ({ ...it, file: of.slice(of.indexOf(ROOT) + ROOT.length + 1) })));
        this.problems.show(all);
        if (this.leftOut() !== undefined) {
            this.problems.say("not compiled");
        }
    }

    /** A new worker after a failure, with the texts as they are now. */
    private async restart(): Promise<void> {
        this.stopped = false;
        this.told.clear();
        this.server.stop();
        this.server = await Server.start(startWorker(this.wasm), OPTIONS);
        this.listen();
        this.say("");
        this.tell();
    }

    private async listTargets(): Promise<void> {
        const { targets, shown } = await this.server.ask<Targets>("jobc/targets", { uri: this.uri });
        const names = targets.map(({ name, description }) => Object.assign(new Option(name, name), { title: description }));
        const usual = new Option(`default (${shown.length === targets.length ? "all" : shown.join(", ")})`, "");
        if (this.project.target === "" || this.target.length === 0) {
            this.target.replaceChildren(usual, ...names);
        } else {
            this.target.replaceChildren(this.target.options[0] ?? usual, ...names);
        }
        this.target.value = targets.some(({ name }) => name === this.project.target) ? this.project.target : "";
    }

    private choose(target: string): void {
        this.project.target = target;
        this.server.tell("workspace/didChangeConfiguration", { settings: { jobc: { target } } });
        this.buildSoon();
    }

    private reveal(problem: Problem): void {
        if (this.models.has(problem.file)) {
            this.turn(false);
            this.inputs.select(problem.file);
            reveal(this.editor, toRange(problem.range));
        }
    }

    /** Puts the project into the address and the clipboard. */
    private async share(): Promise<void> {
        const files = Object.fromEntries([...this.models].map(([path, model]) => [path, model.getValue()]));
        try {
            history.pushState(null, "", await encode({ ...this.project, files }));
        } catch (error) {
            this.say(`Not shared: ${(error as Error).message}.`);
            return;
        }
        try {
            await navigator.clipboard.writeText(location.href);
            this.say("The link is in the clipboard. It holds the files; no server has them.");
        } catch {
            this.say("The link is in the address bar. It holds the files; no server has them.");
        }
    }

    /** Says something until the next change; what does not stay, for some time. */
    private say(text: string, stays = false): void {
        element("status").textContent = text;
        clearTimeout(this.message);
        if (!stays && text !== "") {
            this.message = setTimeout(() => this.say(""), MESSAGE);
        }
    }

    /** Where there is room for one pane, shows what is built or the job. */
    private turn(isBuilt: boolean): void {
        document.body.dataset["pane"] = isBuilt ? "built" : "job";
        for (const it of [false, true]) {
            this.pane(it).setAttribute("aria-pressed", String(it === isBuilt));
        }
    }

    private pane(isBuilt: boolean): HTMLElement {
        return element(isBuilt ? "show-built" : "show-job");
    }
}

/** The URI of a file beside the job. */
function uriOf(path: string): string {
    return monaco.Uri.file(`${ROOT}/${path}`).toString();
}

/** Every directory above a file. */
function directoriesOf(paths: string[]): string[] {
    const above = paths.flatMap((path) => path.split("/").slice(0, -1).map((_, index, parts) => parts.slice(0, index + 1).join("/")));
    return [...new Set(above)];
}

try {
    const [wasm, examples] = await Promise.all([
        asset("jobc.wasm").then(async (response) => WebAssembly.compile(await response.arrayBuffer())),
        asset("examples.json").then((response) => response.json() as Promise<Example[]>),
    ]);
    const playground = new Playground(await Server.start(startWorker(wasm), OPTIONS), wasm, examples);
    await playground.navigate();
    // Without it, the page is not there offline. A server without HTTPS has none, and a browser may refuse it.
    navigator.serviceWorker?.register(new URL("offline.js", import.meta.url)).catch(() => undefined);
} catch (error) {
    element("summary").textContent = `the playground does not start: ${(error as Error).message}`;
    throw error;
}
