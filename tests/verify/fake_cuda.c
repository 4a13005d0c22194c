/* A driver that has no GPU: its version and how it starts come from the environment. */
#include <stdlib.h>
#include <string.h>

static int told(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}
int cuInit(unsigned flags) { (void)flags; return told("FAKE_CUINIT", 0); }
int cuDriverGetVersion(int *version) { *version = told("FAKE_CUDA", 11040); return 0; }
int cuDeviceGetCount(int *count) { *count = 0; return 0; }
static int unsupported(void) { return 801; /* CUDA_ERROR_NOT_SUPPORTED */ }
static void *find(const char *name) {
    if (!strcmp(name, "cuInit")) return (void *)cuInit;
    if (!strcmp(name, "cuDriverGetVersion")) return (void *)cuDriverGetVersion;
    if (!strcmp(name, "cuDeviceGetCount")) return (void *)cuDeviceGetCount;
    return (void *)unsupported;
}
int cuGetProcAddress(const char *name, void **to, int version, unsigned long long flags) {
    (void)version; (void)flags;
    *to = find(name);
    return 0;
}
int cuGetProcAddress_v2(const char *name, void **to, int version, unsigned long long flags,
                        void *status) {
    (void)status;
    return cuGetProcAddress(name, to, version, flags);
}
