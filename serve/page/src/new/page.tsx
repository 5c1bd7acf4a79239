// A new job: where it begins, then the place where it is written.

import { useEffect, useState } from "preact/hooks";

import { Problem, get, path } from "../api";
import { go, useRoute } from "../route";
import type { Template } from "../types";
import { useTitle } from "../use";
import { reasonOf } from "./compile";
import { EMPTY, isKept, restored, type Draft } from "./draft";
import { Start } from "./start";
import { upload } from "./upload";
import { Write } from "./write";

export function NewPage({ again }: { again?: string }) {
    useTitle(again === undefined ? "New job" : `${again} again`);
    const { query } = useRoute();
    const template = query.get("template");
    const key = `jobc draft ${again ?? template ?? ""}`;
    const [draft, setDraft] = useState<Draft | null>(isKept(key) ? restored(key) : null);
    const [problem, setProblem] = useState("");
    const begin = (next: Draft): void => {
        sessionStorage.setItem(key, JSON.stringify(next));
        setDraft(next);
    };
    const open = async (name: string): Promise<void> => {
        try {
            const { text, files } = await get<Template>(path("templates", name));
            const given = files.map((file) => ({ path: file.path, blob: new Blob([file.text]) }));
            const sent = given.length > 0 ? await upload([], given, () => undefined) : { id: "", files: [] };
            begin({ ...EMPTY, text, template: name, upload: sent.id, files: sent.files });
        } catch (error) {
            setProblem(reasonOf(error));
        }
    };
    useEffect(() => {
        if (draft !== null) {
            return;
        }
        if (again !== undefined) {
            get<{ text: string }>(path("jobs", again, "source")).then(({ text }) => begin({ ...EMPTY, text }), (error: Problem) => setProblem(error.message));
        } else if (template !== null) {
            void open(template);
        }
    }, []);
    const startOver = (): void => {
        sessionStorage.removeItem(key);
        setDraft(null);
        if (template !== null) {
            go("/new", true);
        }
    };
    if (draft === null) {
        if (again !== undefined || (template !== null && problem === "")) {
            return (
                <div class="page">
                    <h1 tabIndex={-1}>{again === undefined ? "New job" : `Run ${again} again`}</h1>
                    {problem === "" ? <p class="quiet loading">Loading…</p> : <p class="banner problem">{problem}</p>}
                </div>
            );
        }
        return <Start problem={problem} onTemplate={(name) => void open(name)} onText={(text, notes = []) => begin({ ...EMPTY, text, notes })} />;
    }
    return <Write key={draft.template + String(draft.upload)} draft={draft} storage={key} again={again} startOver={startOver} />;
}
