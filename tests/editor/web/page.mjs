// The playground as a user has it: selectors, keys, and what is on the screen.

import { until } from "../check.mjs";

/** How long a step may take, in seconds: the first one compiles the module. */
const SECONDS = 60;

export class Page {
    /** Every URL that was requested, and every error on the console. */
    requests = [];
    errors = [];

    /** Opens an address in a profile of its own and waits until something is built. */
    static async open(browser, address, options = { serviceWorkers: "block" }) {
        const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "light", ...options });
        await context.grantPermissions(["clipboard-read", "clipboard-write"]);
        const opened = new Page();
        opened.context = context;
        opened.page = await context.newPage();
        opened.page.on("request", (request) => opened.requests.push(request.url()));
        opened.page.on("pageerror", (error) => opened.errors.push(error.message));
        opened.page.on("console", (message) => message.type() === "error" && opened.errors.push(message.text()));
        await opened.page.goto(address);
        await until(() => `the page builds nothing; ${opened.errors}`, () => opened.build(), SECONDS);
        return opened;
    }

    async close() {
        await this.context.close();
    }

    /** The number of the last build; undefined before the first. */
    build() {
        return this.page.evaluate(() => document.getElementById("output-panel").dataset.built);
    }

    /** Does something after which the files are built again, and waits for that. */
    async built(act) {
        const before = await this.build();
        await act();
        await until("nothing is built", async () => (await this.build()) !== before, SECONDS);
        await this.settled();
    }

    /** Waits until nothing is built for longer than the pause of the page and that of the server. */
    async settled() {
        for (let last; last !== (last = await this.build()); ) {
            await new Promise((resolve) => setTimeout(resolve, 700));
        }
    }

    async choose(selector, value) {
        await this.page.selectOption(selector, value);
    }

    options(selector) {
        return this.page.evaluate((selector) => [...document.querySelector(selector).options].map(({ value }) => value), selector);
    }

    value(selector) {
        return this.page.inputValue(selector);
    }

    /** The text in the editor. */
    text() {
        return this.page.evaluate(() => monaco.editor.getEditors()[0].getModel().getValue());
    }

    /** Puts the cursor at a position, counted from 0. */
    async cursor(line, character) {
        const at = { lineNumber: line + 1, column: character + 1 };
        await this.page.evaluate((at) => {
            const editor = monaco.editor.getEditors()[0];
            editor.setPosition(at);
            editor.revealLineInCenter(at.lineNumber);
            editor.focus();
        }, at);
    }

    type(text) {
        return this.page.keyboard.insertText(text);
    }

    /** Pastes a text: typing a long one would indent each line. */
    async paste(text) {
        await this.page.evaluate((text) => navigator.clipboard.writeText(text), text);
        await this.key("Control+V");
    }

    key(name) {
        return this.page.keyboard.press(name);
    }

    focus(selector) {
        return this.page.focus(selector);
    }

    /** Shows a built file. */
    select(key) {
        return this.page.click(`#outputs [data-key="${key}"]`);
    }

    keysOfOutputs() {
        return this.page.evaluate(() => [...document.querySelectorAll("#outputs button")].map(({ dataset }) => dataset.key));
    }

    selected() {
        return this.page.getAttribute('#outputs [aria-selected="true"]', "data-key");
    }

    /** What is built: the text that each tab shows. */
    outputs() {
        return this.page.evaluate(() => {
            const buttons = [...document.querySelectorAll("#outputs button")];
            const before = buttons.find((button) => button.getAttribute("aria-selected") === "true");
            const texts = buttons.map((button) => {
                button.click();
                return [button.dataset.key, monaco.editor.getEditors()[1].getModel().getValue()];
            });
            before.click();
            return Object.fromEntries(texts);
        });
    }

    /** The lines of the list of problems. */
    rows() {
        return this.page.evaluate(() => [...document.querySelectorAll("#findings li")].map(({ textContent }) => textContent));
    }

    /** The codes and places of errors and warnings, in the order of their places. */
    async problems() {
        const found = await this.page.evaluate(() =>
            [...document.querySelectorAll('#findings li[data-severity="error"], #findings li[data-severity="warning"]')].map((row) => {
                const [, line, column] = /:(\d+):(\d+)$/.exec(row.querySelector(".where").textContent);
                return { code: row.querySelector(".code").textContent, line: Number(line), column: Number(column) };
            }),
        );
        return found.toSorted((a, b) => a.line - b.line || a.column - b.column).map(({ code, line, column }) => `${code} ${line}:${column}`);
    }

    /** The sentence about the line under the pointer or at the cursor. */
    sentence() {
        return this.page.textContent("#links");
    }

    /** Waits until the sentence is one that this accepts, and returns it. */
    async sentenceOf(accepts, what) {
        let last;
        const found = async () => accepts((last = await this.sentence()));
        await until(() => `the sentence about ${what} is \`${last}\``, found, SECONDS);
        return last;
    }

    /** The numbers of linked lines in the list of built files, as they are drawn and as they are read aloud. */
    linkedFiles() {
        return this.page.evaluate(() =>
            Object.fromEntries(
                [...document.querySelectorAll("#outputs [data-linked]")].map((tab) => {
                    const spoken = /, (\d+) linked lines?$/.exec(tab.getAttribute("aria-label"))?.[1];
                    return [tab.dataset.key, [tab.dataset.linked, spoken].map(Number)];
                }),
            ),
        );
    }

    /** The lines from 0 that are marked: in the job (0) or in the built file (1), as the line itself or as a linked one. */
    markedLines(editor, kind) {
        return this.page.evaluate(
            ([editor, kind]) => {
                const all = monaco.editor.getEditors()[editor].getModel().getAllDecorations();
                const marked = all.filter(({ options }) => options.className === `linked-line ${kind}`);
                const range = ({ startLineNumber: from, endLineNumber: to }) => Array.from({ length: to - from + 1 }, (_, index) => from - 1 + index);
                return [...new Set(marked.flatMap(({ range: it }) => range(it)))].sort((a, b) => a - b);
            },
            [editor, kind],
        );
    }

    /** The line of the cursor from 0, and whether the editor has the focus. */
    at(editor) {
        return this.page.evaluate((editor) => {
            const it = monaco.editor.getEditors()[editor];
            return { line: it.getPosition().lineNumber - 1, focused: it.hasTextFocus() };
        }, editor);
    }

    /** Moves the pointer to a line of an editor, or away from all. */
    async point(editor, line) {
        const place = await this.page.evaluate(
            ([editor, line]) => {
                const it = monaco.editor.getEditors()[editor];
                it.revealLineInCenterIfOutsideViewport(line + 1);
                const { left, top } = it.getDomNode().getBoundingClientRect();
                const at = it.getScrolledVisiblePosition({ lineNumber: line + 1, column: 2 });
                return [left + at.left, top + at.top + at.height / 2];
            },
            [editor, line],
        );
        await this.page.mouse.move(...place, { steps: 3 });
    }

    leave() {
        return this.page.mouse.move(5, 5);
    }

    /** The signs beside marked lines on the screen, and whether one of them or its line has no mark other than a color. */
    signs() {
        return this.page.evaluate(() => {
            const signs = [...document.querySelectorAll(".linked-sign")].map((element) => getComputedStyle(element, "::before").content);
            const drawn = [...document.querySelectorAll(".linked-line")].map((element) => getComputedStyle(element));
            const framed = drawn.every(({ boxShadow, outlineStyle }) => boxShadow !== "none" || outlineStyle === "dashed");
            return { signs: [...new Set(signs)].sort(), framed };
        });
    }

    notice() {
        return this.page.textContent("#notice");
    }

    status() {
        return this.page.textContent("#status");
    }

    async summary() {
        return await until("the page says nothing", async () => {
            const text = await this.page.textContent("#summary");
            return text !== "starting" && text;
        }, SECONDS);
    }

    /** Applies the first quick fix at the cursor. */
    async fix() {
        await this.key("Control+.");
        await this.page.waitForSelector(".action-widget .monaco-list-row.action", { timeout: SECONDS * 1000 });
        await this.key("Enter");
    }

    /** Completes on a new line below the cursor; the labels of the suggestions. */
    async complete() {
        await this.key("Enter");
        await this.key("Control+Space");
        await this.page.waitForSelector(".suggest-widget.visible .monaco-list-row", { timeout: SECONDS * 1000 });
        return await this.page.evaluate(() => [...document.querySelectorAll(".suggest-widget .monaco-list-row .label-name")].map(({ textContent }) => textContent));
    }

    /** Accepts the suggestion with this label, once it is the first. */
    async accept(label) {
        await this.page.waitForSelector(`.suggest-widget.visible .monaco-list-row.focused[aria-label^="${label}"]`, { timeout: SECONDS * 1000 });
        await this.key("Enter");
    }

    /** The text that is shown about a position. */
    async hover(line, character) {
        await this.cursor(line, character);
        await this.page.evaluate(() => monaco.editor.getEditors()[0].trigger("test", "editor.action.showHover", {}));
        const hover = await this.page.waitForSelector(".monaco-hover:not(.hidden) .hover-contents", { timeout: SECONDS * 1000 });
        return await hover.textContent();
    }

    /** The link of the button, from the clipboard. */
    async share() {
        await this.page.click("#share");
        await until("no link", async () => (await this.status()).startsWith("The link"), SECONDS);
        const copied = await this.page.evaluate(() => navigator.clipboard.readText());
        return copied === this.page.url() ? copied : `${copied} is not ${this.page.url()}`;
    }

    /** The page about the first problem's code. */
    async explain() {
        await this.page.click("#findings .code");
        await this.page.waitForSelector("dialog[open] h1");
        const text = await this.page.textContent("dialog article");
        await this.key("Escape");
        return text;
    }

    /** Prefers a color scheme. */
    async prefer(colorScheme) {
        await this.page.emulateMedia({ colorScheme });
    }

    /** The backgrounds of page and editor. */
    backgrounds() {
        return this.page.evaluate(() => {
            const background = (element) => getComputedStyle(element).backgroundColor;
            return { page: background(document.body), editor: background(document.querySelector("#editor .monaco-editor-background")) };
        });
    }

    async resize(width, height) {
        await this.page.setViewportSize({ width, height });
    }

    /** Whether each editor fills its place, and nothing is wider than the window. */
    fits() {
        return this.page.evaluate(() => {
            const width = (selector) => document.querySelector(selector).getBoundingClientRect().width;
            const same = (a, b) => Math.abs(width(a) - width(b)) < 2;
            return same("#inputs", "#editor .monaco-editor") && same("#output-panel", "#viewer .monaco-editor") && document.documentElement.scrollWidth <= innerWidth;
        });
    }

    /** The types of the tokens of each line. */
    tokens(text, language) {
        return this.page.evaluate(([text, language]) => monaco.editor.tokenize(text, language).map((line) => line.map(({ type }) => type)), [text, language]);
    }

    /** Which of the elements are on the screen. */
    visible(selectors) {
        return this.page.evaluate((selectors) => selectors.filter((selector) => document.querySelector(selector).checkVisibility()), selectors);
    }

    /** Whether nothing is wider than the window. */
    isNarrow() {
        return this.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    }

    /** The results that are dimmed, by their ids. */
    dimmed() {
        return this.page.evaluate(() =>
            ["findings", "viewer"].filter((id) => {
                const { opacity, filter } = getComputedStyle(document.getElementById(id));
                return opacity !== "1" || filter !== "none";
            }),
        );
    }

    /** Why the dialog of imports takes no text. */
    refused() {
        return this.page.textContent("#import-dialog .refused");
    }

    async chooseFile(selector, name, text) {
        await this.page.setInputFiles(selector, { name, mimeType: "text/plain", buffer: Buffer.from(text) });
    }

    click(selector) {
        return this.page.click(selector);
    }

    /** The serious findings of axe: rule and elements. */
    async axe(source) {
        await this.page.evaluate(source);
        return await this.page.evaluate(async () => {
            const { violations } = await axe.run(document, { resultTypes: ["violations"] });
            const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
            return serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 9).map(({ target, any }) => `${target} ${any[0]?.message ?? ""}`).join("; ")}`);
        });
    }

    /** Waits until the page has stored itself. */
    stored() {
        return this.page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    }

    async reload() {
        await this.page.reload();
    }

    async reloadWith(pattern, body) {
        const contentType = pattern.endsWith(".js") ? "text/javascript" : "application/wasm";
        await this.page.route(pattern, (route) => route.fulfill({ body, contentType }));
        await this.page.reload();
    }

    picture(path) {
        return this.page.screenshot({ path });
    }
}
