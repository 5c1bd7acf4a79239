// Steps that watch jobs which others started.

import { join } from "node:path";

import { until } from "../../editor/check.mjs";
import { Tab } from "./tab.mjs";

/** Two tasks that write until they are stopped, in colors, with what must not be HTML or a command of a terminal. */
export const TALKER = `version: 1
name: talker
image: host
roles:
  talk:
    instances: 2
    resources: {cpu: 0.5, memory: 64MiB}
    run: |
      echo '<img src=x onerror="document.title=1">'
      printf '\\033]0;evil\\007\\033[2J\\033[31mred\\033[0m plain\\n'
      i=0
      while true; do i=$((i+1)); echo "line $i loss: 0.$((1000 - i))"; sleep 0.05; done
`;

/** Without a job the list says how to begin; what runs in a terminal is then shown. */
export async function empty({ server }, tab) {
    if (server.isOwn) {
        await tab.sees("main", "jobc run -- echo");
    }
    await server.call("run", "--", "echo", "it runs");
    const [{ id }] = JSON.parse((await server.call("ps", "--all", "--format", "json")).stdout);
    await tab.sees(`[data-key="${id}"]`, "✓ succeeded");
    await tab.page.locator(`[data-key="${id}"] a`).click();
    await tab.sees(".lines", "it runs");
    await tab.sees(".job-head", "succeeded");
}

/** Logs in colors, followed and searched; plots, events, the plan; a terminal; and an end after a question. */
export async function watch({ check, server, place }, tab) {
    const id = await server.run("talker", TALKER);
    await tab.go(`/jobs/${id}`);
    await tab.sees(".lines", /line \d\d/);
    check.equal(await tab.page.title(), `${id} · jobc`, "the title is not that of a log");
    check.equal(await tab.page.locator(".lines img").count(), 0, "an element of HTML came from a log");
    // The log goes on, and its end stays in view.
    const number = async () => Math.max(...[...(await tab.text(".lines")).matchAll(/line (\d+)/g)].map(([, it]) => Number(it)));
    const before = await number();
    await until("the log does not go on", async () => (await number()) > before + 20);
    // Not any more once somebody scrolls up.
    await tab.page.hover(".lines");
    await tab.page.mouse.wheel(0, -100_000);
    await tab.sees(".lines", "<img src=x");
    check.equal(await tab.page.getAttribute(".toggle", "aria-pressed"), "false", "scrolled up, it follows");
    const red = tab.page.locator(".lines .c1", { hasText: "red" }).first();
    check.expect((await red.count()) > 0, "red is not red");
    await tab.key("/");
    await tab.page.keyboard.type("line 7 ");
    await tab.sees(".search .count", /^2$/);
    await tab.key("Enter");
    await tab.sees(".lines .marked", "line 7 ");
    await tab.page.getByLabel("only matches").check();
    await until("more than the matches is shown", async () => (await tab.page.locator(".lines .line").count()) === 2);
    await tab.key("Escape");
    await tab.picture(join(place, "logs.png"));

    await tab.page.getByRole("tab", { name: "Plots" }).click();
    await tab.sees(".plots", /loss[\s\S]*CPU[\s\S]*Memory/, 30);
    check.expect((await tab.page.locator(".plots canvas").count()) >= 3, "plots without a canvas");
    await tab.picture(join(place, "plots.png"));
    await tab.page.getByRole("tab", { name: "Events" }).click();
    await tab.sees(".events", /submitted[\s\S]*started/);
    await tab.page.getByRole("tab", { name: "Plan" }).click();
    await tab.sees(".plan", /talk[\s\S]*2 instances/);

    await tab.page.getByRole("tab", { name: "Terminal" }).click();
    await tab.page.locator(".exec").getByRole("button", { name: "Open" }).click();
    await tab.page.waitForSelector(".screen .xterm-rows");
    await until("the terminal has no prompt", async () => (await tab.text(".screen")).trim() !== "");
    await tab.page.click(".screen");
    await tab.page.keyboard.type("echo $((6*7))-answer\n");
    await tab.sees(".screen .xterm-rows, .screen .xterm-accessibility", "42-answer");
    await tab.page.keyboard.type("exit 3\n");
    await tab.sees(".exec .status", "exit status 3");

    await tab.button("Stop").click();
    await tab.page.locator("dialog[open]").getByRole("button", { name: "Cancel" }).click();
    check.equal((await server.inspect(id)).state, "running", "cancelled, it is stopped");
    await tab.button("Stop").click();
    await tab.agree("Stop");
    await tab.sees(".job-head", "stopped", 60);
    check.equal((await server.inspect(id)).state, "stopped", "the state after the stop");
    await tab.page.getByRole("tab", { name: "Report" }).click();
    await tab.page.frameLocator("iframe").locator("h1").waitFor();
}

/** A reload in the middle shows the same tab, and two tabs show the same end. */
export async function tabs({ check, server }, tab) {
    const id = await server.run("talker", TALKER);
    await tab.go(`/jobs/${id}?tab=events`);
    await tab.sees(".events", "started");
    await tab.page.reload();
    await tab.sees(".events", "started");
    const other = await Tab.in(tab.context, server);
    await other.page.goto(`${server.origin}/jobs`);
    await other.sees("[role=table]", /● running/);
    await other.page.locator(`[data-key="${id}"]`).click();
    await other.key("s");
    await other.agree("Stop");
    await other.sees(`[data-key="${id}"]`, "stopped", 60);
    await tab.sees(".job-head", "stopped");
    check.equal(other.errors, [], "errors in the other tab");
    await other.page.close();
}

/** A server that is killed and comes back: the page says so, and the log goes on without a gap and without a line twice. */
export async function killed({ check, server, place }, tab) {
    if (!server.isOwn) {
        return;
    }
    const id = await server.run("counter", TALKER.replace("talker", "counter").replace("instances: 2", "instances: 1"));
    await tab.go(`/jobs/${id}`);
    await tab.sees(".lines", /line \d\d/);
    await server.kill();
    await tab.sees(".lost", "does not answer");
    await tab.picture(join(place, "lost.png"));
    check.equal((await server.inspect(id)).state, "running", "the job without the server");
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await server.begin();
    await until("the page does not notice the server", async () => (await tab.page.locator(".lost").count()) === 0);
    const last = async () => Number([...(await tab.text(".lines")).matchAll(/line (\d+)/g)].at(-1)?.[1] ?? 0);
    const before = await last();
    await until("the log does not go on", async () => (await last()) > before + 20);
    await tab.key("f");
    await tab.page.getByLabel("Search the log").fill("line ");
    await tab.page.getByLabel("only matches").check();
    const shown = await until("the first line is not shown", async () => {
        await tab.page.locator(".lines").evaluate((element) => (element.scrollTop = 0));
        await tab.page.waitForTimeout(300);
        const rows = await tab.page.locator(".lines .line").allInnerTexts();
        // The list may still follow the log when it is scrolled.
        return rows.length > 20 && /line 1\b/.test(rows[0]) && rows;
    });
    const numbers = shown.map((text) => Number(/line (\d+)/.exec(text)[1]));
    check.equal(numbers, numbers.map((_, index) => index + 1), "the lines before and after");
    await server.call("kill", id);
    await tab.sees(".job-head", /✕|■/, 60);
}
