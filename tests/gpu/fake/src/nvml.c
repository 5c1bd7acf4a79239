/* A library that answers as NVML does, out of a file; see nvml.rs. Only what is asked is here: a program that asks for more
   learns that the function is not there, as with an old driver. The shapes are those of NVIDIA's nvml.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int result;
enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; } pci_info;
typedef struct { unsigned long long total, free, used; } memory_1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned pid; unsigned long long memory; unsigned gi, ci; } process;

static char answers[4096];

static void find_answers(void) {
    const char *set = getenv("FAKE_NVML");
    Dl_info own;
    if (set != NULL) {
        snprintf(answers, sizeof answers, "%s", set);
    } else if (dladdr((void *)find_answers, &own) != 0) {
        snprintf(answers, sizeof answers, "%s", own.dli_fname);
        char *slash = strrchr(answers, '/');
        snprintf(slash == NULL ? answers : slash + 1, 32, "nvml.answers");
    }
}

/* The answer to a question; `!N` is the error N, `~` hangs, `^` crashes, none at all is "not supported". */
static result answer(const char *question, char *out, size_t size) {
    FILE *file = fopen(answers, "r");
    if (file == NULL) return NOT_FOUND;
    char line[4096];
    size_t length = strlen(question);
    result result = NOT_SUPPORTED;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, question, length) != 0 || line[length] != '=') continue;
        line[strcspn(line, "\n")] = 0;
        const char *text = line + length + 1;
        if (*text == '~') for (;;) pause();
        if (*text == '^') abort();
        if (*text == '!') {
            result = atoi(text + 1);
        } else {
            snprintf(out, size, "%s", text);
            result = OK;
        }
    }
    fclose(file);
    return result;
}

/* A handle is the number of the card and one, and above it that of the MIG instance and one. */
#define GPU(device) ((int)((size_t)(device) & 0xff) - 1)
#define MIG(device) ((int)((size_t)(device) >> 8) - 1)
#define HANDLE(gpu, mig) ((void *)(size_t)(((gpu) + 1) | ((mig) + 1) << 8))

static result ask(void *device, const char *what, char *out, size_t size) {
    char question[128];
    if (GPU(device) < 0) return INVALID;
    if (MIG(device) >= 0) snprintf(question, sizeof question, "gpu.%d.mig.%d.%s", GPU(device), MIG(device), what);
    else snprintf(question, sizeof question, "gpu.%d.%s", GPU(device), what);
    return answer(question, out, size);
}

static result ask_number(void *device, const char *what, unsigned *out) {
    char text[64];
    result result = ask(device, what, text, sizeof text);
    if (result == OK) *out = (unsigned)strtoul(text, NULL, 10);
    return result;
}

static result ask_two(void *device, const char *what, unsigned long long *one, unsigned long long *two) {
    char text[128];
    result result = ask(device, what, text, sizeof text);
    if (result == OK && sscanf(text, "%llu %llu", one, two) != 2) result = 999;
    return result;
}

static void at_bus(pci_info *info, unsigned bus) {
    memset(info, 0, sizeof *info);
    info->bus = bus;
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", bus & 0xff);
    snprintf(info->text, sizeof info->text, "00000000:%02X:00.0", bus & 0xff);
}

