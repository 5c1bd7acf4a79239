// The steps of a new user in docs/guides/editors.md: from an empty job.yaml to four roles with completions only, an error, and its
// quick fix.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { JOBC } from "../check.mjs";
import { compilerFindings, printed } from "../compiler.mjs";
import { problemsBecome, wantedProblems } from "./problems.mjs";

/** The roles after the first: a block from the list, its name, and the role that it needs. */
const ROLES = [
    ["a role with GPUs", "train", "prepare"],
    ["a role", "evaluate", "train"],
    ["a role that serves", "serve", "evaluate"],
];

export const NEWCOMER = {
    files: (directory) => writeFileSync(join(directory, "job.yaml"), ""),
    async run(editor, check, directory) {
        const path = join(directory, "job.yaml");
        await editor.openFile("job.yaml");
        const offered = await editor.suggestions();
        check.expect(offered.includes("a new job"), `offered in an empty file: ${offered}`);
        await editor.picture("newcomer-empty");
        await editor.accept("a new job");
        // The placeholders of a block are replaced or kept, and Tab moves on.
        await editor.type("pipeline");
        await editor.press("Tab", "Tab");
        await editor.type("prepare");
        await editor.press("Tab", "Tab", "Tab", "Tab");

        for (const [block, name, needed] of ROLES) {
            await editor.newLine(2);
            await editor.suggestions();
            await editor.accept(block);
            await editor.type(name);
            await editor.press("Escape", "Escape");
            await editor.newLine(4);
            await editor.suggestions();
            await editor.accept("needs");
            const roles = await editor.suggestions();
            check.expect(roles.includes(needed), `offered in \`needs\` of ${name}: ${roles}`);
            await editor.picture(`newcomer-${name}`);
            await editor.accept(needed);
        }
        await editor.save();
        const text = readFileSync(path, "utf8");
        const expected = wantedProblems(path);
        const errors = compilerFindings(JOBC, path).filter(({ severity }) => severity === "error");
        check.equal(errors, [], `the job written from completions has errors:\n${text}`);
        check.equal(text.match(/^  \w+:$/gm), ["  prepare:", "  train:", "  evaluate:", "  serve:"], "the roles");
        const [job] = JSON.parse(printed(JOBC, "plan", "--format", "json", path)).jobs;
        const needs = job.roles.map((role) => (role.needs ?? []).map(({ role }) => role));
        check.equal(needs, [[], ["prepare"], ["train"], ["evaluate"]], "what the roles need");
        check.equal(text.match(/run: .*/g)?.filter((line) => !/[\w.]$/.test(line)), [], "commands that lost their end");
        await problemsBecome(editor, expected);

        // One typo, fixed with one key.
        await editor.focusEditor();
        await editor.goTo(text.split("\n").findIndex((line) => line.includes("instances:")) + 1, 6);
        await editor.press("Delete");
        await editor.save();
        check.expect(wantedProblems(path).some((row) => row.startsWith("unknown key `istances`")), `the error: ${wantedProblems(path)}`);
        await problemsBecome(editor, wantedProblems(path));
        await editor.focusEditor();
        const fixes = await editor.quickFixes();
        check.expect(fixes.includes("write `instances`"), `quick fixes: ${fixes}`);
        await editor.picture("newcomer-fix");
        await editor.takeFix("write `instances`");
        await editor.save();
        check.equal(readFileSync(path, "utf8"), text, "the repair");
        await problemsBecome(editor, expected);
    },
};
