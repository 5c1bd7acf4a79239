// One window of VS Code, driven as a person drives it: by keys and the palette, read from what is on the screen.

import { basename, dirname, join } from "node:path";

import { until } from "../check.mjs";

const ROW = ".monaco-list-row";

export class Editor {
    constructor(page, folder, pictures) {
        this.page = page;
        this.folder = folder;
        this.pictures = pictures;
    }

    /** Opens a window on a folder. Only the loopback device is reached: everything else is refused. */
    static async open(browser, address, folder, pictures) {
        const context = await browser.newContext({ viewport: { width: 1360, height: 820 }, permissions: ["clipboard-read", "clipboard-write"] });
        await context.route((url) => url.hostname !== "127.0.0.1", (route) => route.abort());
        const page = await context.newPage();
        await page.goto(`${address}/?folder=${folder}`);
        await page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
        await page.locator(".part.statusbar").waitFor({ state: "attached" });
        return new Editor(page, folder, pictures);
    }

    async close() {
        await this.page.context().close();
    }

    press(...keys) {
        return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve());
    }

    /** Types a text letter by letter; `pause` is the time between two, in milliseconds. */
    type(text, pause = 20) {
        return this.page.keyboard.type(text, { delay: pause });
    }

    /** Puts a text in at once, as from a clipboard. */
    insert(text) {
        return this.page.keyboard.insertText(text);
    }

    /** Begins a line at the end of the text, so many blanks in, whatever the editor thinks of it. */
    async newLine(blanks) {
        await this.press("Control+End", "Enter", "Shift+Home", "Shift+Home");
        await this.type(" ".repeat(blanks));
    }

    /** Runs a command by its title. */
    async command(title) {
        await this.press("F1");
        const input = this.page.locator(".quick-input-widget:visible input");
        await input.waitFor();
        const row = this.page.locator(`.quick-input-list ${ROW}.focused`);
        await until(
            async () => `the palette offers ${await row.allInnerTexts()} for ${title}`,
            async () => {
                // Anew each time: commands appear in the palette as the window starts, but not in a list that is open.
                await input.fill(">");
                await input.fill(`>${title}`);
                await this.page.waitForTimeout(100);
                const labels = await this.page.locator(`.quick-input-list ${ROW}`).evaluateAll((rows) => rows.map((row) => row.ariaLabel));
                const index = labels.findIndex((label) => label === title || label.startsWith(`${title}, `));
                await this.press(...Array(Math.max(index, 0)).fill("ArrowDown"));
                return index >= 0 && (await row.getAttribute("aria-label")).startsWith(title);
            },
        );
        await this.press("Enter");
        // It closes, or asks something else in the same place.
        await until(`the command ${title} does not start`, async () => !(await input.isVisible()) || !(await input.inputValue().catch(() => "")).startsWith(">"));
    }

    /** Opens a file of the folder, puts the cursor into it and waits until it is in a language mode (null: in any). */
    async openFile(name, mode = "jobc job") {
        await this.press("Control+p");
        const input = this.page.locator(".quick-input-widget:visible input");
        await input.waitFor();
        // By its whole path: two files may have the same name.
        const path = join(this.folder, name);
        await input.fill(path);
        const label = [basename(name), dirname(name)].filter((part) => part !== ".").join(" ");
        await this.page.locator(`.quick-input-list ${ROW}.focused[aria-label^="${label}, "]`).waitFor();
        await this.press("Enter");
        await this.page.locator(`.tab.active[data-resource-name="${basename(name)}"]`).waitFor();
        await this.page.locator(".editor-group-container.active .monaco-editor.focused").waitFor();
        if (mode !== null) {
            await this.modeIs(mode);
        }
    }

    /** Puts the cursor into the editor on the left. */
    focusEditor() {
        return this.command("View: Focus First Editor Group");
    }

    /** Puts the cursor at a line and a column, both counted from 1. */
    async goTo(line, column = 1) {
        await this.press("Control+g");
        const input = this.page.locator(".quick-input-widget:visible input");
        await input.waitFor();
        await input.fill(`:${line}:${column}`);
        await this.press("Enter");
        await input.waitFor({ state: "hidden" });
    }

    /** The language mode that the status bar shows. */
    mode() {
        return this.page.locator("#status\\.editor\\.mode").innerText();
    }

    /** Waits for a language mode, by its name in the status bar. */
    async modeIs(mode) {
        await until(async () => `the mode is ${await this.mode()} in place of ${mode}`, async () => (await this.mode()) === mode, 10);
    }

    /**
     * Runs a command that asks for entries of lists, and picks them in their order.
     *
     * A list closes by itself where something else in the window takes the focus, so it is asked for again, twice at most.
     */
    async pick(title, ...labels) {
        for (let left = 2; ; left--) {
            try {
                await this.command(title);
                for (const label of labels) {
                    await this.#choose(label);
                }
                return;
            } catch (error) {
                if (left === 0) {
                    throw error;
                }
                await this.press("Escape");
            }
        }
    }

    /** Picks an entry of the list that is open, or about to be. */
    async #choose(label) {
        const soon = { timeout: 10_000 };
        const input = this.page.locator(".quick-input-widget:visible input");
        await input.fill(label, soon);
        await this.page.locator(`.quick-input-list ${ROW}.focused`, { hasText: label }).waitFor(soon);
        await this.press("Enter");
        await until(`${label} cannot be chosen`, async () => !(await input.isVisible()) || (await input.inputValue().catch(() => "")) !== label);
    }

    /** The text of a rendered page that contains some words; undefined while there is none. */
    async webview(words) {
        for (const frame of this.page.frames()) {
            const text = await frame.locator("body").innerText({ timeout: 500 }).catch(() => "");
            if (frame !== this.page.mainFrame() && text.includes(words)) {
                return text;
            }
        }
        return undefined;
    }

    /** The findings in the Problems panel as they are read: the second level of its tree, below the files. */
    async problems() {
        const panel = this.page.locator(".markers-panel");
        if (!(await panel.isVisible())) {
            await this.command("Problems: Focus on Problems View");
            await panel.waitFor();
        }
        const rows = await panel.locator(`${ROW}[aria-level="2"]`).allInnerTexts();
        return rows.map((row) => row.replace(/\s+/g, " ").trim());
    }

    /** What is suggested at the cursor, by label. Asks again while the list is empty: servers may still be starting. */
    async suggestions(seconds = 20) {
        const rows = this.page.locator(`.suggest-widget.visible ${ROW} .label-name`);
        return await until(
            "nothing is suggested",
            async () => {
                if ((await rows.count()) === 0) {
                    await this.press("Control+Space");
                    await rows.first().waitFor({ timeout: 1500 }).catch(() => undefined);
                }
                const labels = await rows.allInnerTexts().catch(() => []);
                return labels.length > 0 && labels;
            },
            seconds,
        );
    }

    /** Takes the suggestion with this label. */
    async accept(label) {
        const row = this.page.locator(`.suggest-widget.visible ${ROW}`).filter({ has: this.page.locator(".label-name").getByText(label, { exact: true }) });
        await row.first().waitFor({ timeout: 15_000 });
        await row.first().click();
    }

    /** The hover at the cursor, once it has all of these words; whoever contributes may be late. */
    async hover(...words) {
        const contents = this.page.locator(".monaco-hover:visible .hover-contents");
        return await until(
            async () => `the hover has not all of ${words}: ${await contents.allInnerTexts()}`,
            async () => {
                await this.command("Show or Focus Hover");
                await contents.first().waitFor({ timeout: 2000 }).catch(() => undefined);
                const texts = (await contents.allInnerTexts()).map((text) => text.trim());
                return words.every((word) => texts.join("\n").includes(word)) && texts;
            },
        );
    }

    /** The titles in the light bulb's menu at the cursor. */
    async quickFixes(seconds = 20) {
        const rows = this.page.locator(`.action-widget ${ROW}.action`);
        return await until(
            "there is no quick fix",
            async () => {
                await this.press("Control+.");
                await rows.first().waitFor({ timeout: 1500 }).catch(() => undefined);
                const titles = (await rows.allInnerTexts().catch(() => [])).map((title) => title.trim());
                return titles.length > 0 && titles;
            },
            seconds,
        );
    }

    /** Takes an entry of that menu, by the arrow keys. */
    async takeFix(title) {
        const focused = this.page.locator(`.action-widget ${ROW}.action.focused`);
        await until(`there is no \`${title}\` in the menu`, async () => {
            if ((await focused.innerText()).trim() === title) {
                return true;
            }
            await this.press("ArrowDown");
            return false;
        }, 5);
        await this.press("Enter");
        await this.page.locator(".action-widget").waitFor({ state: "hidden" });
    }

    /** The titles of the code lenses, as soon as there are any. */
    async lenses() {
        const links = this.page.locator(".codelens-decoration a");
        return await until("there are no lenses", async () => (await links.count()) > 0 && (await links.allInnerTexts()));
    }

    takeLens(title) {
        return this.page.locator(".codelens-decoration a", { hasText: title }).first().click();
    }

    /** The target in the status bar; undefined where there is none. */
    async target() {
        const [words] = await this.#target().allInnerTexts();
        return words?.trim() || undefined;
    }

    /** Waits for a target in the status bar. */
    async targetIs(words) {
        await until(async () => `the target is ${await this.target()} in place of ${words}`, async () => (await this.target()) === words);
    }

    /** Clicks on the target in the status bar and picks another; gives the list. */
    async pickTarget(label) {
        await this.#target().click();
        const rows = this.page.locator(`.quick-input-list ${ROW}`);
        await rows.first().waitFor();
        const labels = await rows.evaluateAll((rows) => rows.map((row) => row.querySelector(".label-name").textContent.trim()));
        await this.#choose(label);
        return labels;
    }

    #target() {
        return this.page.locator('.statusbar-item[id$="jobc.target"]');
    }

    /** The lines that an editor shows, by the name of its tab. Only what is on the screen exists. */
    async textOf(name) {
        const group = this.page.locator(".editor-group-container").filter({ has: this.page.locator(".tab.active", { hasText: name }) });
        const lines = await group.locator(".view-line").evaluateAll((lines) =>
            lines.map((line) => [line.getBoundingClientRect().top, line.textContent]).sort((a, b) => a[0] - b[0]).map(([, text]) => text),
        );
        return lines.join("\n").replaceAll("\u00a0", " ");
    }

    /** The file's text as the user has it, through the clipboard. */
    async allText() {
        await this.press("Control+a", "Control+c");
        const text = await this.page.evaluate(() => navigator.clipboard.readText());
        await this.press("ArrowRight");
        return text;
    }

    /** Saves what is in the editor that has the keyboard. */
    async save() {
        await this.press("Control+s");
        await this.page.locator(".editor-group-container.active .tab.active.dirty").waitFor({ state: "detached" });
    }

    /** A picture of the window. */
    picture(name, options = {}) {
        return this.page.screenshot({ path: join(this.pictures, `${name}.png`), ...options });
    }

    /** Messages in the corner. */
    async notifications() {
        return await this.page.locator(".notifications-toasts .notification-list-item-message").allInnerTexts();
    }
}
