// Parts of the page without a browser: edits of a job file, ANSI, event streams, long lines, numbers in logs.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mkdirSync, writeFileSync } from "node:fs";

import { Check, REPOSITORY, scratch } from "../editor/check.mjs";

const check = new Check("units");
const page = join(REPOSITORY, "serve", "page");
let esbuild;
try {
    esbuild = createRequire(join(page, "package.json"))("esbuild");
} catch {
    check.needs("the page of jobc serve", "`serve/page/build`");
}
const place = scratch("page-units");

/** A module of the page. */
async function load(name) {
    const { outputFiles } = await esbuild.build({ entryPoints: [join(page, "src", name)], bundle: true, format: "esm", write: false, platform: "neutral", mainFields: ["module", "main"] });
    const file = join(place, `${name.replaceAll("/", "-")}.mjs`);
    mkdirSync(place, { recursive: true });
    writeFileSync(file, outputFiles[0].text);
    return await import(pathToFileURL(file));
}

const { read } = await load("new/yaml_edit.ts");

/** The text after a field is set. */
function set(text, path, value) {
    const edit = read(text)?.set(path, value);
    return edit ? text.slice(0, edit.from) + edit.insert + text.slice(edit.to) : null;
}

const JOB = `version: 1
name: a   # the name
roles:
  main:
    resources: {cpu: 1, memory: 1GiB}
    run: |
      echo one
      echo two

  other:
    run: echo
`;
const cases = [
    ["a scalar, with its comment", JOB, ["name"], "b", JOB.replace("name: a ", "name: b ")],
    ["in braces", JOB, ["roles", "main", "resources", "cpu"], 2, JOB.replace("cpu: 1", "cpu: 2")],
    ["a new key in braces", JOB, ["roles", "main", "resources", "gpu"], 1, JOB.replace("1GiB}", "1GiB, gpu: 1}")],
    ["a new key in a block", JOB, ["roles", "other", "instances"], 3, JOB.replace("    run: echo\n", "    run: echo\n    instances: 3\n")],
    ["a new key after a script", JOB, ["roles", "main", "instances"], 2, JOB.replace("      echo two\n", "      echo two\n    instances: 2\n")],
    ["a key of a map that is missing", JOB, ["roles", "other", "resources", "memory"], "2GiB", JOB.replace("    run: echo\n", "    run: echo\n    resources: {memory: 2GiB}\n")],
    ["a script", JOB, ["roles", "main", "run"], "echo three\necho four", JOB.replace("echo one\n      echo two", "echo three\n      echo four")],
    ["one line that becomes two", JOB, ["roles", "other", "run"], "a\nb", JOB.replace("    run: echo\n", "    run: |\n      a\n      b\n")],
    ["what needs quotes", JOB, ["name"], "a: b", JOB.replace("name: a ", 'name: "a: b" ')],
    ["what needs quotes in braces", JOB, ["roles", "main", "resources", "memory"], "1, 2", JOB.replace("1GiB", '"1, 2"')],
    ["a text that looks like a number", JOB, ["name"], "12", JOB.replace("name: a ", 'name: "12" ')],
    ["below what is no map", JOB, ["name", "x"], "1", null],
    ["CJK", "name: 训练\nimage: host\n", ["image"], "基础", "name: 训练\nimage: 基础\n"],
];
for (const [what, text, path, value, wanted] of cases) {
    check.equal(set(text, path, value), wanted, what);
}
check.equal(read("a: [unclosed"), null, "a text that cannot be read");
check.equal(read(""), null, "an empty text");
check.equal(read(JOB).keys(["roles"]), ["main", "other"], "keys");

const { plain, runs } = await load("ansi.ts");
check.equal(runs("\x1b[1;31mred\x1b[0m plain"), [{ text: "red", class: "c1 bold" }, { text: " plain", class: "" }], "colors");
check.equal(runs("\x1b[38;5;196mx\x1b[38;2;0;200;0my"), [{ text: "x", class: "c9" }, { text: "y", class: "c2" }], "256 colors and all of them");
check.equal(plain("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1b[2Jd\x1b(B\x07e\x00"), "abcde", "titles, links and screens are dropped");
check.equal(plain("10 %\r50 %\r100 %\r"), "100 %", "a line that was written over");
check.equal(plain("a\u202eb"), "a\ufffdb", "text that is turned around");
check.equal(runs("<b>&amp;"), [{ text: "<b>&amp;", class: "" }], "HTML is text");

globalThis.location = { href: "http://localhost/" };
globalThis.document = { hidden: false };
const { Parser } = await load("stream.ts");
const parser = new Parser();
check.equal([...parser.read("id: 1\nevent: line\nda"), ...parser.read("ta: x\n\n: comment\n\nid: 2\r\ndata: a\r\ndata: b\r\n\r\n")], [{ kind: "line", data: "x" }, { kind: "message", data: "a\nb" }], "events in pieces");
check.equal(parser.id, "2", "the last id");

const { LogBuffer, search } = await load("job/log_buffer.ts");
const line = (text, ends = true, task = "a") => ({ time: "", task, attempt: 1, stream: "stdout", text, ends });
const buffer = new LogBuffer();
buffer.add([line("one ", false), line("other", true, "b"), line("two"), line("three")]);
check.equal(buffer.lines.map(({ text }) => text), ["one two", "other", "three"], "pieces of a line among others");
buffer.add(Array.from({ length: 64 }, () => line("x".repeat(1 << 20), false)));
check.expect(buffer.lines.at(-1).text.length === 20_000 && buffer.lines.at(-1).cut === 64 * (1 << 20) - 20_000, "a line of 64 MiB is cut");
buffer.add([line("", true), ...Array.from({ length: 150_000 }, (_, index) => line(`l${index}`))]);
check.expect(buffer.lines.length <= 150_000 && buffer.lines.at(-1).text === "l149999" && buffer.dropped > 0, `${buffer.lines.length} lines`);
check.equal(search([{ text: "a \x1b[31mRed\x1b[0m" }, { text: "b" }], "red"), [0], "search in colors");

const { MetricSeries, UsageSeries } = await load("job/series.ts");
const metrics = new MetricSeries();
for (const [index, text] of ["step 1 loss: 0.5 acc=90%", 'step 2 {"loss": 2.5e-1, "epoch": 3}', "nothing: here"].entries()) {
    metrics.add({ ...line(text), time: new Date(index * 1000).toISOString() });
}
check.equal(metrics.named().map(({ name, series }) => [name, series[0].values]), [["loss", [0.5, 0.25]]], "the numbers of a log");
const usage = new UsageSeries();
for (const [second, cpu_usec] of [0, 500_000, 2_500_000].entries()) {
    usage.add({ time: new Date(second * 1000).toISOString(), task: "a", cpu_usec, memory: 10, gpu: [{ gpu: "GPU-1", utilization: 90 + second, memory: 5 }] });
}
check.equal(usage.cpu()[0].values, [0.5, 2], "CPUs from times");
check.equal(usage.gpuUtilization().map(({ name, values }) => [name, values]), [["a GPU-1", [90, 91, 92]]], "the use of a GPU");
check.equal(usage.gpuMemory()[0].values, [5, 5, 5], "the memory of a GPU");
check.end();
