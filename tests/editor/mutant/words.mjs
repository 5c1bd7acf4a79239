// Runs between an editor and `jobc lsp` and replaces two words in the server's output.

import { spawn } from "node:child_process";

const [original, replacement] = ["unknown key", "nonsuch key"];

const child = spawn(process.env.REAL_JOBC, process.argv.slice(2), { stdio: ["inherit", "pipe", "inherit"] });
child.stdout.setEncoding("utf8");
// A message may come in pieces: text that could be the beginning of the words waits for what follows. The message's length
// precedes it, so the replacement has as many bytes.
let rest = "";
child.stdout.on("data", (chunk) => {
    const text = (rest + chunk).replaceAll(original, replacement);
    let kept = Math.min(original.length - 1, text.length);
    while (!original.startsWith(text.slice(text.length - kept))) {
        kept -= 1;
    }
    process.stdout.write(text.slice(0, text.length - kept));
    rest = text.slice(text.length - kept);
});
child.on("exit", (code, signal) => {
    process.stdout.write(rest);
    process.exitCode = code ?? (signal ? 1 : 0);
});
