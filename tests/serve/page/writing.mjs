// Steps that write jobs and submit them.

import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { until } from "../../editor/check.mjs";
import { TALKER } from "./watching.mjs";

/** Write, break, fix, change in the form, submit, and watch to the end. */
export async function write({ check, server, place, jobc }, tab) {
    await tab.go("/new");
    await tab.page.getByRole("button", { name: /^Empty job/ }).click();
    await tab.edits();
    const before = await tab.job();
    check.equal(await tab.problems(), [], "the problems of the empty job");
    await tab.cursorAt("resources", 1);
    await tab.page.keyboard.type("x");
    await until("no problem", async () => (await tab.problems()).length > 0);
    await tab.checked();
    const broken = await tab.job();
    const file = join(place, "broken.yaml");
    writeFileSync(file, broken);
    const { diagnostics } = JSON.parse((await server.call("check", file, "--format", "json").catch((error) => error)).stdout);
    check.equal(await tab.problems(), diagnostics.map(({ code, start }) => `${code} ${start.line}:${start.column}`), "the problems are those of `jobc check`");
    check.equal(await tab.page.isDisabled(".submit-button"), true, "with an error, it can be submitted");
    check.expect(/1 error/.test(await tab.text(".place.chosen")), `the place says nothing: ${await tab.text(".places")}`);
    await tab.picture(join(place, "broken.png"));
    await tab.cursorAt("rxesources", 3);
    await tab.key("Control+.");
    await tab.page.waitForSelector(".action-widget .monaco-list-row.action");
    await tab.key("Enter");
    await until("the fix is not applied", async () => (await tab.job()) === before);
    await tab.checked();
    check.equal(await tab.problems(), [], "the problems after the fix");

    // The form changes the text, and the text the form.
    await tab.field("memory").fill("64MiB");
    await until("the form does not change the text", async () => /memory: 64MiB\}/.test(await tab.job()));
    await tab.field("run").fill('for i in 1 2 3; do echo "written $i"; sleep 0.3; done');
    await tab.field("name").fill("from-the-page");
    await tab.checked();
    check.expect((await tab.job()).startsWith("version: 1\nname: from-the-page\n"), `the name: ${await tab.job()}`);
    await tab.cursorAt("64MiB", 0);
    await tab.page.keyboard.type("1");
    await until("the text does not change the form", async () => (await tab.field("memory").inputValue()) === "164MiB");
    await tab.checked();
    check.expect(/Run on this host[\s\S]*1 task, 1 CPU, 164 MiB/.test(await tab.text(".submit-button")), `the button: ${await tab.text(".submit-button")}`);
    // What comes out, for the place that is chosen.
    check.expect((await tab.page.locator(".outputs button").count()) > 3, "no built files");
    await tab.page.locator(".place", { hasText: "kubernetes" }).locator("input").check();
    await tab.checked();
    check.expect(/error/.test(await tab.text(".place.chosen")) && (await tab.problems()).some((it) => it.startsWith("J0401")), `what Kubernetes refuses: ${await tab.text(".problems")}`);
    await tab.page.locator(".place", { hasText: "local" }).locator("input").check();
    await tab.checked();
    await tab.picture(join(place, "new.png"));
    const id = await tab.submit();
    await tab.sees(".lines", /written 1[\s\S]*written 3/);
    await tab.sees(".job-head", "succeeded");
    check.equal((await server.inspect(id)).state, "succeeded", "the job");
}

