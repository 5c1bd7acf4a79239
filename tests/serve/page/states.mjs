// Steps about states and limits: sign-in, reading only, keys, many jobs, long lines, sizes, both themes and 380 px.

import { join } from "node:path";

import { until } from "../../editor/check.mjs";
import { Tab } from "./tab.mjs";

/** Without a session the page says how to get one; a wrong token is refused, and the link as a whole is taken. */
export async function signIn({ check, server }, tab) {
    await tab.button("Sign out").click();
    await tab.sees("main", "Open the link that jobc serve has printed");
    check.equal(new URL(tab.page.url()).hash, "", "the token is still in the address");
    await tab.page.getByLabel(/paste the link/).fill("wrong");
    await tab.button("Open").click();
    await tab.sees("[role=alert]", "unknown, or has expired");
    await tab.page.getByLabel(/paste the link/).fill(server.link);
    await tab.button("Open").click();
    await tab.sees("main h1", "Jobs");
}

/** A link to read has nothing that changes something, and the server refuses it all the same. */
export async function readOnly({ check, browser, server }, tab) {
    if (server.readLink === undefined) {
        return;
    }
    const id = await server.run("quick", 'version: 1\nname: quick\nimage: host\nroles: {main: {resources: {cpu: 0.5, memory: 64MiB}, run: sleep 60}}\n');
    const reader = await Tab.open(browser, server, { link: server.readLink });
    await reader.sees("header", "read only");
    check.equal(await reader.page.getByRole("link", { name: "New job" }).count(), 0, "a reader is offered a new job");
    await reader.go(`/jobs/${id}`);
    await reader.sees(".job-head", "running");
    check.equal(await reader.page.locator(".buttons").count(), 0, "a reader has buttons");
    await reader.key("s");
    check.equal(await reader.page.locator("dialog[open]").count(), 0, "a reader is asked whether to stop");
    const status = await reader.page.evaluate(async (id) => (await fetch(`/api/v1/jobs/${id}/stop`, { method: "POST", headers: { "X-Jobc-Request": "1" } })).status, id);
    check.equal(status, 403, "the server lets a reader stop a job");
    check.equal((await server.inspect(id)).state, "running", "the job after a reader");
    check.equal(reader.elsewhere(), [], "requests of the reader to elsewhere");
    await reader.close();
    await server.call("kill", id);
    await tab.go("/jobs");
}

/** The list by keys alone: the filter is the address. */
export async function keys({ check, server }, tab) {
    await server.call("run", "--", "echo", "one");
    await tab.go("/jobs");
    await tab.page.waitForSelector(".jobs .body .row");
    await tab.key("/");
    await tab.page.keyboard.type("echo");
    await tab.page.waitForURL(/q=echo/);
    await until("other jobs are shown", async () => (await tab.page.locator(".jobs .body .row").allInnerTexts()).every((row) => row.startsWith("echo")));
    await tab.key("Escape");
    await tab.page.waitForFunction(() => document.activeElement === document.body);
    await tab.key("j");
    await until("no row is selected", async () => (await tab.page.locator(".row.selected").count()) === 1);
    await tab.key("Enter");
    await tab.page.waitForURL(/\/jobs\/[^?]+$/);
    await tab.page.waitForSelector(".job-head");
    await tab.page.goBack();
    await tab.page.waitForURL(/q=echo/);
    check.equal(await tab.page.getByLabel("Filter by name").inputValue(), "echo", "the filter after the way back");
    await tab.key("?");
    await tab.sees("dialog[open]", "next and previous row");
    await tab.key("Escape");
    await tab.page.getByLabel("Filter by name").fill("no such job");
    await tab.sees("main", "No job matches");
}

/** GPUs with who has them, of a host that has some. The answer is made here. */
export async function gpus({ check }, tab) {
    const card = (index, processes = []) => ({ vendor: "nvidia", index, uuid: `GPU-${index}`, name: "NVIDIA H200", memory_bytes: 150e9, memory_used: index * 30e9, processes, links: [], nodes: [], state: {} });
    const lease = (gpu, job, more = {}) => ({ device: { vendor: "nvidia", gpu }, name: `GPU-${gpu}`, job, user: 0, ...more });
    const answer = { driver: { version: "550.54", cuda: "12.4" }, source: "nvml", notes: [], gpus: [card(0), card(1), card(2), card(3, [{ pid: 7, name: "python", memory_bytes: 1 }])], leases: [lease(1, "train.3"), lease(2, "infer.1", { slice: { cores_percent: 30, by: "mps" } })] };
    await tab.page.route("**/api/v1/gpus", (route) => route.fulfill({ json: answer }));
    await tab.go("/host");
    const cards = (await tab.sees(".cards", "H200")) && (await tab.page.locator(".card").allInnerTexts());
    check.equal(cards.map((text) => text.split("\n").at(-1).trim()), ["free", "train.3", "infer.1 (30 %)", "1 process without a job"], "who has the GPUs");
    check.equal(await tab.page.locator(".card a").first().getAttribute("href"), "/jobs/train.3", "the job of a GPU");
}

