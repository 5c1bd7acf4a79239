// A tab of the browser with the page in it.

import { until } from "../../editor/check.mjs";

/** How long the page may take to show something, in seconds. */
const SECONDS = 20;

export class Tab {
    /** Opens the link of the server in a context of its own, as another browser has it. */
    static async open(browser, server, { link = server.link, path = "/jobs", ...options } = {}) {
        const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
        const tab = await Tab.in(context, server);
        await tab.page.goto(link);
        await tab.page.waitForSelector("main h1");
        if (path !== "/jobs") {
            await tab.go(path);
        }
        return tab;
    }

    /** Another tab of the same browser. */
    static async in(context, server) {
        const tab = new Tab();
        Object.assign(tab, { context, server, errors: [], requests: [] });
        tab.page = await context.newPage();
        tab.page.setDefaultTimeout(SECONDS * 1000);
        // With the address of what was not loaded.
        tab.page.on("console", (message) => message.type() === "error" && tab.errors.push(`${message.text()} ${message.location().url}`));
        tab.page.on("pageerror", (error) => tab.errors.push(String(error.stack)));
        tab.page.on("request", (request) => tab.requests.push(request.url()));
        return tab;
    }

    /** Requests that leave the server. */
    elsewhere() {
        const own = [this.server.origin, this.server.origin.replace("http", "ws")];
        return this.requests.filter((url) => !own.some((origin) => url.startsWith(`${origin}/`)) && !/^(data|blob|about):/.test(url));
    }

    async go(path) {
        await this.page.goto(this.server.origin + path);
        await this.page.waitForSelector("main h1");
    }

    text(selector = "main") {
        return this.page.innerText(selector);
    }

    /** Waits until an element has a text. */
    async sees(selector, wanted, seconds = SECONDS) {
        const matches = (text) => (wanted instanceof RegExp ? wanted.test(text) : text.includes(wanted));
        let last = "";
        return await until(() => `${selector} has not ${wanted}, but: ${last}`, async () => {
            last = (await this.page.locator(selector).allInnerTexts()).join("\n");
            return matches(last) && last;
        }, seconds);
    }

    click(selector) {
        return this.page.click(selector);
    }

    button(name) {
        return this.page.getByRole("button", { name, exact: true });
    }

    key(...keys) {
        return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve());
    }

    /** Answers the question of the page. */
    async agree(name) {
        await this.page.locator("dialog[open]").getByRole("button", { name, exact: true }).click();
    }

    // The editor.

    /** Waits for the editor and the first verdict about its text. */
    async edits() {
        await this.page.waitForFunction(() => globalThis.monaco?.editor.getEditors().length > 1);
        await this.checked();
    }

    /** Waits until the server has said what it makes of the text as it is now. */
    async checked() {
        await this.page.waitForTimeout(350);
        await this.page.waitForSelector('.submit[data-fresh="true"]');
    }

    job() {
        return this.page.evaluate(() => monaco.editor.getModels().find(({ uri }) => uri.path === "/job.yaml").getValue());
    }

    /** Replaces the text as by typing. */
    async write(text) {
        await this.page.evaluate((text) => {
            const editor = monaco.editor.getEditors().find((it) => it.getModel()?.uri.path === "/job.yaml");
            editor.executeEdits("test", [{ range: editor.getModel().getFullModelRange(), text }]);
        }, text);
        await this.checked();
    }

    /** Puts the cursor at a text of the job. */
    async cursorAt(wanted, offset = 0) {
        await this.page.evaluate(([wanted, offset]) => {
            const editor = monaco.editor.getEditors().find((it) => it.getModel()?.uri.path === "/job.yaml");
            const model = editor.getModel();
            editor.setPosition(model.getPositionAt(model.getValue().indexOf(wanted) + offset));
            editor.focus();
        }, [wanted, offset]);
    }

    /** A field of the form. */
    field(name) {
        return this.page.locator(".form").getByLabel(name, { exact: true });
    }

    /** The problems, as `CODE LINE:COLUMN`. */
    problems() {
        return this.page.evaluate(() => [...document.querySelectorAll(".findings li")].map((row) => `${row.querySelector(".code").textContent} ${/:(\d+:\d+)$/.exec(row.querySelector(".where").textContent)[1]}`));
    }

    /** Submits what is written; the address of the job. */
    async submit() {
        await this.page.click(".submit-button:enabled");
        await this.page.waitForURL(/\/(jobs|sweeps)\/[^/]+$/);
        return decodeURIComponent(new URL(this.page.url()).pathname.split("/")[2]);
    }

    // What is drawn.

    /** The serious findings of axe: rule and elements. */
    async axe(source) {
        await this.page.evaluate(source);
        return await this.page.evaluate(async () => {
            const { violations } = await axe.run(document, { resultTypes: ["violations"] });
            const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
            return serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 5).map(({ target, any }) => `${target} ${any[0]?.message ?? ""}`).join("; ")}`);
        });
    }

    isNarrow() {
        return this.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth);
    }

    picture(path) {
        return this.page.screenshot({ path });
    }

    close() {
        return this.context.close();
    }
}
