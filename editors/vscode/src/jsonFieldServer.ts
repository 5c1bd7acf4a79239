// Completion and hover of fields in JSON, by the library that VS Code's own JSON support is made of; as for YAML, without
// findings. Runs as a process of its own.

import { createConnection, ProposedFeatures, TextDocuments, TextDocumentSyncKind } from "vscode-languageserver/node";
import { getLanguageService, type LanguageService } from "vscode-json-languageservice";
import { TextDocument } from "vscode-languageserver-textdocument";

import { schemaText } from "./schemaText";

const connection = createConnection(ProposedFeatures.all);
const documents = new TextDocuments(TextDocument);
/** One service for each schema, by the schema's address. */
const services = new Map<string, LanguageService>();

/** The service for a document; undefined where no schema fits it, as the client says. */
async function serviceFor(uri: string): Promise<LanguageService | undefined> {
    const schema = await connection.sendRequest<string>("custom/schema/request", uri);
    let service = services.get(schema);
    if (service === undefined && schema !== "") {
        service = getLanguageService({
            schemaRequestService: async (uri) => (await schemaText(uri)) ?? Promise.reject(new Error(`${uri} is not fetched`)),
        });
        service.configure({ validate: false, allowComments: true, schemas: [{ uri: schema, fileMatch: ["*"] }] });
        services.set(schema, service);
    }
    return service;
}

connection.onInitialize(() => ({
    capabilities: {
        textDocumentSync: TextDocumentSyncKind.Incremental,
        completionProvider: { triggerCharacters: ['"', ":"] },
        hoverProvider: true,
    },
}));
connection.onCompletion(async ({ textDocument, position }) => {
    const service = await serviceFor(textDocument.uri);
    const document = documents.get(textDocument.uri);
    return service && document ? await service.doComplete(document, position, service.parseJSONDocument(document)) : null;
});
connection.onHover(async ({ textDocument, position }) => {
    const service = await serviceFor(textDocument.uri);
    const document = documents.get(textDocument.uri);
    return service && document ? await service.doHover(document, position, service.parseJSONDocument(document)) : null;
});
documents.listen(connection);
connection.listen();
