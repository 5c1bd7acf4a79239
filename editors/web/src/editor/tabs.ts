// Tabs as the ARIA practices describe them: one of them is in the order of Tab, arrows and Home and End move among them.

import { count } from "./display";

export interface Tab {
    key: string;
    label: string;
    title?: string;
    /** A heading above the tab. */
    group?: string;
}

export class Tabs {
    private tabs: Tab[] = [];
    private chosen = "";
    private marks: ReadonlyMap<string, number> = new Map();

    constructor(
        private readonly element: HTMLElement,
        private readonly panel: HTMLElement,
        private readonly choose: (key: string) => void,
    ) {
        element.setAttribute("role", "tablist");
        panel.setAttribute("role", "tabpanel");
        element.addEventListener("keydown", (event) => this.move(event));
    }

    get selected(): string {
        return this.chosen;
    }

    /** Shows these tabs with one of them selected. */
    show(tabs: Tab[], selected: string): void {
        const focused = this.element.contains(document.activeElement);
        const same = JSON.stringify(tabs) === JSON.stringify(this.tabs);
        this.tabs = tabs;
        this.chosen = selected;
        if (!same) {
            const list = tabs.flatMap((tab, index) => {
                const heading = tab.group !== undefined && tab.group !== tabs[index - 1]?.group ? [this.heading(tab.group)] : [];
                return [...heading, this.button(tab)];
            });
            this.element.replaceChildren(...list);
            this.mark(this.marks);
        }
        for (const button of this.buttons()) {
            const isSelected = button.dataset["key"] === selected;
            button.setAttribute("aria-selected", String(isSelected));
            button.tabIndex = isSelected ? 0 : -1;
            if (isSelected) {
                this.panel.setAttribute("aria-labelledby", button.id);
                button.scrollIntoView({ block: "nearest", inline: "nearest" });
                if (focused) {
                    button.focus();
                }
            }
        }
    }

    /** Marks tabs with numbers of linked lines; those without a number lose theirs. */
    mark(numbers: ReadonlyMap<string, number>): void {
        this.marks = numbers;
        for (const button of this.buttons()) {
            const number = numbers.get(button.dataset["key"] ?? "") ?? 0;
            if (number === 0) {
                delete button.dataset["linked"];
                button.removeAttribute("aria-label");
            } else {
                button.dataset["linked"] = String(number);
                button.setAttribute("aria-label", `${button.textContent}, ${count(number, "linked line")}`);
            }
        }
    }

    select(key: string): void {
        this.show(this.tabs, key);
        this.choose(key);
    }

    private buttons(): HTMLButtonElement[] {
        return [...this.element.querySelectorAll("button")];
    }

    private button({ key, label, title }: Tab): HTMLButtonElement {
        const button = document.createElement("button");
        button.type = "button";
        button.id = `${this.element.id}-${key.replaceAll(/[^\w.-]/g, "_")}`;
        button.dataset["key"] = key;
        button.textContent = label;
        button.title = title ?? label;
        button.setAttribute("role", "tab");
        button.setAttribute("aria-controls", this.panel.id);
        button.addEventListener("click", () => this.select(key));
        return button;
    }

    private heading(text: string): HTMLElement {
        const heading = document.createElement("div");
        heading.className = "group";
        heading.textContent = text;
        heading.setAttribute("role", "presentation");
        return heading;
    }

    private move(event: KeyboardEvent): void {
        const at = this.tabs.findIndex(({ key }) => key === this.chosen);
        const last = this.tabs.length - 1;
        const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
        const tab = to === undefined ? undefined : this.tabs[(to + this.tabs.length) % this.tabs.length];
        if (tab !== undefined) {
            event.preventDefault();
            this.select(tab.key);
        }
    }
}
