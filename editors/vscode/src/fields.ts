// Fields, their documentation and whole blocks in YAML, from the schema, by the yaml-language-server in this package.
// It checks nothing: what is wrong with a job only the compiler says.

import { join } from "node:path";

import * as vscode from "vscode";
import { LanguageClient, TransportKind } from "vscode-languageclient/node";

import { setting } from "./compiler";
import { kindOf, YAML } from "./language";

/** What that server asks for under `yaml`, whatever the user has set for other YAML files. */
const SETTINGS = {
    validate: false,
    hover: true,
    completion: true,
    hoverSchemaSource: false,
    format: { enable: false },
    schemaStore: { enable: false },
    kubernetesCRDStore: { enable: false },
};

/** The addresses of the schemas; `fieldServer.ts` has their text. None fits OpenPAI's formats. */
const SCHEMA = {
    job: "https://jobc.dev/schemas/job.v1.schema.json",
    targets: "https://jobc.dev/schemas/targets.v1.schema.json",
    openpai: "",
};

/** The server for fields: started with the first job file. */
export class Fields implements vscode.Disposable {
    private client: LanguageClient | undefined;

    constructor(
        private readonly extension: vscode.ExtensionContext,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    /** Starts the server unless it runs or is not wanted. */
    async start(): Promise<void> {
        if (this.client !== undefined || !setting("yamlLanguageServer", true)) {
            return;
        }
        const module = this.extension.asAbsolutePath(join("dist", "field-server.js"));
        const client = new LanguageClient("jobc-fields", "jobc fields", { module, transport: TransportKind.ipc }, {
            documentSelector: [
                { language: YAML, scheme: "file" },
                { language: YAML, scheme: "untitled" },
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
        this.client = client;
        client.onRequest("custom/schema/request", (uri: string) => {
            const document = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri);
            return document === undefined ? "" : SCHEMA[kindOf(document)];
        });
        await client.start();
        await client.sendNotification("yaml/registerCustomSchemaRequest");
    }

    async stop(): Promise<void> {
        const client = this.client;
        this.client = undefined;
        await client?.dispose().catch(() => undefined);
    }

    dispose(): void {
        void this.stop();
    }
}
