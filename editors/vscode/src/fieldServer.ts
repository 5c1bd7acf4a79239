// The yaml-language-server, cut down to completion and hover, with jobc's schemas built in. Runs as a process of its own.

import { promises } from "node:fs";
import { basename, join } from "node:path";

import { createConnection, ProposedFeatures, type InitializeParams, type InitializeResult } from "vscode-languageserver/node";
import { TelemetryImpl } from "yaml-language-server/out/server/src/languageserver/telemetry";
import { schemaRequestHandler, workspaceContext } from "yaml-language-server/out/server/src/languageservice/services/schemaRequestHandler";
import { setupl10nBundle } from "yaml-language-server/out/server/src/nodeTranslationSetup";
import { YAMLServerInit } from "yaml-language-server/out/server/src/yamlServerInit";
import { SettingsState } from "yaml-language-server/out/server/src/yamlSettings";

/** What it offers is what this leaves of it: symbols, folding, fixes and commands are `jobc lsp`'s. */
class FieldServer extends YAMLServerInit {
    override async connectionInitialized(parameters: InitializeParams): Promise<InitializeResult> {
        const { serverInfo, capabilities } = await super.connectionInitialized(parameters);
        const { textDocumentSync, completionProvider, hoverProvider, workspace } = capabilities;
        const kept = Object.entries({ textDocumentSync, completionProvider, hoverProvider, workspace });
        return {
            ...(serverInfo && { serverInfo }),
            capabilities: Object.fromEntries(kept.filter(([, value]) => value !== undefined)),
        };
    }
}

const SCHEMAS = ["job.v1.schema.json", "targets.v1.schema.json"];

/** The text of a schema: ours from this package, by whatever address a modeline names it, so that no network is needed. */
const schemaText = async (uri: string): Promise<string> => {
    const name = basename(uri);
    if (SCHEMAS.includes(name)) {
        return await promises.readFile(join(__dirname, "schemas", name), "utf8");
    }
    const files = { readFile: (path: string) => promises.readFile(path, "utf8") };
    return await schemaRequestHandler(connection, uri, state.workspaceFolders, state.workspaceRoot, false, files, false);
};

const connection = createConnection(ProposedFeatures.all);
// What would be printed goes to the editor's output: there is no other place.
console.log = connection.console.log.bind(connection.console);
console.error = connection.console.error.bind(connection.console);

const state = new SettingsState();
new FieldServer(connection, state, workspaceContext, schemaText, new TelemetryImpl(connection), setupl10nBundle).start();
