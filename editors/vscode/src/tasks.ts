// Check, build and run as tasks: for the commands, and for every job file of the workspace.

import { relative } from "node:path";

import * as vscode from "vscode";

import type { Action, Runner } from "./commands";
import type { Program } from "./program";
import type { TargetPicker } from "./target";

const TYPE = "jobc";

/** What stands in tasks.json. */
interface Definition extends vscode.TaskDefinition {
    command: Action;
    file: string;
    arguments?: string[];
}

/** Job files of a workspace, and what is never looked into: output, dependencies. */
const JOBS = "**/{job,jobc,*.job}.{yaml,yml,json}";
const NOT_THERE = "**/{node_modules,target,out,.git}/**";
const MAX_FILES = 200;

/** Offers tasks. */
export class Tasks implements Runner, vscode.TaskProvider {
    constructor(
        private readonly program: Program,
        private readonly target: TargetPicker,
    ) {}

    register(): vscode.Disposable {
        return vscode.tasks.registerTaskProvider(TYPE, this);
    }

    async provideTasks(): Promise<vscode.Task[]> {
        const files = await vscode.workspace.findFiles(JOBS, NOT_THERE, MAX_FILES);
        return files.flatMap((file) => [this.make("check", file), this.make("build", file)]);
    }

    resolveTask(task: vscode.Task): vscode.Task | undefined {
        const { command, file, arguments: more } = task.definition as Partial<Definition>;
        if (command === undefined || file === undefined) {
            return undefined;
        }
        const folder = typeof task.scope === "object" ? task.scope : vscode.workspace.workspaceFolders?.[0];
        const uri = folder === undefined ? vscode.Uri.file(file) : vscode.Uri.joinPath(folder.uri, file);
        // The definition must be the very object that VS Code asked about.
        return this.make(command, uri, more, task.definition as Definition);
    }

    /** Runs a command of the program about a file in a terminal, after saving the file; for the target of the status bar. */
    async run(action: Action, document: vscode.TextDocument): Promise<void> {
        if (document.isUntitled || !(await document.save())) {
            void vscode.window.showErrorMessage("jobc: save the job to a file first: what it names is looked for beside it");
            return;
        }
        const settings = moreArguments(document.uri);
        const ownTarget = settings.some((word) => /^(--target(=|$)|-t)/.test(word));
        const names = action === "run" || ownTarget ? [] : await this.target.chosen(document);
        const more = [...names.flatMap((name) => ["--target", name]), ...(action === "run" ? [] : settings)];
        await vscode.tasks.executeTask(this.make(action, document.uri, more));
    }

    private make(action: Action, file: vscode.Uri, more?: string[], definition?: Definition): vscode.Task {
        const folder = vscode.workspace.getWorkspaceFolder(file);
        const path = folder === undefined ? file.fsPath : relative(folder.uri.fsPath, file.fsPath);
        const words = commandLine(action, path, more ?? (action === "run" ? [] : moreArguments(file)));
        const task = new vscode.Task(
            definition ?? { type: TYPE, command: action, file: path },
            folder ?? vscode.TaskScope.Workspace,
            `${action} ${path}`,
            "jobc",
            new vscode.ProcessExecution(this.program.path, words, folder && { cwd: folder.uri.fsPath }),
            action === "run" ? [] : ["$jobc"],
        );
        if (action !== "run") {
            task.group = vscode.TaskGroup.Build;
        }
        task.presentationOptions = { clear: true, reveal: vscode.TaskRevealKind.Always };
        return task;
    }
}

/** The setting for a file. */
function moreArguments(file: vscode.Uri): string[] {
    return vscode.workspace.getConfiguration("jobc", file).get<string[]>("arguments", []);
}

/** The words after the program's name. One line a finding is what the problem matcher reads. */
export function commandLine(action: Action, path: string, more: string[]): string[] {
    return action === "run" ? ["run", ...more, path] : [action, "--format", "short", ...more, path];
}
