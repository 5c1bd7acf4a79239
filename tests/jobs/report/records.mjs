// Records of jobs as supervisors write them.

const START = Date.parse("2026-11-21T13:31:53.250Z");
const MIB = 2 ** 20;

/** A moment, in milliseconds after the job was submitted. */
const at = (milliseconds) => new Date(START + Math.round(milliseconds)).toISOString();

const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}`;

const ORIGIN = {
    version: "0.1.0",
    command: ["/usr/local/bin/jobc", "run", "--set", "lr=0.1", "--set", "name=訓練 データ", "job.yaml"],
    working_directory: "/home/lena/projects/a-rather-long-name-of-a-directory/without-any-space-in-it/and-another-one",
    user: "lena",
    job_file: DIGEST,
    images: { main: { reference: "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime", digest: DIGEST }, ps: { reference: "host" } },
    host: {
        name: "node-3.cluster.example",
        system: "Debian GNU/Linux 12 (bookworm)",
        kernel: "Linux 6.12.8",
        architecture: "x86_64",
        processor: "AMD EPYC 9654 96-Core Processor",
        cpu_millis: 192_000,
        memory_bytes: 1536 * 1024 * MIB,
    },
};

const FILE = `version: 1
name: train
# 訓練 <script>alert(1)</script>
image: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
roles:
  train:
    instances: 2
    run: torchrun --nproc-per-node 8 ${"--an-option-with-a-long-value=".padEnd(200, "x")}
