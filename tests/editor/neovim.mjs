// Neovim, headless, with the configuration of docs/guides/editors.md and with the package of editors/neovim: findings, completion,
// hover and quick fixes work; a Kubernetes manifest is ignored.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Check, JOBC, REPOSITORY, scratch } from "./check.mjs";
import { compilerFindings } from "./compiler.mjs";
import { MISTAKE, recipe, surroundings } from "./recipe.mjs";

const check = new Check("neovim");
const jobc = check.program(JOBC);
const nvim = check.program("nvim");
/** A job whose sixth line causes something. */
const VALID = "version: 1\nname: demo\nimage: python:3.12-slim\nroles:\n  train:\n    resources: {cpu: 2, memory: 1GiB}\n    run: python train.py";
/** The actions of a user, in Lua; the results are written as JSON. */
const SCRIPT = `
local out = {}
local function request(method, line, character)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = character } }
  local answers = vim.lsp.buf_request_sync(0, method, params, 20000) or {}
  for _, answer in pairs(answers) do return answer.result or answer.error end
end
vim.cmd("edit job.yaml")
vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 50)
out.findings = vim.tbl_map(function(d) return { code = d.code, message = d.message, line = d.lnum, column = d.col } end, vim.diagnostic.get(0))
out.needs = request("textDocument/completion", 6, 12)
out.hover = request("textDocument/hover", 7, 6)
vim.fn.cursor(6, 6)
local range = { start = { line = 5, character = 4 }, ["end"] = { line = 5, character = 12 } }
local actions = vim.lsp.buf_request_sync(0, "textDocument/codeAction", {
  textDocument = vim.lsp.util.make_text_document_params(), range = range,
  context = { diagnostics = vim.lsp.diagnostic.get_line_diagnostics() },
}, 20000)
for _, answer in pairs(actions or {}) do
  out.actions = vim.tbl_map(function(a) return a.title end, answer.result or {})
  for _, action in ipairs(answer.result or {}) do
    if action.edit and action.title == "write \`instances\`" then vim.lsp.util.apply_workspace_edit(action.edit, "utf-16") end
  end
end
vim.cmd("write")
vim.wait(20000, function()
  return #vim.tbl_filter(function(d) return d.code == "J0101" end, vim.diagnostic.get(0)) == 0
end, 50)
out.left = vim.tbl_map(function(d) return d.code end, vim.diagnostic.get(0))
if vim.fn.exists(":JobcWhy") == 2 then
  vim.api.nvim_buf_set_lines(0, 0, -1, false, ${JSON.stringify(VALID.split("\n"))
    .replace("[", "{")
    .replace(/]$/, "}")})
  vim.cmd("write")
  vim.fn.cursor(6, 1)
  vim.wait(1000)
  vim.cmd("JobcWhy")
  vim.wait(20000, function() return #vim.fn.getqflist() > 0 end, 50)
  out.why = vim.tbl_map(function(item) return item.text end, vim.fn.getqflist())
  vim.cmd("cclose")
end
vim.cmd("edit pod.yaml")
out.manifest = #vim.lsp.buf_get_clients(0)
vim.fn.writefile({ vim.fn.json_encode(out) }, "out.json")
vim.cmd("quitall!")
`;
/** As `packaging/stage` installs it, in a directory of `packpath`. */
function packaged(place) {
    const site = join(place, "site");
    cpSync(join(REPOSITORY, "editors", "neovim"), join(site, "pack", "jobc", "opt", "jobc"), { recursive: true });
    return `vim.opt.packpath:prepend("${site}")\nvim.cmd("packadd jobc")\n`;
}

/** Edits a job with the mistake. `init` returns the configuration, and may write files to the directory that it is given. */
function edit(name, init) {
    const place = scratch(name);
    const directory = join(place, "work");
    mkdirSync(directory);
    const job = join(directory, "job.yaml");
    writeFileSync(job, MISTAKE);
    writeFileSync(join(directory, "pod.yaml"), "apiVersion: v1\nkind: Pod\n");
    writeFileSync(join(place, "init.lua"), init(place));
    writeFileSync(join(place, "script.lua"), SCRIPT);

    const words = ["--headless", "--clean", "-u", join(place, "init.lua"), "-c", `luafile ${join(place, "script.lua")}`];
    const { status, stdout, stderr } = spawnSync(nvim, words, { cwd: directory, env: surroundings(place, jobc), encoding: "utf8", timeout: 120_000 });
    check.equal(status, 0, `${name}: Neovim failed: ${stdout}${stderr}`);
    const out = JSON.parse(readFileSync(join(directory, "out.json"), "utf8"));

    writeFileSync(job, MISTAKE);
    const wanted = compilerFindings(jobc, job).map(({ code, message, start }) => ({ code, message, line: start.line - 1, column: start.column - 1 }));
    const byCode = (a, b) => (a.code + a.line < b.code + b.line ? -1 : 1);
    const shape = ({ code, message, line, column }) => ({ code, message: message.split("\n")[0], line, column });
    check.equal(out.findings.map(shape).sort(byCode), wanted.map(shape).sort(byCode), `${name}: findings`);
    const labels = (out.needs?.items ?? out.needs ?? []).map(({ label }) => label);
    check.expect(labels.includes("prepare"), `${name}: offered in \`needs\`: ${labels}`);
    check.expect(JSON.stringify(out.hover ?? "").length > 40, `${name}: the hover of \`run\`: ${JSON.stringify(out.hover)}`);
    check.expect(out.actions?.includes("write `instances`"), `${name}: quick fixes: ${out.actions}`);
    check.equal(out.left.includes("J0101"), false, `${name}: the fixed finding is still there`);
    if (name === "neovim-package") {
        check.expect(out.why?.some((text) => text.startsWith("demo/local/")), `${name}: the lines of :JobcWhy: ${out.why}`);
    }
    check.equal(out.manifest, 0, `${name}: servers attached to a Kubernetes manifest`);
}

edit("neovim", () => recipe("neovim.mjs"));
edit("neovim-package", packaged);
check.end();
