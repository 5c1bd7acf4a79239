// The yaml-language-server, cut down to completion and hover, with jobc's schemas built in. Runs as a process of its own.

import { readFile } from "node:fs/promises";

import { createConnection, ProposedFeatures, type InitializeParams, type InitializeResult } from "vscode-languageserver/node";
import { TelemetryImpl } from "yaml-language-server/out/server/src/languageserver/telemetry";
import { schemaRequestHandler, workspaceContext } from "yaml-language-server/out/server/src/languageservice/services/schemaRequestHandler";
import { setupl10nBundle } from "yaml-language-server/out/server/src/nodeTranslationSetup";
import { YAMLServerInit } from "yaml-language-server/out/server/src/yamlServerInit";
import { SettingsState } from "yaml-language-server/out/server/src/yamlSettings";

import { schemaText } from "./schemaText";

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

/** The text of a schema: ours, else what the address leads to. */
const anySchemaText = async (uri: string): Promise<string> => {
    const files = { readFile: (path: string) => readFile(path, "utf8") };
    const other = (): Promise<string> =>
        schemaRequestHandler(connection, uri, state.workspaceFolders, state.workspaceRoot, false, files, false);
    return (await schemaText(uri)) ?? (await other());
};

const connection = createConnection(ProposedFeatures.all);
// What would be printed goes to the editor's output: there is no other place.
console.log = connection.console.log.bind(connection.console);
console.error = connection.console.error.bind(connection.console);

const state = new SettingsState();
new FieldServer(connection, state, workspaceContext, anySchemaText, new TelemetryImpl(connection), setupl10nBundle).start();
