// A window of VS Code, driven by keys and the command palette, and checked on the screen.

import { basename, dirname, join } from "node:path";

import { until } from "../check.mjs";

const ROW = ".monaco-list-row";
const TEXT = ".editor-group-container.active .monaco-editor";

export class Editor {
    constructor(page, directory, pictures) {
        this.page = page;
        this.directory = directory;
        this.pictures = pictures;
    }

    /** Opens a window on a folder. It can reach only the loopback address. */
    static async open(browser, address, directory, pictures) {
        const context = await browser.newContext({ viewport: { width: 1360, height: 820 }, permissions: ["clipboard-read", "clipboard-write"] });
        await context.route((url) => url.hostname !== "127.0.0.1", (route) => route.abort());
        const page = await context.newPage();
        await page.goto(`${address}/?folder=${directory}`);
        await page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
        await page.locator(".part.statusbar").waitFor({ state: "attached" });
        return new Editor(page, directory, pictures);
    }

    async close() {
        await this.page.context().close();
    }

    press(...keys) {
        return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve());
    }

    /**
     * Waits until keys go to the text of the editor. After a command, a list or a click, it gets the focus back only later,
     * and until then keys are lost.
     */
    async textFocused() {
        await this.page.locator(`${TEXT}.focused`).waitFor();
    }

    /** Types a text into the editor; `pause` is the time between two characters, in milliseconds. */
    async type(text, pause = 20) {
        await this.textFocused();
        await this.page.keyboard.type(text, { delay: pause });
    }

    /** Inserts a text at once, like pasting. */
    insert(text) {
        return this.page.keyboard.insertText(text);
    }

    /** Starts a line at the end of the text with this indentation, without the editor's automatic indentation. */
    async newLine(blanks) {
        await this.textFocused();
        await this.press("Control+End", "Enter", "Shift+Home", "Shift+Home");
        await this.type(" ".repeat(blanks));
    }

    /** Opens a list with an input by a key, which does nothing while the window starts. */
    async #prompt(key) {
        const input = this.page.locator(".quick-input-widget:visible input");
        await until(`${key} opens no list`, async () => {
            await this.press(key);
            return await input.waitFor({ timeout: 5000 }).then(() => true, () => false);
        }, 60);
        return input;
    }

    /** Runs a command by its title. */
    async command(title) {
        const input = await this.#prompt("F1");
        const row = this.page.locator(`.quick-input-list ${ROW}.focused`);
        await until(
            async () => `the palette offers ${await row.allInnerTexts()} for ${title}`,
            async () => {
                // Typed again each time: commands are added while the window starts, but not to an open list.
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
        // It closes, or shows another prompt.
        await until(`the command ${title} does not start`, async () => !(await input.isVisible()) || !(await input.inputValue().catch(() => "")).startsWith(">"));
    }

    /** Opens a file of the folder, focuses it, and waits for its language mode (null: any). */
    async openFile(name, mode = "jobc job") {
        const input = await this.#prompt("Control+p");
        // By its full path: two files may have the same name.
        const path = join(this.directory, name);
        await input.fill(path);
        const label = [basename(name), dirname(name)].filter((part) => part !== ".").join(" ");
        await this.page.locator(`.quick-input-list ${ROW}.focused[aria-label^="${label}, "]`).waitFor();
        await this.press("Enter");
        await this.page.locator(`.tab.active[data-resource-name="${basename(name)}"]`).waitFor();
        // Until its text is shown, keys would go to the file before it.
        await this.page.locator(`${TEXT}.focused[data-uri$="/${basename(name)}"]`).waitFor();
        if (mode !== null) {
            await this.modeIs(mode);
        }
    }

    /** Focuses the editor on the left. */
    async focusEditor() {
        await this.command("View: Focus First Editor Group");
        await this.textFocused();
    }

    /** Moves the cursor to a line and a column, both counted from 1. */
    async goTo(line, column = 1) {
        const input = await this.#prompt("Control+g");
        await input.fill(`:${line}:${column}`);
        await this.press("Enter");
        await input.waitFor({ state: "hidden" });
        await this.textFocused();
    }

    /** The language mode in the status bar. */
    mode() {
        return this.page.locator("#status\\.editor\\.mode").innerText();
    }

    /** Waits for a language mode, by its name in the status bar. */
    async modeIs(mode) {
        await until(async () => `the mode is ${await this.mode()} instead of ${mode}`, async () => (await this.mode()) === mode, 10);
    }

    /**
     * Runs a command that prompts with lists, and picks these entries in order.
     *
     * A list closes when something else in the window takes the focus, so the command is run again, at most twice.
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

    /** Picks an entry of the list that is open or opening. */
    async #choose(label) {
        const soon = { timeout: 10_000 };
        const input = this.page.locator(".quick-input-widget:visible input");
        await input.fill(label, soon);
        await this.page.locator(`.quick-input-list ${ROW}.focused`, { hasText: label }).waitFor(soon);
        await this.press("Enter");
        await until(`${label} cannot be chosen`, async () => !(await input.isVisible()) || (await input.inputValue().catch(() => "")) !== label);
    }

    /** The text of a webview that contains these words; undefined while there is none. */
    async webview(words) {
        for (const frame of this.page.frames()) {
            const text = await frame.locator("body").innerText({ timeout: 500 }).catch(() => "");
            if (frame !== this.page.mainFrame() && text.includes(words)) {
                return text;
            }
        }
        return undefined;
    }

    /** The findings in the Problems panel: the second level of its tree, below the files. */
    async problems() {
        const panel = this.page.locator(".markers-panel");
        if (!(await panel.isVisible())) {
            await this.command("Problems: Focus on Problems View");
            await panel.waitFor();
        }
        const rows = await panel.locator(`${ROW}[aria-level="2"]`).allInnerTexts();
        return rows.map((row) => row.replace(/\s+/g, " ").trim());
    }

    /** The labels of the suggestions at the cursor. Retries while the list is empty: servers may still be starting. */
    async suggestions(seconds = 20) {
        const rows = this.page.locator(`.suggest-widget.visible ${ROW} .label-name`);
        return await until(
            "there are no suggestions",
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

    /** Accepts the suggestion with this label. */
    async accept(label) {
        const row = this.page.locator(`.suggest-widget.visible ${ROW}`).filter({ has: this.page.locator(".label-name").getByText(label, { exact: true }) });
        await row.first().waitFor({ timeout: 15_000 });
        await row.first().click();
        // It goes once its text is inserted; another list may follow.
        await row.first().waitFor({ state: "hidden" });
        await this.textFocused();
    }

    /** The hover at the cursor, once it has all of these words; servers may be slow. */
    async hover(...words) {
        const contents = this.page.locator(".monaco-hover:visible .hover-contents");
        return await until(
            async () => `the hover does not have all of ${words}: ${await contents.allInnerTexts()}`,
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

    /** Chooses an entry of that menu with the arrow keys. */
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
        await this.textFocused();
    }

    /** The titles of the code lenses, once there are any. */
    async lenses() {
        const links = this.page.locator(".codelens-decoration a");
        return await until("there are no lenses", async () => (await links.count()) > 0 && (await links.allInnerTexts()));
    }

    /** Clicks on a code lens. */
    takeLens(title) {
        return this.page.locator(".codelens-decoration a", { hasText: title }).first().click();
    }

    /** The target in the status bar, or undefined. */
    async target() {
        const [label] = await this.#target().allInnerTexts();
        return label?.trim() || undefined;
    }

    /** Waits for a target in the status bar. */
    async targetIs(label) {
        await until(async () => `the target is ${await this.target()} instead of ${label}`, async () => (await this.target()) === label);
    }

    /** Clicks on the target in the status bar, picks another, and returns the list. */
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

    /** The visible lines of an editor, by the name of its tab. */
    async textOf(name) {
        const group = this.page.locator(".editor-group-container").filter({ has: this.page.locator(".tab.active", { hasText: name }) });
        const lines = await group.locator(".view-line").evaluateAll((lines) =>
            lines.map((line) => [line.getBoundingClientRect().top, line.textContent]).sort((a, b) => a[0] - b[0]).map(([, text]) => text),
        );
        return lines.join("\n").replaceAll("\u00a0", " ");
    }

    /** The whole text of the editor, through the clipboard. */
    async allText() {
        await this.press("Control+a", "Control+c");
        const text = await this.page.evaluate(() => navigator.clipboard.readText());
        await this.press("ArrowRight");
        return text;
    }

    /** Saves the focused editor. */
    async save() {
        await this.press("Control+s");
        await this.page.locator(".editor-group-container.active .tab.active.dirty").waitFor({ state: "detached" });
    }

    /** Takes a screenshot of the window. */
    picture(name, options = {}) {
        return this.page.screenshot({ path: join(this.pictures, `${name}.png`), ...options });
    }

    /** Presses a button of the notification in the corner, and picks an entry of the list that opens; returns the entry's text. */
    async pressAndPick(button, label) {
        await this.page.locator(".notifications-toasts .monaco-button", { hasText: button }).first().click();
        const row = this.page.locator(`.quick-input-list ${ROW}`, { hasText: label });
        await row.first().waitFor();
        const text = (await row.first().innerText()).replace(/\s+/g, " ").trim();
        await this.#choose(label);
        return text;
    }

    /** The notifications in the corner. */
    async notifications() {
        return await this.page.locator(".notifications-toasts .notification-list-item-message").allInnerTexts();
    }
}
