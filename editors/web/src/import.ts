// A file of another tool, pasted or chosen, as a job file.

import type { Diagnostic } from "./editor/protocol";
import { isTooLarge, tooLarge } from "./limit";
import type { Project } from "./share";

/** What the server makes of a text. */
interface Imported {
    text: string | null;
    targets: string | null;
    findings: Diagnostic[];
}

interface Actions {
    ask(name: string, text: string): Promise<Imported>;
    /** Shows the job, with the findings at the lines of the file that it comes from. */
    show(project: Project, source: string, findings: Diagnostic[]): void;
}

/** The name of a text that was pasted. */
const PASTED = "imported.txt";

export class Import {
    private readonly text: HTMLTextAreaElement;
    private readonly problems: HTMLElement;
    private name = PASTED;

    constructor(
        private readonly dialog: HTMLDialogElement,
        private readonly actions: Actions,
    ) {
        const part = <T extends Element>(selector: string): T => dialog.querySelector(selector) as T;
        this.text = part("textarea");
        this.problems = part(".refused");
        part("input").addEventListener("change", ({ target }) => void this.choose(target as HTMLInputElement));
        part("#convert").addEventListener("click", () => void this.convert());
        this.text.addEventListener("input", () => this.refuse([]));
    }

    open(): void {
        this.name = PASTED;
        this.refuse([]);
        this.dialog.showModal();
        this.text.focus();
    }

    private async choose(input: HTMLInputElement): Promise<void> {
        const file = input.files?.[0];
        // The same file can be chosen again.
        input.value = "";
        if (file !== undefined) {
            // One of the job's own name would stand where the job does.
            this.name = /^(job|targets)\./.test(file.name) ? `imported-${file.name}` : file.name;
            this.text.value = isTooLarge(file.size) ? "" : await file.text();
            this.refuse(isTooLarge(file.size) ? [`${file.name} is too large for the browser; \`jobc import\` has no such limit`] : []);
        }
    }

    private async convert(): Promise<void> {
        const { name, text: { value } } = this;
        if (isTooLarge(value.length)) {
            this.refuse([tooLarge(name, value)]);
            return;
        }
        try {
            const { text, targets, findings } = await this.actions.ask(name, value);
            if (text === null) {
                this.refuse(findings.filter(({ severity }) => severity === 1).map(sentence));
                return;
            }
            this.dialog.close();
            const files = { "job.yaml": text, ...(targets !== null && { "targets.yaml": targets }), [name]: value };
            this.actions.show({ main: "job.yaml", files, target: "" }, name, findings);
        } catch (error) {
            this.refuse([(error as Error).message]);
        }
    }

    /** Says why the text is none that can be read. */
    private refuse(problems: string[]): void {
        this.problems.replaceChildren(
            ...problems.map((problem) => {
                const row = document.createElement("li");
                row.textContent = problem;
                return row;
            }),
        );
    }
}

function sentence({ range, message, relatedInformation = [] }: Diagnostic): string {
    return [`line ${range.start.line + 1}: ${message}`, ...relatedInformation.map(({ message }) => message)].join("; ");
}