`;

/** A record of a job whose tasks are these. */
function record(id, state, tasks, more = {}) {
    const ended = tasks.map((task) => task.ended).filter(Boolean).sort().at(-1);
    return {
        version: 1, id, source: "/home/lena/job.yaml", target: "local", owner: 1000, state, submitted: at(0), started: at(1000), ended, attempt: 1, network: "job",
        claim: { cpu_millis: 6000, memory_bytes: 3072 * MIB, gpus: 0, disk_bytes: 0 }, tasks, ...more,
    };
}

function task(name, state, started, ended, code, more = {}) {
    return { task: name, state, attempt: 1, limits: { cpu_millis: 2000, memory_bytes: 1024 * MIB }, started: at(started), ended: at(ended), exit_code: code, ...more };
}

/** Samples of a task from its start to its end; `memory`, `cpus` and `gpu` are functions of the part of the time that is over. */
function samples(name, started, ended, { memory, cpus, gpu = () => [], attempt = 1, count = 60, more = {} }) {
    let used = 0;
    return Array.from({ length: count + 1 }, (_, number) => {
        const part = number / count;
        used += number === 0 ? 0 : cpus(part) * ((ended - started) / count) * 1000;
        const bytes = Math.round(memory(part));
        return {
            time: at(started + (ended - started) * part), task: name, attempt, cpu_usec: Math.round(used), memory: bytes, memory_peak: bytes, memory_limit_hits: 0,
            oom_kills: 0, read_bytes: Math.round(part * 900 * MIB), written_bytes: Math.round(part * part * 300 * MIB), pids: 7, gpu: gpu(part),
            ...(number === count ? { last: true, gpu: [] } : {}), ...more,
        };
    });
}

const line = (text, stream = "stdout", attempt = 1) => `2026-11-21T13:32:53.250123Z ${stream} F ${attempt} ${text}\n`;

/** One task that succeeded in a moment, without samples. */
function single() {
    const only = { ...task("main-0", "succeeded", 1000, 1040, 0), limits: {} };
    return {
        record: record("hello.1", "succeeded", [only], { end: { explanation: "succeeded: its task succeeded", exit_code: 0 } }),
        events: [{ time: at(0), event: "submitted", detail: { tasks: 1 } }],
        logs: { "main-0": line("hello") },
        origin: { ...ORIGIN, command: ["jobc", "run", "job.yaml"] }, file: FILE,
    };
}

/** A server, a worker that succeeded, and one that failed at its limit in its second attempt; nothing enforces the limit of CPUs. */
function failed() {
    const killed = task("worker-1", "failed", 32_000, 160_000, 137, {
        attempt: 2, reason: "memory limit 1 GiB reached", earlier: [{ attempt: 1, started: at(1000), ended: at(30_000), exit_code: 1 }],
    });
    const tasks = [task("ps-0", "stopped", 1000, 160_500, 143, { ready: at(4000) }), task("worker-0", "succeeded", 5000, 150_000, 0), killed]
        .map((task) => ({ ...task, unenforced: ["cpu_millis"] }));
    const wave = (part) => 1.1 + Math.sin(part * 20) * 0.6;
    return {
        record: record("train.7", "failed", tasks, {
            description: "trains 訓練模型 & <b>evaluates</b> it", notes: ["limits on `cpu` are not enforced: this user cannot create cgroups in `/sys/fs/cgroup/cpu`"],
            end: { explanation: "failed: `worker` reached min_failed 1 (worker-1: exit 137, memory limit 1 GiB reached)", exit_code: 1, task: "worker-1" },
        }),
        events: [
            { time: at(0), event: "submitted", detail: { tasks: 3 } },
            ...Array.from({ length: 40 }, (_, number) => ({ time: at(1000 * number), event: "started", task: "worker-0", attempt: 1, detail: { pid: number } })),
        ],
        samples: [
            ...samples("ps-0", 1000, 160_500, { memory: () => 40 * MIB, cpus: () => 0.02 }),
            ...samples("worker-0", 5000, 150_000, { memory: (part) => (200 + part * 300) * MIB, cpus: wave }),
            ...samples("worker-1", 1000, 30_000, { memory: (part) => part * 300 * MIB, cpus: wave, count: 20 }),
            ...samples("worker-1", 32_000, 160_000, { memory: (part) => part * 1024 * MIB, cpus: wave, attempt: 2 }),
        ],
        logs: {
            "ps-0": line("listening"), "worker-0": Array.from({ length: 60 }, (_, step) => line(`step ${step}: loss ${(1 / (step + 1)).toFixed(4)}`)).join(""),
            "worker-1": `${line("\u001b[32m訓練中\u001b[0m 10%|█ | 20%|██| ")}${line("x".repeat(3000), "stderr", 2)}${line("Killed", "stderr", 2)}${line("2 lines lost", "jobc", 0)}`,
        },
        origin: ORIGIN, file: FILE,
    };
}

/** Names and texts in Chinese, Japanese, Korean, Arabic and emoji. */
function foreign() {
    const made = failed();
    made.record.id = "train.8";
    made.record.description = "中文描述：训练一个模型、然后评估。日本語の説明。한국어 설명. وصف 🚀👩‍🔬";
    made.record.source = "/home/李娜/專案/訓練/工作.yaml";
    made.logs["worker-1"] = ["損失は下がった", "수렴하지 않음", "🚀🚀🚀 完了", "خطأ", "ไม่พบไฟล์"].map((text) => line(text.repeat(20), "stderr", 2)).join("");
    made.file = FILE.replaceAll("train", "訓練");
    return made;
}

/** Eight tasks with a GPU each. */
function gpus() {
    const names = Array.from({ length: 8 }, (_, index) => `GPU-5a5ba042-1234-5678-9abc-00000000000${index}`);
    const tasks = names.map((name, index) => task(`train-${index}`, "succeeded", 2000, 3_600_000 * 5, 0, { gpus: [name], limits: { memory_bytes: 64 * 1024 * MIB } }));
    const busy = (index) => (part) => [{ gpu: names[index], memory: Math.round((20 + 50 * Math.min(1, part * 4)) * 1024 * MIB), utilization: Math.round(60 + 35 * Math.sin(part * 30 + index)) }];
    return {
        record: record("llm.3", "succeeded", tasks, { end: { explanation: "succeeded: all 8 tasks succeeded", exit_code: 0 }, claim: { cpu_millis: 64_000, memory_bytes: 512 * 1024 * MIB, gpus: 8, disk_bytes: 0 } }),
        samples: names.flatMap((_, index) => samples(`train-${index}`, 2000, 3_600_000 * 5, { memory: (part) => (30 + 10 * part) * 1024 * MIB, cpus: () => 7.5 + index / 10, gpu: busy(index), count: 200 })),
        logs: Object.fromEntries(tasks.map(({ task }) => [task, line("done")])),
        origin: { ...ORIGIN, host: { ...ORIGIN.host, gpu_driver: "550.54.15", gpus: names.map((name, index) => ({ name, number: String(index), model: "NVIDIA H200", memory_bytes: 141 * 1024 * MIB })) } },
        file: FILE,
    };
}

/** Many workers; some fail, and some were counted by their processes. */
function many(count) {
    const state = (index) => (index % 97 === 5 ? "failed" : index % 31 === 3 ? "stopped" : "succeeded");
    const end = (index) => 40_000 + (index % 50) * 900 + index * (60_000 / count);
    const tasks = Array.from({ length: count }, (_, index) => task(`worker-${index}`, state(index), 1000 + index * (30_000 / count), end(index), state(index) === "succeeded" ? 0 : state(index) === "failed" ? 1 : 143));
    const times = Math.min(60, Math.ceil(60_000 / count));
    return {
        record: record(`sweep-${count}.1`, "failed", tasks, { end: { explanation: "failed: `worker` reached min_failed 1 (worker-5: exit 1)", exit_code: 1, task: "worker-5" } }),
        events: tasks.map(({ task, started }) => ({ time: started, event: "started", task, attempt: 1, detail: { pid: 1 } })),
        samples: tasks.flatMap(({ task }, index) => samples(task, 1000 + index * (30_000 / count), end(index), {
            memory: (part) => (100 + (index % 40) * 5 + part * 80) * MIB, cpus: (part) => 0.5 + (index % 7) / 10 + part / 4, count: times, more: { from_processes: true },
        })),
        logs: Object.fromEntries(tasks.map(({ task }) => [task, line("a line of output that is neither short nor long, printed again and again").repeat(50)])),
        origin: ORIGIN, file: FILE,
    };
}

/** Groups of a matrix that report a metric at each step, one of them NaN at its end, and another one of many magnitudes. */
function curves() {
    const rates = [0.01, 0.1, 1, 10];
    const tasks = rates.map((_, number) => task(`train-m${number}-0`, "succeeded", 1000, 3600, 0));
    const loss = (rate, step) => (rate === 10 && step > 60 ? "nan" : (2.3 * Math.exp((-step * rate) / 20) + 0.1 + Math.sin(step) / 30).toFixed(4));
    const log = (rate) => Array.from({ length: 100 }, (_, step) => line(`step ${step + 1}/100: loss=${loss(rate, step)} gradient=${(10 ** (-step / 20)).toExponential(3)}`)).join("");
    const role = (rate, number) => ({
        name: `train-m${number}`, matrix: { role: "train", number, values: { rate, model: "訓練" } }, instances: 1, image: "main", command: { script: { shell: ["sh", "-c"], script: "true" } },
        resources: {}, completion: { min_failed: 1 }, retry: { max: 0, scope: "task" }, grace_period_seconds: 30,
        metrics: { loss: { source: { log: "loss=([0-9.]+|nan)" }, better: "lower" }, gradient: { source: { log: "gradient=([0-9.e+-]+)" } } },
        security: { read_only_root: false, privileged: false },
    });
    const metric = (name, value) => ({ name, value, task: "train-m0-0", attempt: 1, time: at(3000) });
    return {
        record: record("curves.1", "succeeded", tasks, {
            end: { explanation: "succeeded: all 4 tasks succeeded", exit_code: 0 }, metrics: [metric("loss", 0.5), metric("gradient", 1e-5)],
            combinations: Object.fromEntries(rates.map((rate, number) => [`train-m${number}`, { role: "train", values: { rate, model: "訓練" } }])),
        }),
        samples: tasks.flatMap(({ task }, number) => samples(task, 1200, 3600, { memory: () => (30 + number) * MIB, cpus: () => 0.4, count: 2 })),
        logs: Object.fromEntries(tasks.map(({ task }, number) => [task, log(rates[number])])),
        plan: {
            name: "curves", target: { name: "local", built_in: true, settings: { backends: ["oci"] } }, images: { main: { source: { kind: "host" }, reference: "host", declared_at: "/image" } },
            roles: rates.map(role), stages: [rates.map((_, number) => `train-m${number}`)], gang: "auto", network: "auto",
            totals: { instances: 4, cpu_millis: 0, memory_bytes: 0, gpus: 0, gpu_slices: 0 },
        },
        origin: ORIGIN, file: FILE,
    };
}

/** A job that could not start. */
function refused() {
    const tasks = [{ task: "main-0", state: "stopped", attempt: 0, limits: { cpu_millis: 64_000 } }];
    return { record: { ...record("large.1", "failed", tasks, { end: { explanation: "could not start: the job needs 64 CPUs, this host has 2", exit_code: 125 } }), started: undefined, ended: at(300) }, file: FILE };
}

/** Tasks that ran without a single sample. */
function unmeasured() {
    const tasks = ["a-0", "b-0", "b-1"].map((name) => task(name, "succeeded", 1000, 90_000, 0));
    return { record: record("old.1", "succeeded", tasks, { end: { explanation: "succeeded: all 3 tasks succeeded", exit_code: 0 } }) };
}

/** A sweep of 24 combinations with two metrics: two jobs failed, one was removed, one runs, one reported NaN. */
export function sweep() {
    const combinations = [];
    const jobs = [];
    for (const [number, [rate, model, seed]] of [1e-3, 0.01, 0.1, 1].flatMap((rate) => ["resnet18", "訓練模型-large-with-a-long-name", "<b>vit</b>"].flatMap((model) => [1, 2].map((seed) => [rate, model, seed]))).entries()) {
        const job = `tune-${number}.1`;
        combinations.push({ number, values: { rate, model, seed }, written: { rate: rate.toExponential(0) }, job });
        const state = { 4: "failed", 9: "failed", 23: "running" }[number] ?? "succeeded";
        const only = { ...task("train-0", state, 1000, 40_000 + number * 900, state === "failed" ? 1 : 0), limits: {} };
        const value = (name, value, better) => ({ name, value, better, task: "train-0", attempt: 1, time: at(30_000) });
        const loss = number === 5 ? "nan" : Math.abs(Math.log10(rate) + 2) * 0.2 + model.length / 100 + seed * 0.03;
        const end = { succeeded: { explanation: "succeeded: its task succeeded", exit_code: 0 }, failed: { explanation: "failed: train-0: exit 1", exit_code: 1, task: "train-0" } }[state];
        if (number !== 2) {
            const metrics = [value("val_loss", loss, "lower"), value("images_per_second", 4000 - number * 31.7, "higher")];
            jobs.push({ record: record(job, state, [only], { sweep: "tune.1", metrics, ...(end ? { end } : { ended: undefined }) }), logs: { "train-0": line("<script>alert(1)</script> 訓練 failed", "stderr") } });
        }
    }
    return { id: "tune.1", jobs, file: { version: 1, id: "tune.1", source: "/home/lena/job.yaml", submitted: at(0), combinations } };
}

export const RECORDS = { single, curves, failed, foreign, gpus, refused, unmeasured, hundred: () => many(100), tenThousand: () => many(10_000) };
