// Fields, their documentation and whole blocks, from the schema, by two servers in this package: yaml-language-server, and
// one of the library behind VS Code's JSON. They check nothing: what is wrong with a job only the compiler says.

import { join } from "node:path";

import * as vscode from "vscode";
import { LanguageClient, TransportKind } from "vscode-languageclient/node";

import { setting } from "./compiler";
import { kindOf, YAML } from "./language";

/** What yaml-language-server asks for under `yaml`, whatever the user has set for other YAML files. */
const SETTINGS = {
    validate: false,
    hover: true,
    completion: true,
    hoverSchemaSource: false,
    format: { enable: false },
    schemaStore: { enable: false },
    kubernetesCRDStore: { enable: false },
};

/** The addresses of the schemas; `schemaText.ts` has their text. None fits OpenPAI's formats. */
const SCHEMA = {
    job: "https://jobc.dev/schemas/job.v1.schema.json",
    targets: "https://jobc.dev/schemas/targets.v1.schema.json",
    openpai: "",
};

/** The servers for fields, one for YAML and one for JSON, each started with the first file of its kind. */
export class Fields implements vscode.Disposable {
    private readonly clients = new Map<string, LanguageClient>();

    constructor(
        private readonly extension: vscode.ExtensionContext,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    /** Starts the server for one of our modes unless it runs or is not wanted. */
    async start(language: string): Promise<void> {
        if (this.clients.has(language) || (language === YAML && !setting("yamlLanguageServer", true))) {
            return;
        }
        const file = language === YAML ? "yaml-field-server.js" : "json-field-server.js";
        const module = this.extension.asAbsolutePath(join("dist", file));
        const client = new LanguageClient(`${language}-fields`, `${language} fields`, { module, transport: TransportKind.ipc }, {
            documentSelector: [
                { language, scheme: "file" },
                { language, scheme: "untitled" },
            ],
            initializationOptions: { l10nPath: this.extension.asAbsolutePath(join("dist", "l10n")) },
            outputChannel: this.output,
            middleware: {
                workspace: {
                    configuration: async (parameters, token, next) => {
                        const given = await next(parameters, token);
                        const values = Array.isArray(given) ? given : [];
                        return parameters.items.map(({ section }, i) => (section === "yaml" ? SETTINGS : (values[i] ?? null)));
                    },
                },
            },
        });
        this.clients.set(language, client);
        client.onRequest("custom/schema/request", (uri: string) => {
            const document = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri);
            return document === undefined ? "" : SCHEMA[kindOf(document)];
        });
        await client.start();
        if (language === YAML) {
            await client.sendNotification("yaml/registerCustomSchemaRequest");
        }
    }

    async stop(): Promise<void> {
        const clients = [...this.clients.values()];
        this.clients.clear();
        await Promise.all(clients.map((client) => client.dispose().catch(() => undefined)));
    }

    dispose(): void {
        void this.stop();
    }
}
