// Where a job begins: a template, an empty job, or a file of another tool.

import { useState } from "preact/hooks";

import { post } from "../api";
import { say } from "../dialogs";
import type { Checked, TemplateRow } from "../types";
import { useDocument } from "../use";
import { reasonOf } from "./compile";

const EMPTY = `version: 1
name: my-job
image: host
roles:
  main:
    resources: {cpu: 1, memory: 512MiB}
    run: echo "it runs"
`;
const MAX_FILE = 2_000_000;

const GROUPS = ["Examples that run on this host as they are", "Templates", "More examples"];

interface Choice {
    name: string;
    description: string;
    group: string;
}

interface Props {
    problem: string;
    onTemplate(name: string): void;
    onText(text: string, notes?: string[]): void;
}

/** Whether a text is a job file of ours already. */
const isJob = (text: string): boolean => /^\s*version:\s*1\s*$/m.test(text) && /^(roles|uses|name):/m.test(text);

export function Start({ problem, onTemplate, onText }: Props) {
    const { data, problem: failed } = useDocument<{ templates: TemplateRow[] }>("/templates");
    const choices = (data?.templates ?? []).map(({ name, description, kind }): Choice => ({ name, description, group: (kind === "template" ? GROUPS[1] : name.startsWith("local-") ? GROUPS[0] : GROUPS[2]) as string }));
    const [wanted, setWanted] = useState("");
    const [isOver, setOver] = useState(false);
    const take = async (file: File | undefined): Promise<void> => {
        if (file === undefined) {
            return;
        }
        if (file.size > MAX_FILE) {
            say(`${file.name} is too large for a file of a job`, true);
            return;
        }
        const text = await file.text();
        if (isJob(text)) {
            onText(text);
            return;
        }
        try {
            const { text: job, diagnostics = [] } = await post<{ text: string } & Partial<Checked>>("/import", { text });
            onText(job, diagnostics.map(({ start, message }) => `${file.name}, line ${start?.line ?? 1}: ${message}`));
            say(`${file.name} is now a job file; read it before you submit it`);
        } catch (error) {
            say(`${file.name}: ${reasonOf(error)}`, true);
        }
    };
    const matching = (group: string): Choice[] => choices.filter((it) => it.group === group && `${it.name} ${it.description}`.toLowerCase().includes(wanted.toLowerCase()));
    const list = (group: string) => {
        const rows = matching(group);
        return rows.length > 0 && (
            <section key={group}>
                <h2>{group}</h2>
                <ul class="choices">
                    {rows.map(({ name, description }) => <li key={name}><button type="button" onClick={() => onTemplate(name)}><strong>{name}</strong><span>{description}</span></button></li>)}
                </ul>
            </section>
        );
    };
    return (
        <div class="page">
            <div class="top"><h1 tabIndex={-1}>New job</h1></div>
            {problem && <p class="banner problem">{problem}</p>}
            <div class="starts">
                <button type="button" class="start" onClick={() => onText(EMPTY)}><strong>Empty job</strong><span>one role that runs a command on the host</span></button>
                <label
                    class={isOver ? "start over" : "start"}
                    onDragOver={(event) => { event.preventDefault(); setOver(true); }}
                    onDragLeave={() => setOver(false)}
                    onDrop={(event) => {
                        event.preventDefault();
                        setOver(false);
                        void take(event.dataTransfer?.files[0]);
                    }}
                >
                    <strong>Open or import a file</strong>
                    <span>a job file, or one of another tool: an sbatch script, a compose file, a Kubernetes manifest. Drop it here or choose it.</span>
                    <input type="file" class="hidden" onChange={({ currentTarget }) => void take(currentTarget.files?.[0])} />
                </label>
            </div>
            <p><input type="search" aria-label="Search templates" placeholder="Search templates" value={wanted} onInput={({ currentTarget }) => setWanted(currentTarget.value)} /></p>
            {failed && <p class="banner problem">{failed.message}</p>}
            {GROUPS.map(list)}
            {data && GROUPS.every((group) => matching(group).length === 0) && <p class="quiet">No template matches.</p>}
        </div>
    );
}