/** 10,000 jobs: few rows are drawn, and all can be reached. The answers are made here, so that the page alone is tested. */
export async function many({ check }, tab) {
    const all = Array.from({ length: 10_000 }, (_, index) => ({
        id: `many-${index}.1`, name: `many-${index}.1`, job: `many-${index}`, state: index % 7 === 0 ? "failed" : "succeeded", submitted: new Date(Date.now() - index * 1000).toISOString(),
        started: null, ended: null, is_complete: true, end: { explanation: `job ${index}`, exit_code: 0 }, description: null, source: null, sweep: null, target: null, tasks: { succeeded: 1 },
    }));
    await tab.page.route("**/api/v1/jobs?**", (route) => {
        const query = new URL(route.request().url()).searchParams;
        const [from, limit] = [Number(query.get("after") ?? 0), Number(query.get("limit"))];
        return route.fulfill({ json: { jobs: all.slice(from, from + limit), next: from + limit < all.length ? String(from + limit) : null } });
    });
    await tab.go("/jobs");
    await tab.page.waitForSelector(".jobs .body .row");
    const rows = () => tab.page.locator(".jobs .body .row").count();
    check.expect((await rows()) < 60, `${await rows()} rows are drawn`);
    const longest = await tab.page.evaluate(async () => {
        const body = document.querySelector(".jobs .body");
        let worst = 0;
        for (let turn = 0; turn < 400 && !document.querySelector('[data-key="many-9999.1"]'); turn += 1) {
            const start = performance.now();
            body.scrollTop = body.scrollHeight;
            await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 15)));
            worst = Math.max(worst, performance.now() - start);
        }
        return worst;
    });
    check.equal(await tab.page.locator('[data-key="many-9999.1"]').count(), 1, "the last of 10,000 jobs");
    check.expect((await rows()) < 60, `${await rows()} rows are drawn at the end`);
    check.expect(longest < 500, `a step of the scroll took ${Math.round(longest)} ms`);
    check.note(`longest step among 10,000 jobs ${Math.round(longest)} ms`);
}

/** A line of 64 MB, and then another: the page stays quick, and keeps the beginning of the line. */
export async function longLine({ check, server }, tab) {
    const id = await server.run("long-line", "version: 1\nname: long-line\nimage: host\nroles: {main: {resources: {cpu: 1, memory: 256MiB}, run: \"head -c 67108864 /dev/zero | tr '\\\\0' x; echo; echo after it\"}}\n");
    await tab.go(`/jobs/${id}`);
    const worst = tab.page.evaluate(async () => {
        let longest = 0;
        const end = performance.now() + 60_000;
        while (performance.now() < end && !document.querySelector(".lines")?.textContent.includes("after it")) {
            const start = performance.now();
            await new Promise((resolve) => setTimeout(resolve, 10));
            longest = Math.max(longest, performance.now() - start);
        }
        return longest;
    });
    await tab.sees(".lines", "after it", 60);
    check.expect((await worst) < 1000, `the page stood still for ${Math.round(await worst)} ms`);
    const length = await tab.page.evaluate(() => document.querySelector(".lines").textContent.length);
    check.expect(length < 30_000, `${length} characters are drawn`);
    check.expect(/MiB more of this line/.test(await tab.text(".lines")), "what was left out is not said");
    check.note(`a line of 64 MB: at most ${Math.round(await worst)} ms without an answer`);
}

/** First paint on loopback, and what is loaded for it: not the editor. */
export async function paint({ check, browser, server }, tab) {
    const times = [];
    for (let turn = 0; turn < 5; turn += 1) {
        await tab.page.goto("about:blank");
        await tab.page.goto(`${server.origin}/jobs`);
        await tab.page.waitForSelector("main h1");
        times.push(await tab.page.evaluate(() => new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime)).observe({ type: "paint", buffered: true }))));
    }
    // The least, for the host has other work.
    const first = Math.min(...times);
    check.expect(first < 300, `first paint after ${times.map(Math.round)} ms`);
    const size = await tab.page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => !name.includes("/api/")).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0));
    check.expect(size < 100_000, `${size} bytes are loaded for the list`);
    check.note(`first paint ${Math.round(first)} ms, ${Math.round(size / 1024)} KiB for the list`);
}

/** No serious finding of axe and nothing wider than the window, on every page, in both themes, and at 380 px. */
export async function access({ check, server, place, axe }, tab) {
    const { stdout } = await server.call("ps", "--all", "--format", "json");
    const all = JSON.parse(stdout);
    const id = all.find(({ sweep }) => sweep === null)?.id ?? all[0].id;
    const sweep = all.find(({ sweep }) => sweep !== null)?.sweep;
    const paths = ["/jobs", `/jobs/${id}`, ...["plots", "events", "files", "plan", "report"].map((it) => `/jobs/${id}?tab=${it}`), ...(sweep ? [`/sweeps/${sweep}`] : []), "/host", "/new", "/new?template=local-dag"];
    for (const [scheme, width, height] of [["light", 1280, 800], ["dark", 1280, 800], ["light", 380, 800], ["dark", 380, 800]]) {
        await tab.page.emulateMedia({ colorScheme: scheme });
        await tab.page.setViewportSize({ width, height });
        for (const path of paths) {
            await tab.go(path);
            await (path.includes("template=") ? tab.edits() : tab.page.waitForLoadState("load"));
            await tab.page.waitForTimeout(400);
            const where = `${path} in ${scheme} at ${width} px`;
            check.equal(await tab.axe(axe), [], `${where}: axe`);
            check.expect(await tab.isNarrow(), `${where} is wider than the window`);
            await tab.picture(join(place, `${path.replaceAll(/[^\w]+/g, "-").slice(1)}-${scheme}-${width}.png`));
        }
        await tab.page.evaluate(() => sessionStorage.clear());
    }
}