/** Another run with a change: first what changes, then the run. */
export async function again({ check, server, place }, tab) {
    const id = await server.run("again", 'version: 1\nname: again\nimage: host\nroles:\n  main:\n    resources: {cpu: 0.5, memory: 64MiB}\n    run: echo first\n');
    await server.ended(id);
    await tab.go(`/jobs/${id}`);
    await tab.page.getByRole("link", { name: "Edit and run again" }).click();
    await tab.edits();
    check.expect((await tab.job()).includes("echo first"), `the job file: ${await tab.job()}`);
    await tab.write((await tab.job()).replace("echo first", "echo second").replace("64MiB", "96MiB"));
    await tab.click(".submit-button:enabled");
    await tab.sees("dialog.difference", /run[\s\S]*echo first[\s\S]*echo second/);
    check.expect(/64 ?MiB[\s\S]*96 ?MiB/.test(await tab.text("dialog.difference")), `the difference: ${await tab.text("dialog.difference")}`);
    await tab.picture(join(place, "difference.png"));
    await tab.page.locator("dialog.difference").getByRole("button", { name: "Run on this host" }).click();
    await tab.page.waitForURL((url) => /\/jobs\/again\.\d+$/.test(url.href) && !url.href.endsWith(id));
    await tab.sees(".lines", "second");
}

/** A sweep from an example with its files; its table sorts, and the best value is marked. */
export async function sweep({ check, server, place }, tab) {
    await tab.go("/new?template=local-sweep");
    await tab.edits();
    check.expect((await tab.text(".form")).includes("code/train.py"), "the file of the example is not there");
    await tab.submit();
    await tab.sees("main", /5 jobs, 5 ended/, 60);
    await tab.sees("[role=table]", "best");
    const order = (column) => tab.page.locator(".table .body .row").evaluateAll((rows, column) => rows.sort((a, b) => a.offsetTop - b.offsetTop).map((row) => Number.parseFloat(row.children[column].textContent)), column);
    const rises = (values) => values.length === 5 && values.every((value, index) => index === 0 || values[index - 1] <= value);
    check.expect(rises(await order(5)), `the best value, which is the lowest, comes first: ${await order(5)}`);
    await tab.page.getByRole("button", { name: "rate" }).click();
    check.expect(rises(await order(2)), `sorted: ${await order(2)}`);
    check.equal(await tab.page.locator(".parallel path.sweep-line").count(), 5, "the lines of parallel coordinates");
    await tab.picture(join(place, "sweep.png"));
    // Two of its jobs run again, and take their places in the sweep.
    const names = async () => (await tab.page.locator(".table .body .row").evaluateAll((rows) => rows.map((row) => row.dataset.key))).sort();
    const [one, other, ...rest] = await names();
    await tab.page.getByLabel(`choose ${one}`).check();
    await tab.page.getByLabel(`choose ${other}`).check();
    await tab.button("Run 2 jobs again").click();
    await tab.sees(".toasts", "2 jobs started again", 60);
    const next = (name) => name.replace(/\d+$/, (run) => Number(run) + 1);
    await until("the jobs are not in the sweep", async () => JSON.stringify(await names()) === JSON.stringify([next(one), next(other), ...rest].sort()));
    await tab.sees("main", /5 jobs, 5 ended/, 60);
    check.equal((await server.inspect(next(one))).state, "succeeded", "a job that ran again");
}

/** Files beside the job, from a directory of the user; what the job writes, downloaded. */
export async function upload({ check, place }, tab) {
    const directory = join(place, "given");
    mkdirSync(join(directory, "code"), { recursive: true });
    writeFileSync(join(directory, "code", "hello.sh"), "echo given > /result/out.txt; cat /result/out.txt\n");
    await tab.go("/new");
    await tab.page.getByRole("button", { name: /^Empty job/ }).click();
    await tab.edits();
    await tab.page.locator('input[webkitdirectory]').setInputFiles(directory);
    await tab.sees(".given", "code/hello.sh");
    await tab.write('version: 1\nname: given\nimage: host\ndata:\n  code: {source: ./code, mount: /code}\noutputs:\n  result: {source: ./result, mount: /result}\nroles:\n  main:\n    resources: {cpu: 0.5, memory: 64MiB}\n    run: sh /code/hello.sh\n');
    check.equal(await tab.problems(), [], "the problems of a job with files");
    // A reload in the middle loses neither the text nor the files.
    await tab.page.reload();
    await tab.edits();
    check.expect((await tab.job()).includes("sh /code/hello.sh") && (await tab.text(".given")).includes("code/hello.sh"), "the reload lost something");
    await tab.submit();
    await tab.sees(".lines", "given");
    await tab.sees(".job-head", "succeeded");
    await tab.page.getByRole("tab", { name: "Files" }).click();
    await tab.page.locator(".files").getByRole("button", { name: "result/" }).click();
    await tab.sees(".files", "out.txt");
    const [download] = await Promise.all([tab.page.waitForEvent("download"), tab.page.getByRole("link", { name: /out\.txt/ }).click()]);
    check.equal(readFileSync(await download.path(), "utf8"), "given\n", "the output");
}

