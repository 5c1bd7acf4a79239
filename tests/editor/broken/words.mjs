// Stands between an editor and `jobc lsp` and exchanges two words in what the server says.

import { spawn } from "node:child_process";

const [said, instead] = ["unknown key", "nonsuch key"];

const child = spawn(process.env.REAL_JOBC, process.argv.slice(2), { stdio: ["inherit", "pipe", "inherit"] });
child.stdout.setEncoding("utf8");
// A message may come in pieces: all that could be the beginning of the words waits for what follows. Its length stands
// before it, so the words are exchanged for as many bytes.
let rest = "";
child.stdout.on("data", (chunk) => {
    const text = (rest + chunk).replaceAll(said, instead);
    let kept = Math.min(said.length - 1, text.length);
    while (!said.startsWith(text.slice(text.length - kept))) {
        kept -= 1;
    }
    process.stdout.write(text.slice(0, text.length - kept));
    rest = text.slice(text.length - kept);
});
child.on("exit", (code, signal) => {
    process.stdout.write(rest);
    process.exitCode = code ?? (signal ? 1 : 0);
});
