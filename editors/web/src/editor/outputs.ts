// What is built, beside the job: the plan, and every file of `jobc build`.

import { languageOf } from "./languages";
import { makeViewer, monaco } from "./monaco";
import type { Artifact, BuiltFile, BuiltLine } from "./protocol";
import type { Compiler } from "./server";
import { Tabs, type Tab } from "./tabs";

const PLAN = "plan";
/** How long a build takes that the user need not be told of, in milliseconds. */
const SLOW = 300;

/** What was built last without errors. */
interface Built {
    plan: string;
    files: Map<string, Artifact>;
}

export class Outputs {
    private readonly tabs: Tabs;
    readonly viewer: monaco.editor.IStandaloneCodeEditor;
    /** Called after each build, and with true when another file is shown. */
    onShow: (isOther: boolean) => void = () => undefined;
    private readonly model = monaco.editor.createModel("", "yaml", monaco.Uri.parse("jobc:/built"));
    private built: Built = { plan: "", files: new Map() };
    private latest = 0;
    private isStale = false;
    private slow = 0;
    private displayed = "";

    constructor(
        list: HTMLElement,
        private readonly panel: HTMLElement,
        private readonly notice: HTMLElement,
        view: HTMLElement,
    ) {
        this.viewer = makeViewer(view);
        this.viewer.setModel(this.model);
        this.tabs = new Tabs(list, panel, () => this.show());
    }

    /**
     * Builds the job; with errors, what was built before stays, and a line says so. `onSlow` is called if it takes long.
     * Returns whether no other build has begun since.
     */
    async build(server: Compiler, uri: string, onSlow: () => void): Promise<boolean> {
        const number = ++this.latest;
        // While one build after another is begun and none ends, what is shown is old all the same.
        this.slow ||= setTimeout(() => {
            this.panel.classList.add("compiling");
            onSlow();
        }, SLOW);
        try {
            const [plan, { files }] = await Promise.all([
                server.ask<{ text: string }>("jobc/plan", { uri }),
                server.ask<{ files: Artifact[] }>("jobc/build", { uri }),
            ]);
            if (number !== this.latest) {
                return false;
            }
            this.built = { plan: plan.text, files: new Map(files.map((file) => [keyOf(file), file])) };
            this.say("");
        } catch (error) {
            if (number !== this.latest) {
                return false;
            }
            this.say((error as Error).message);
        }
        this.finish();
        this.list();
        this.panel.dataset["built"] = String(number);
        return true;
    }

    /** Keeps what was built before, for a reason other than errors of the job. */
    refuse(reason: string): void {
        this.latest += 1;
        this.finish();
        this.say(reason, "");
        this.list();
    }

    private finish(): void {
        clearTimeout(this.slow);
        this.slow = 0;
        this.panel.classList.remove("compiling");
    }

    /** Drops what was built, for another project. */
    clear(): void {
        this.latest += 1;
        this.finish();
        this.built = { plan: "", files: new Map() };
        this.list();
    }

    /** The file that is shown; undefined for the plan, and while the job has errors. */
    get current(): BuiltFile | undefined {
        const file = this.isStale ? undefined : this.built.files.get(this.tabs.selected);
        return file && { job: file.job, target: file.target, path: file.path };
    }

    select(file: BuiltFile): void {
        this.tabs.select(keyOf(file));
    }

    /** Marks the files that have some of these lines. */
    mark(lines: BuiltLine[]): void {
        const found = new Map<string, Set<number>>();
        for (const line of lines) {
            found.set(keyOf(line), (found.get(keyOf(line)) ?? new Set()).add(line.line));
        }
        this.tabs.mark(new Map([...found].map(([key, { size }]) => [key, size])));
    }

    private say(problem: string, what = "The job has errors: "): void {
        const stale = this.built.plan !== "" ? "Shown is what was built before." : "Nothing is built until that is mended.";
        this.notice.textContent = problem === "" ? "" : `${stale} ${what}${problem}`;
        this.notice.hidden = problem === "";
        this.isStale = problem !== "";
        this.panel.classList.toggle("stale", problem !== "");
    }

    private list(): void {
        const several = new Set([...this.built.files.values()].map(({ job }) => job)).size > 1;
        const tab = ([key, { job, target, path }]: [string, Artifact]): Tab => {
            const [backend = "", ...rest] = path.split("/");
            const place = several ? `${job} / ${target}` : target;
            return rest.length === 0 ? { key, label: path, group: place } : { key, label: rest.join("/"), title: path, group: `${place} / ${backend}` };
        };
        const tabs = [{ key: PLAN, label: "plan" }, ...[...this.built.files].map(tab)];
        const selected = this.tabs.selected;
        const path = selected.split("/").slice(2).join("/");
        // The same file, else the one with its path for another target or job.
        const near = [...this.built.files.values()].find((file) => path !== "" && file.path === path);
        const same = near && keyOf(near);
        this.tabs.show(tabs, tabs.some(({ key }) => key === selected) ? selected : (same ?? PLAN));
        this.show();
    }

    private show(): void {
        const file = this.built.files.get(this.tabs.selected);
        const text = file?.text ?? this.built.plan;
        if (this.model.getValue() !== text) {
            const view = this.viewer.saveViewState();
            this.model.setValue(text);
            this.viewer.restoreViewState(view);
        }
        monaco.editor.setModelLanguage(this.model, file === undefined ? "yaml" : languageOf(file.path));
        const isOther = this.displayed !== this.tabs.selected;
        this.displayed = this.tabs.selected;
        this.onShow(isOther);
    }
}

function keyOf({ job, target, path }: BuiltFile): string {
    return `${job}/${target}/${path}`;
}