result nvmlInit_v2(void) {
    char text[8];
    find_answers();
    result result = answer("init", text, sizeof text);
    return result == NOT_SUPPORTED ? OK : result;
}
result nvmlShutdown(void) { return OK; }
result nvmlSystemGetDriverVersion(char *out, unsigned size) { return answer("driver", out, size); }
static result number(const char *question, unsigned *out) {
    char text[64];
    result result = answer(question, text, sizeof text);
    if (result == OK) *out = (unsigned)strtoul(text, NULL, 10);
    return result;
}
result nvmlSystemGetCudaDriverVersion_v2(int *out) { return number("cuda", (unsigned *)out); }
result nvmlDeviceGetCount_v2(unsigned *out) { return number("count", out); }
result nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    char text[64];
    *out = HANDLE(index, -1);
    result result = ask(*out, "handle", text, sizeof text);
    return result == NOT_SUPPORTED ? OK : result;
}
result nvmlDeviceGetName(void *device, char *out, unsigned size) { return ask(device, "name", out, size); }
result nvmlDeviceGetUUID(void *device, char *out, unsigned size) { return ask(device, "uuid", out, size); }
result nvmlDeviceGetMinorNumber(void *device, unsigned *out) { return ask_number(device, "minor", out); }
result nvmlDeviceGetBrand(void *device, unsigned *out) { return ask_number(device, "brand", out); }
result nvmlDeviceGetPciInfo_v3(void *device, pci_info *out) {
    unsigned bus = 0;
    result result = ask_number(device, "bus", &bus);
    if (result == OK) at_bus(out, bus);
    return result;
}
result nvmlDeviceGetMemoryInfo(void *device, memory_1 *out) {
    result result = ask_two(device, "memory", &out->total, &out->used);
    if (result == OK) out->free = out->total - out->used;
    return result;
}
result nvmlDeviceGetMemoryInfo_v2(void *device, memory_2 *out) {
    char text[8];
    result result = ask(device, "memory_2", text, sizeof text);
    if (result != NOT_SUPPORTED) return result;
    result = ask_two(device, "memory", &out->total, &out->used);
    out->reserved = 0;
    if (result == OK) out->free = out->total - out->used;
    return result;
}
result nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    unsigned long long one = 0, two = 0;
    result result = ask_two(device, "compute", &one, &two);
    if (result == OK) *major = (int)one, *minor = (int)two;
    return result;
}
result nvmlDeviceGetUtilizationRates(void *device, utilization *out) {
    unsigned long long one = 0, two = 0;
    result result = ask_two(device, "utilization", &one, &two);
    if (result == OK) out->gpu = (unsigned)one, out->memory = (unsigned)two;
    return result;
}
result nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *out) {
    return sensor == 0 ? ask_number(device, "temperature", out) : INVALID;
}
result nvmlDeviceGetFanSpeed_v2(void *device, unsigned fan, unsigned *out) {
    return fan == 0 ? ask_number(device, "fan", out) : INVALID;
}
result nvmlDeviceGetPowerUsage(void *device, unsigned *out) { return ask_number(device, "power", out); }
/* Millijoules so far and milliwatts from then on, by the clock that other programs see too. */
result nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out) {
    unsigned long long from = 0, power = 0;
    struct timespec now;
    result result = ask_two(device, "energy", &from, &power);
    clock_gettime(CLOCK_MONOTONIC, &now);
    *out = from + power * (unsigned long long)now.tv_sec + power * (unsigned long long)now.tv_nsec / 1000000000;
    return result;
}
result nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *out) { return ask_number(device, "power_limit", out); }
result nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *out) {
    char what[16];
    snprintf(what, sizeof what, "clock.%u", type);
    return ask_number(device, what, out);
}
result nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending) {
    result result = ask_number(device, "ecc", current);
    *pending = *current;
    return result;
}
/* Of the errors only those that were not corrected (1) since the driver was loaded (0). */
result nvmlDeviceGetTotalEccErrors(void *device, unsigned type, unsigned counter, unsigned long long *out) {
    unsigned errors = 0;
    if (type != 1 || counter != 0) return INVALID;
    result result = ask_number(device, "ecc_errors", &errors);
    *out = errors;
    return result;
}
/* Only the slowdowns that are not normal work; the numbers are NVIDIA's. */
result nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out) {
    unsigned reasons = 0;
    result result = ask_number(device, "throttle", &reasons);
    *out = reasons;
    return result;
}
/* Of the fields only the four counters of errors of all links, as one sum in the first. */
typedef struct { unsigned field, scope; long long time, latency; unsigned type; result answer; union { double d; unsigned long long n; } value; } field;
result nvmlDeviceGetFieldValues(void *device, int count, field *fields) {
    for (int index = 0; index < count; index++) {
        unsigned errors = 0;
        fields[index].answer = index == 0 ? ask_number(device, "link_errors", &errors) : NOT_SUPPORTED;
        fields[index].type = 3, fields[index].value.n = errors;
    }
    return OK;
}
/* Errors are lines `gpu.N.event.M=TYPE NUMBER`, M from 0, which a set reads one after the other. */
typedef struct { void *device; unsigned long long types; unsigned next; } event_set;
typedef struct { void *device; unsigned long long type, data; unsigned gi, ci; } event;
result nvmlEventSetCreate(event_set **out) { return (*out = calloc(1, sizeof **out)) != NULL ? OK : 999; }
result nvmlEventSetFree(event_set *set) { free(set); return OK; }
result nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *out) {
    unsigned types = 0;
    result result = ask_number(device, "event_types", &types);
    *out = types;
    return result;
}
result nvmlDeviceRegisterEvents(void *device, unsigned long long types, event_set *set) {
    set->device = device, set->types = types;
    return OK;
}
result nvmlEventSetWait_v2(event_set *set, event *out, unsigned timeout) {
    char what[32];
    unsigned long long type = 0, data = 0;
    (void)timeout;
    snprintf(what, sizeof what, "event.%u", set->next);
    result result = ask_two(set->device, what, &type, &data);
    if (result == NOT_SUPPORTED) return 10;
    set->next++;
    if (result == OK && (type & set->types) == 0) return 10;
    *out = (event){.device = set->device, .type = type, .data = data, .gi = ~0U, .ci = ~0U};
    return result;
}
result nvmlDeviceGetComputeMode(void *device, unsigned *out) { return ask_number(device, "compute_mode", out); }
result nvmlDeviceGetPersistenceMode(void *device, unsigned *out) { return ask_number(device, "persistence", out); }
result nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    result result = ask_number(device, "mig", current);
    *pending = *current;
    return result;
}
result nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *out) {
    (void)device;
    *out = 7;
    return OK;
}
result nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **out) {
    char text[128];
    *out = HANDLE(GPU(device), (int)index);
    return ask(*out, "uuid", text, sizeof text) == OK ? OK : NOT_FOUND;
}
result nvmlDeviceGetGpuInstanceId(void *device, unsigned *out) { return ask_number(device, "gi", out); }
result nvmlDeviceGetComputeInstanceId(void *device, unsigned *out) { return ask_number(device, "ci", out); }

