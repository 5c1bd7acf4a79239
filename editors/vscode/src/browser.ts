// The extension in VS Code for the Web, where no programs run: the server is WebAssembly in a worker.

import * as vscode from "vscode";

import { activateWith } from "./features";
import { Wasm } from "./wasm";

export function activate(context: vscode.ExtensionContext): void {
    const output = vscode.window.createOutputChannel("jobc", { log: true });
    const elsewhere = {
        register: () => new vscode.Disposable(() => undefined),
        async run(): Promise<void> {
            await vscode.window.showInformationMessage("jobc: jobs are built and run where programs can be started: in VS Code on a desktop, or by `jobc build`");
        },
    };
    activateWith(context, output, new Wasm(context, output), () => elsewhere);
}