/** A file of another tool becomes a job. */
export async function imported({ check }, tab) {
    await tab.go("/new");
    await tab.page.locator(".start input[type=file]").setInputFiles({ name: "compose.yaml", mimeType: "text/yaml", buffer: Buffer.from("services:\n  web:\n    image: busybox\n    command: echo hi\n    container_name: mine\n") });
    await tab.edits();
    check.expect(/roles:\n {2}web:/.test(await tab.job()), `what was imported: ${await tab.job()}`);
    await tab.sees(".imported", "compose.yaml, line 5: ");
    await tab.page.getByRole("button", { name: "Hide" }).click();
    await until("the findings of the import stay", async () => (await tab.page.locator(".imported").count()) === 0);
    await tab.page.getByRole("button", { name: "Start over" }).click();
    await tab.agree("Start over");
    await tab.page.locator(".start input[type=file]").setInputFiles({ name: "job.yaml", mimeType: "text/yaml", buffer: Buffer.from(TALKER) });
    await tab.edits();
    check.equal(await tab.job(), TALKER, "a job file that is opened");
}

/** A template's parameters as fields, which are its `with`. */
export async function template({ check }, tab) {
    await tab.go("/new");
    await tab.page.getByRole("button", { name: /^std\/torchrun/ }).click();
    await tab.edits();
    await tab.field("nodes").fill("4");
    await until("the parameter is not in the text", async () => /with: \{.*nodes: 4[,}]/.test(await tab.job()));
    check.expect((await tab.text(".form")).includes("std/torchrun"), "the form does not name the template");
}

/** From the page alone: a job is written, refused, repaired, submitted to the place that is named, and watched to its end. */
export async function elsewhere({ check }, tab) {
    const { JOBC_PAGE_PLACE: name, JOBC_PAGE_JOB: text } = process.env;
    await tab.go("/new");
    await tab.page.getByRole("button", { name: /^Empty job/ }).click();
    await tab.edits();
    await tab.page.getByRole("radio", { name: new RegExp(`^${name} `) }).check();
    await tab.write(text.replace("echo", "echo ${{ params.missing }}"));
    check.expect((await tab.problems()).length > 0, "a parameter that is not there is no problem");
    check.equal(await tab.page.locator(".submit-button:enabled").count(), 0, "a job with an error can be submitted");
    await tab.write(text);
    check.equal((await tab.problems()).filter((it) => it.startsWith("J0")), (await tab.problems()).filter((it) => it.startsWith("J03")), "only hints are left");
    check.expect((await tab.text(".submit-button")).startsWith(`Submit on ${name}`), await tab.text(".submit-button"));
    const handle = await tab.submit();
    check.expect(handle.startsWith(`${name}/`), `the job is ${handle}`);
    await tab.sees(".lines", "hello from elsewhere", 90);
    await tab.sees(".job-head", "succeeded", 90);
    for (const [name, shown] of [["Events", ".events, .nothing"], ["Files", ".files, .nothing"], ["Plan", "main"], ["Report", "main"], ["Plots", "main"]]) {
        await tab.page.getByRole("tab", { name }).click();
        await tab.sees(shown, /\w/);
    }
    await tab.go("/jobs");
    await tab.sees(`[data-key="${handle}"]`, "succeeded", 60);
}
