/* A small NVML: what it tells comes from the environment. */
#include <stdlib.h>
#include <string.h>

static const char *told(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}
int nvmlInit_v2(void) { return atoi(told("FAKE_INIT", "0")); }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) {
    strncpy(to, told("FAKE_DRIVER", "550.54.15"), size);
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = (unsigned)atoi(told("FAKE_COUNT", "2"));
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if ((int)index == atoi(told("FAKE_LOST", "-1"))) return 15;
    *handle = (void *)(size_t)(0x7f0000001000 + index);
    return 0;
}
int nvmlDeviceGetName(void *handle, char *to, unsigned size) {
    if ((size_t)handle < 0x7f0000001000) return 2;
    strncpy(to, told("FAKE_NAME", "Tesla V100-SXM2-16GB"), size);
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *sizes) {
    if ((size_t)handle < 0x7f0000001000) return 2;
    sizes[0] = 1024ull * 1024 * (unsigned long long)atoi(told("FAKE_MEMORY", "16384"));
    sizes[1] = sizes[2] = sizes[0] / 2;
    return 0;
}
int nvmlDeviceGetPciInfo_v3(void *handle, char *info) { /* nvmlPciInfo_t: busId at 36 */
    if ((size_t)handle < 0x7f0000001000) return 2;
    memset(info, 0, 68);
    strcpy(info + 36, "00000000:3B:00.0");
    info[46] = (char)('B' + ((size_t)handle - 0x7f0000001000));
    return 0;
}
#ifndef OLD
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    if ((size_t)handle < 0x7f0000001000) return 2;
    *major = atoi(told("FAKE_MAJOR", "7"));
    *minor = atoi(told("FAKE_MINOR", "0"));
    return 0;
}
#endif
