/* A library with the functions of libcuda that the rows of tests/gpu/run call, for simulated hosts. It counts the nodes in /dev,
   keeps the limits of an MPS client, and calls ioctl(2) on a node as the driver does. Work takes a millisecond. */
#include <glob.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { OK = 0, OUT_OF_MEMORY = 2, NO_DEVICE = 100, MULTIPROCESSOR_COUNT = 16, MULTIPROCESSORS = 132 };
static const unsigned long long MEMORY = 80ULL << 30;
static unsigned long long used;
static int node = -1;

static int devices(void) {
    const char *set = getenv("FAKE_CUDA_DEVICES");
    if (set != NULL) return atoi(set);
    glob_t found;
    int count = glob("/dev/nvidia[0-9]*", 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    if (count > 0 && node < 0) node = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
    if (count > 0) globfree(&found);
    return count;
}

int cuInit(unsigned flags) { return flags == 0 && devices() > 0 ? OK : NO_DEVICE; }
int cuDeviceGetCount(int *count) { return *count = devices(), OK; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, OK; }
int cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    return snprintf(name, (size_t)length, "simulated GPU"), OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return (void)device, *context = &used, OK; }
int cuCtxSetCurrent(void *context) { return context == NULL; }
int cuCtxSynchronize(void) { return usleep(1000), OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    const char *percent = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    if (attribute != MULTIPROCESSOR_COUNT || device != 0) return 1;
    return *value = percent == NULL ? MULTIPROCESSORS : MULTIPROCESSORS * atoi(percent) / 200 * 2, OK;
}
int cuMemAlloc_v2(unsigned long long *memory, size_t bytes) {
    const char *set = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    unsigned long long limit = MEMORY, mib;
    if (set != NULL && sscanf(set, "0=%lluM", &mib) == 1) limit = mib << 20;
    if (node >= 0) ioctl(node, 0xc020462aUL, 0);
    if (used + bytes > limit) return OUT_OF_MEMORY;
    used += bytes;
    return *memory = bytes, OK;
}
int cuMemFree_v2(unsigned long long memory) {
    if (node >= 0) ioctl(node, 0xc020462aUL, 0);
    return used -= memory, OK;
}
int cuMemsetD8_v2(unsigned long long memory, unsigned char value, size_t bytes) { return (void)value, memory < bytes; }
