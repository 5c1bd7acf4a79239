// What is built, beside the job: the plan, and every file of `jobc build`.

import { languageOf } from "./languages";
import { makeViewer, monaco } from "./monaco";
import type { Artifact } from "./protocol";
import type { Server } from "./server";
import { Tabs, type Tab } from "./tabs";

const PLAN = "plan";

/** What was built last without errors. */
interface Built {
    plan: string;
    files: Map<string, Artifact>;
}

export class Outputs {
    private readonly tabs: Tabs;
    private readonly viewer: monaco.editor.IStandaloneCodeEditor;
    private readonly model = monaco.editor.createModel("", "yaml", monaco.Uri.parse("jobc:/built"));
    private built: Built = { plan: "", files: new Map() };
    private latest = 0;

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

    /** Builds the job; with errors, what was built before stays, and a line says so. */
    async build(server: Server, uri: string): Promise<void> {
        const number = ++this.latest;
        try {
            const [plan, { files }] = await Promise.all([
                server.ask<{ text: string }>("jobc/plan", { uri }),
                server.ask<{ files: Artifact[] }>("jobc/build", { uri }),
            ]);
            if (number !== this.latest) {
                return;
            }
            this.built = { plan: plan.text, files: new Map(files.map((file) => [`${file.job}/${file.target}/${file.path}`, file])) };
            this.say("");
        } catch (error) {
            if (number !== this.latest) {
                return;
            }
            this.say((error as Error).message);
        }
        this.list();
        this.panel.dataset["built"] = String(number);
    }

    /** Drops what was built, for another project. */
    clear(): void {
        this.latest += 1;
        this.built = { plan: "", files: new Map() };
        this.list();
    }

    private say(problem: string): void {
        const stale = this.built.plan !== "" ? "Shown is what was built before." : "Nothing is built until that is mended.";
        this.notice.textContent = problem === "" ? "" : `${stale} The job has errors: ${problem}`;
        this.notice.hidden = problem === "";
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
        const same = near && `${near.job}/${near.target}/${near.path}`;
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
    }
}
