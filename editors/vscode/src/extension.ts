// The extension where programs run: on the desktop, on a remote host.

import * as vscode from "vscode";

import { activateWith } from "./features";
import { Program } from "./program";
import { Tasks } from "./tasks";

export function activate(context: vscode.ExtensionContext): void {
    const output = vscode.window.createOutputChannel("jobc", { log: true });
    const program = new Program(context, output);
    activateWith(context, output, program, (target) => new Tasks(program, target));
}
