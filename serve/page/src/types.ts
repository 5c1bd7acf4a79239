// The documents of the API: those of `jobc … --format json`, as far as the page reads them.

export interface Session {
    user: string;
    access: "read" | "submit";
    version: string;
}

export interface End {
    explanation: string;
    exit_code: number;
    task?: string | null;
    verdict?: Judgment | null;
}

/** What kind of end it was, what says so, and what to do next. */
export interface Judgment {
    kind: string;
    evidence?: string[];
    next?: string | null;
}

export interface Job {
    id: string;
    name: string;
    job: string;
    state: string;
    reason?: string | null;
    message?: string | null;
    user?: string | null;
    submitted: string | null;
    started: string | null;
    ended: string | null;
    is_complete: boolean;
    end: End | null;
    description: string | null;
    source: string | null;
    sweep: string | null;
    handle?: string | null;
    target: string | null;
    tasks: Record<string, number>;
    gpus?: number;
}

export interface JobList {
    jobs: Job[];
    next: string | null;
    total?: number;
    unreachable?: { place: string; message: string }[];
}

export interface Attempt {
    attempt: number;
    started?: string | null;
    ended?: string | null;
    exit_code?: number | null;
    signal?: string | null;
    reason?: string | null;
    verdict?: Judgment | null;
}

export interface Task extends Attempt {
    task: string;
    state: string;
    node?: string | null;
    address?: string | null;
    gpus?: string[];
    ports?: Record<string, number>;
    ready?: string | null;
    oom_kills?: number;
    earlier?: Attempt[];
}

export interface Role {
    name: string;
    instances: number;
    command?: { script?: { script: string }; exec?: string[] } & Record<string, unknown>;
    resources?: { cpu_millis?: number; memory_bytes?: number; gpu?: unknown; gpus?: unknown } & Record<string, unknown>;
    needs?: { role: string; state: string }[];
    image?: string;
}

export interface Plan {
    name: string;
    params?: Record<string, unknown>;
    images?: Record<string, { reference?: string }>;
    volumes?: Record<string, { kind: string; source?: Record<string, unknown> }>;
    roles?: Role[];
    totals?: Totals;
}

export interface Totals {
    instances: number;
    cpu_millis?: number;
    memory_bytes?: number;
    gpus?: number;
}

export interface JobDetails extends Omit<Job, "tasks"> {
    attempt: number;
    reasons: string[];
    notes: string[];
    tasks: Task[];
    plan?: Plan;
    claim?: { gpus?: number; cpu_millis?: number; memory_bytes?: number };
    metrics?: { name: string; value: number | string | null; better?: string | null; task?: string }[];
    directory?: string;
}

export interface Reason {
    text: string;
}

export interface LogLine {
    time: string;
    task: string;
    attempt: number;
    stream: string;
    text: string;
    ends: boolean;
}

export interface JobEvent {
    time: string;
    event: string;
    task?: string | null;
    attempt?: number | null;
    is_warning?: boolean;
    message?: string;
    count?: number | null;
}

export interface Sample {
    time: string;
    task: string;
    cpu_usec?: number | null;
    cpu_millis?: number | null;
    memory?: number | null;
    memory_limit?: number | null;
    read_bytes?: number | null;
    written_bytes?: number | null;
    gpu?: { gpu?: string; memory?: number | null; utilization?: number | null }[];
}

export interface Span {
    line: number;
    column: number;
    offset: number;
}

export interface Diagnostic {
    code: string;
    severity: "error" | "warning" | "note";
    message: string;
    file: string | null;
    start: Span | null;
    end: Span | null;
    notes: string[];
}

export interface Checked {
    errors: number;
    warnings: number;
    diagnostics: Diagnostic[];
}

export interface Place {
    name: string;
    backends: string[];
    description: string | null;
    kind: string;
    can_submit: boolean;
    why?: string | null;
}

export interface Difference {
    fields: { field: string; roles: string[]; jobs: { job: string; target: string }[]; old?: unknown; new?: unknown }[];
    files: { job: string; target: string; file: string; state: string; changes?: unknown[] }[];
}


export interface Param {
    name: string;
    type?: string;
    default?: unknown;
    description?: string;
    /** Its type and bounds in words. */
    rule?: string;
    choices?: unknown[];
    required?: boolean;
}

/** What a job can begin with. */
export interface TemplateRow {
    name: string;
    description: string;
    kind: "example" | "template";
}

/** A template of the library, or an example: a job with the files beside it. */
export interface Template {
    name: string;
    text: string;
    files: { path: string; text: string }[];
    params: Param[];
}

export interface SweepRow extends Partial<Job> {
    id: string;
    state: string;
    number: number;
    values: Record<string, string | number | boolean>;
    metrics: Record<string, number | string | null>;
}

export interface OutputFile {
    path: string;
    size: number;
    directory: boolean;
}

export interface OutputList {
    files: OutputFile[];
    truncated: boolean;
}