/* The length of a process's file in /proc, with words that end in 0. */
static size_t read_process(const char *pid, const char *file, char *out, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, file);
    FILE *stream = fopen(path, "r");
    size_t length = stream == NULL ? 0 : fread(out, 1, size - 1, stream);
    if (stream != NULL) fclose(stream);
    out[length] = 0;
    return length;
}

/* The value of a variable of a process; NULL without it. */
static const char *variable(const char *pid, const char *name, char *out, size_t size) {
    size_t length = read_process(pid, "environ", out, size), known = strlen(name);
    for (char *word = out; word < out + length; word += strlen(word) + 1)
        if (strncmp(word, name, known) == 0 && word[known] == '=') return word + known + 1;
    return NULL;
}

/* The MPS server of a card; 0 without one. */
static unsigned mps_server(void *device) {
    char uuid[128], text[32768];
    unsigned server = 0;
    DIR *all = ask(device, "uuid", uuid, sizeof uuid) == OK ? opendir("/proc") : NULL;
    for (struct dirent *entry; all != NULL && server == 0 && (entry = readdir(all)) != NULL;) {
        unsigned pid = (unsigned)strtoul(entry->d_name, NULL, 10);
        if (pid == 0 || read_process(entry->d_name, "cmdline", text, sizeof text) == 0) continue;
        const char *name = strrchr(text, '/');
        if (strcmp(name == NULL ? text : name + 1, "nvidia-cuda-mps-server") != 0) continue;
        const char *cards = variable(entry->d_name, "CUDA_VISIBLE_DEVICES", text, sizeof text);
        if (cards != NULL && strstr(cards, uuid) != NULL) server = pid;
    }
    if (all != NULL) closedir(all);
    return server;
}

/* As seen on an H200 with driver 580: in place of the processes that an MPS server serves, NVML reports the server, with
   their memory. */
static unsigned served(void *device, process *all, unsigned count) {
    unsigned server = mps_server(device), kept = 0;
    unsigned long long bytes = 0;
    for (unsigned index = 0; server != 0 && index < count; index++) {
        char pid[16], text[32768];
        snprintf(pid, sizeof pid, "%u", all[index].pid);
        if (variable(pid, "CUDA_MPS_PIPE_DIRECTORY", text, sizeof text) != NULL) bytes += all[index].memory;
        else all[kept++] = all[index];
    }
    if (server == 0) return count;
    if (kept < count) all[kept++] = (process){.pid = server, .memory = bytes, .gi = ~0U, .ci = ~0U};
    return kept;
}

/* `pid:bytes pid:bytes`, of a MIG instance `pid:bytes:gi:ci`; no bytes where the driver does not tell. */
static result processes(void *device, const char *what, unsigned *count, process *out) {
    char text[4096];
    result result = ask(device, what, text, sizeof text);
    if (result != OK) return result;
    process all[64];
    unsigned there = 0, room = *count;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL && there < 64; word = strtok_r(NULL, " ", &rest)) {
        process *one = &all[there++];
        one->gi = one->ci = ~0U;
        one->memory = ~0ULL;
        sscanf(word, "%u:%llu:%u:%u", &one->pid, &one->memory, &one->gi, &one->ci);
    }
    there = served(device, all, there);
    if (out != NULL) memcpy(out, all, (there < room ? there : room) * sizeof *out);
    *count = there;
    return there > room || (out == NULL && there > 0) ? TOO_SMALL : OK;
}
result nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *out) {
    return processes(device, "processes", count, out);
}
result nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, process *out) {
    result result = processes(device, "graphics", count, out);
    if (result == NOT_SUPPORTED) *count = 0, result = OK;
    return result;
}
result nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active) {
    char what[32];
    unsigned bus = 0;
    snprintf(what, sizeof what, "link.%u", link);
    result result = ask_number(device, what, &bus);
    *active = result == OK;
    return result;
}
result nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, pci_info *out) {
    char what[32];
    unsigned bus = 0;
    snprintf(what, sizeof what, "link.%u", link);
    result result = ask_number(device, what, &bus);
    if (result == OK) at_bus(out, bus);
    return result;
}
