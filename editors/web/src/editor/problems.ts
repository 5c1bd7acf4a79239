// The findings, below the job: each leads to its place, its code to the page about it.

import { marked } from "marked";

import { count } from "./display";
import { monaco } from "./monaco";
import type { Diagnostic } from "./protocol";

const NAMES = { 1: "error", 2: "warning", 3: "note", 4: "hint" } as const;

export interface Problem extends Diagnostic {
    /** The file's name. */
    file: string;
}

export class Problems {
    private shown: Problem[] = [];
    private state = "";

    constructor(
        private readonly list: HTMLElement,
        private readonly summary: HTMLElement,
        private readonly page: HTMLDialogElement,
        private readonly actions: {
            reveal(problem: Problem): void;
            explain(code: string): Promise<{ code: string; title: string; markdown: string }>;
        },
    ) {}

    show(problems: Problem[]): void {
        this.shown = problems;
        this.state = "";
        this.list.classList.remove("stale");
        const numberOf = (severity: number): number => problems.filter((it) => (it.severity ?? 1) === severity).length;
        const [errors, warnings] = [numberOf(1), numberOf(2)];
        this.summary.textContent = errors + warnings === 0 ? "no problems" : `${count(errors, "error")}, ${count(warnings, "warning")}`;
        this.summary.dataset["state"] = errors > 0 ? "errors" : warnings > 0 ? "warnings" : "fine";
        const sorted = [...problems].sort((a, b) => (a.severity ?? 1) - (b.severity ?? 1));
        this.list.replaceChildren(...sorted.map((problem) => this.row(problem)));
    }

    /** What is known instead of problems: the text is not compiled yet, or not at all. Nothing: the last problems hold. */
    say(state: string): void {
        if (state === this.state) {
            return;
        }
        if (state === "") {
            this.show(this.shown);
        } else {
            this.state = state;
            this.list.classList.add("stale");
            this.summary.textContent = state;
            delete this.summary.dataset["state"];
        }
    }

    private row(problem: Problem): HTMLElement {
        const row = document.createElement("li");
        row.dataset["severity"] = NAMES[problem.severity ?? 1];
        const code = document.createElement("button");
        code.className = "code";
        code.textContent = problem.code ?? "";
        code.title = `what ${problem.code} means`;
        code.addEventListener("click", () => void this.explain(problem.code ?? ""));
        const place = document.createElement("button");
        place.className = "place";
        const { line, character } = problem.range.start;
        const where = document.createElement("span");
        where.className = "where";
        where.textContent = `${problem.file}:${line + 1}:${character + 1}`;
        place.append(problem.message, " ", where);
        place.addEventListener("click", () => this.actions.reveal(problem));
        row.append(code, place);
        return row;
    }

    private async explain(code: string): Promise<void> {
        const { markdown } = await this.actions.explain(code);
        const body = this.page.querySelector("article");
        if (body !== null) {
            body.innerHTML = await marked.parse(markdown);
        }
        this.page.showModal();
        this.page.scrollTop = 0;
    }
}

/** Shows a place in an editor and puts the cursor there. */
export function reveal(editor: monaco.editor.ICodeEditor, range: monaco.IRange): void {
    editor.setSelection(range);
    editor.revealRangeInCenterIfOutsideViewport(range);
    editor.focus();
}
