// A CUDA driver without a GPU, for tests: it answers the calls that gpuimg makes, and fails where it is told to.
//
// Host memory stands for device memory. Work in streams waits until something waits for it, so that a copy from memory
// that has changed meanwhile gives wrong samples. The kernels of all verbs are carried out as their headers say; those
// that encode and decode PNG are not, and do nothing. What a correct caller never does (a copy past a buffer's end, a
// handle that is given back twice, memory of a context that is gone) is a violation: it is written down, and ends the
// process.
//
//   STUB_FAIL=CALL:N:CODE:HOW   the N-th call (from 1) of CALL, or of any if CALL is `*`, returns CODE.
//                               HOW is `once`; `context`: all calls in the context fail from then on, until it is
//                               destroyed; or `device`: all calls fail from then on.
//   STUB_LOG=FILE               where the counts and violations are written at exit.
//   STUB_MEMORY=BYTES           device memory, 1 GiB if not given.
//   STUB_POOLS=0                a driver without memory pools.
//   STUB_DEVICES=N              GPUs, from 1 to 8; 1 if not given. Each has a context and STUB_MEMORY of its own.
//   STUB_KERNEL=MICROSECONDS    a GPU takes this time for each launch, one launch after the other. Kernels are not carried out, and
//                               only copies of a few numbers are. So a batch shows how busy the host keeps the GPUs, and its
//                               results are worthless.
//   STUB_WAIT=MICROSECONDS      a stream is not done before this time, so that the images of a batch meet in sets.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, NO_CONTEXT = 201, NOT_FOUND = 500,
       NOT_READY = 600, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };

// What the caller holds.
enum Kind { MEMORY, STREAM, EVENT, MODULE, FUNCTION, REGISTRATION, KINDS };
static const char *const kinds[KINDS] = {"memory", "streams", "events", "modules", "functions", "registrations"};
enum { DEVICES = 8 };
// `until`: when its GPU has ended all launches, in nanoseconds.
struct Context { int device, retained, dead; size_t used; uint64_t until; };
struct Thing {
    enum Kind kind;
    struct Context *context;
    char *start;   // of memory and registrations
    size_t size;
    char name[64]; // of functions
    struct Work *first, *last; // of streams
    uint64_t until; // of events: when the work before them ends; of streams: when theirs does
    struct Thing *next;
};

// Work that is queued in a stream.
enum Act { COPY, COPY_ROWS, FILL, LAUNCH, FREE };
struct Work {
    enum Act act;
    char *to, *from, *staged;
    size_t bytes, rows, to_pitch, from_pitch;
    int value;
    struct Thing *function;
    uint64_t args[10];
    uint64_t until; // of launches with STUB_KERNEL: when it ends
    struct Work *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct Thing *things;
static struct Context *contexts[DEVICES];
static __thread struct Context *current;
// How often each kernel was launched, by its name.
static struct { char name[64]; long count; } by_name[256];
static long launches_of[DEVICES];
static long set_launches, calls, failed, live[KINDS], most[KINDS], all[KINDS], launches, unknown_launches, launches_after;
static int lost, initialized;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

static void report(const char *violation, const char *detail) {
    const char *path = getenv("STUB_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    if (violation) fprintf(file, "violation %s %s\n", violation, detail);
    int retained = 0;
    for (int k = 0; k < DEVICES; k++) retained += contexts[k] ? contexts[k]->retained : 0;
    for (int k = 0; k < DEVICES; k++) fprintf(file, "launches_of_%d %ld\n", k, launches_of[k]);
    fprintf(file, "set_launches %ld\n", set_launches);
    fprintf(file, "calls %ld\nfailed %ld\nlaunches %ld\nlaunches_after %ld\nunknown_launches %ld\ncontexts %d\n", calls,
            failed, launches, launches_after, unknown_launches, retained);
    for (int k = 0; k < 256 && by_name[k].count; k++) fprintf(file, "kernel_%s %ld\n", by_name[k].name, by_name[k].count);
    for (int kind = 0; kind < KINDS; kind++)
        fprintf(file, "%s %ld\nmost_%s %ld\nall_%s %ld\n", kinds[kind], live[kind], kinds[kind], most[kind], kinds[kind],
                all[kind]);
    fclose(file);
}

static void violation(const char *what, const char *detail) {
    report(what, detail);
    abort();
}

__attribute__((destructor)) static void at_exit(void) { report(NULL, NULL); }

// The result of a call that has just begun, and whether it is the one that is told to fail.
static CUresult begin(const char *name, int needs_context) {
    static char fail[64];
    static long nth = -1, code, seen;
    static char how[16];
    calls++;
    if (nth < 0) {
        nth = 0;
        sscanf(setting("STUB_FAIL", ""), "%63[^:]:%ld:%ld:%15s", fail, &nth, &code, how);
    }
    if (lost) return lost;
    if (needs_context && current && current->dead) return current->dead;
    if (nth > 0 && (!strcmp(fail, "*") || !strcmp(fail, name)) && ++seen == nth) {
        failed++;
        if (!strcmp(how, "device")) lost = code;
        for (int k = 0; k < DEVICES && !strcmp(how, "context"); k++)
            if (contexts[k] && (!current || contexts[k] == current)) contexts[k]->dead = code;
        return code;
    }
    return needs_context && !current ? NO_CONTEXT : OK;
}

static struct Thing *add(enum Kind kind, void *start, size_t size) {
    struct Thing *thing = calloc(1, sizeof *thing);
    *thing = (struct Thing){.kind = kind, .context = current, .start = start, .size = size, .next = things};
    things = thing;
    all[kind]++;
    if (++live[kind] > most[kind]) most[kind] = live[kind];
    return thing;
}

static int is_live(const struct Context *context) { return context && contexts[context->device] == context; }

static struct Thing *known(enum Kind kind, const void *handle, const char *by) {
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing == handle && thing->kind == kind) {
            if (!is_live(thing->context)) violation("a handle of a context that is gone in", by);
            return thing;
        }
    violation("an unknown handle in", by);
    return NULL;
}

static void removed(struct Thing *thing) {
    for (struct Thing **at = &things; *at; at = &(*at)->next)
        if (*at == thing) {
            *at = thing->next;
            live[thing->kind]--;
            free(thing);
            return;
        }
}

// The memory or registration that holds all bytes of a range; NULL if none does.
static struct Thing *holder(enum Kind kind, const void *start, size_t size) {
    const char *from = start;
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing->kind == kind && thing->start <= from && from + size <= thing->start + thing->size) return thing;
    return NULL;
}

// A range of device memory, which must be inside one buffer.
static char *device(uint64_t address, size_t size, const char *by) {
    if (!holder(MEMORY, (char *)address, size)) violation("bytes outside device memory in", by);
    return (char *)address;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}
// Nanoseconds of a launch; 0 if it is carried out instead.
static uint64_t nanoseconds(void) {
    static int64_t asked = -1;
    if (asked < 0) asked = 1000 * strtoll(setting("STUB_KERNEL", "0"), NULL, 10);
    return asked;
}

static void release_memory(struct Thing *memory) {
    if (!nanoseconds()) memset(memory->start, 0xdd, memory->size);
    free(memory->start);
    memory->context->used -= memory->size;
    removed(memory);
}

// Kernels, as their headers in kernels/ say.

static uint64_t get(const char *memory, uint64_t i, int bits) {
    return bits == 8 ? ((uint8_t *)memory)[i] : bits == 16 ? ((uint16_t *)memory)[i] : ((uint32_t *)memory)[i];
}
static void put(char *memory, uint64_t i, int bits, uint64_t value) {
    if (bits == 8) ((uint8_t *)memory)[i] = value;
    else if (bits == 16) ((uint16_t *)memory)[i] = value;
    else ((uint32_t *)memory)[i] = value;
}
static int ascending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// The sizes of a kernel's arguments: p a pointer, q 64 bits, u 32.
static const struct { const char *name, *args; } signatures[] = {
    {"sum", "pqp"}, {"minmax", "pqp"}, {"scale", "ppqpuuu"}, {"flip", "ppqquu"}, {"transpose", "ppqquu"},
    {"histogram", "pqp"}, {"calibrate", "pqpppuuuup"}, {"add", "pqp"}, {"lower", "pqp"}, {"raise", "pqp"},
    {"median", "pqup"}, {"move", "ppq"}, {"fill_bytes", "pqu"},
};
static const char *signature(const char *name) {
    // The sum of samples of 32 bits has the same name.
    if (!strncmp(name, "sum_c", 5)) return NULL;
    for (size_t k = 0; k < sizeof signatures / sizeof *signatures; k++) {
        const size_t length = strlen(signatures[k].name);
        if (!strncmp(name, signatures[k].name, length) && (name[length] == '_' || !name[length])) return signatures[k].args;
    }
    return NULL;
}

// Whether a kernel only copies or fills memory.
static int is_of_memory(const char *name) { return !strcmp(name, "move") || !strcmp(name, "fill_bytes"); }

// Memory that kernels reach: that of the device, and page-locked memory of the host.
static char *reachable(CUdeviceptr address, size_t size, const char *by) {
    return holder(REGISTRATION, (void *)address, size) ? (char *)address : device(address, size, by);
}

static void run_kernel(const char *name, const uint64_t *a) {
    if (!strcmp(name, "move")) {
        memcpy(reachable(a[1], a[2], name), reachable(a[0], a[2], name), a[2]);
        return;
    }
    if (!strcmp(name, "fill_bytes")) {
        memset(device(a[0], a[1], name), (int)a[2], a[1]);
        return;
    }
    int bits = 0, channels = 1, pixel = 0;
    const char *form = strchr(name, '_') + 1;
    if (*form == 'b') pixel = atoi(form + 1);
    else sscanf(form, "u%d_c%d", &bits, &channels);
    const int colours = channels - (channels + 1) % 2, bytes = bits / 8;
    const uint64_t full = (1ull << bits) - 1;
    if (!strncmp(name, "flip_", 5) || !strncmp(name, "transpose_", 10)) {
        const uint64_t width = a[2], height = a[3];
        const char *from = device(a[0], width * height * pixel, name);
        char *to = device(a[1], width * height * pixel, name);
        for (uint64_t y = 0; y < height; y++)
            for (uint64_t x = 0; x < width; x++) {
                const uint64_t in_x = (uint32_t)a[4] ? width - 1 - x : x, in_y = (uint32_t)a[5] ? height - 1 - y : y;
                const uint64_t at = *name == 'f' ? y * width + x : x * height + y;
                memcpy(to + at * pixel, from + (in_y * width + in_x) * pixel, pixel);
            }
    } else if (!strncmp(name, "sum_", 4)) {
        const char *from = device(a[0], a[1] * bytes, name);
        uint64_t *totals = (uint64_t *)device(a[2], 8 * channels, name);
        for (uint64_t i = 0; i < a[1]; i++) totals[i % channels] += get(from, i, bits);
    } else if (!strncmp(name, "minmax_", 7)) {
        const char *from = device(a[0], a[1] * bytes, name);
        uint32_t *ranges = (uint32_t *)device(a[2], 8 * channels, name);
        for (uint64_t i = 0; i < a[1]; i++) {
            const uint32_t value = get(from, i, bits), c = i % channels;
            if (value < ranges[2 * c]) ranges[2 * c] = value;
            if (full - value < ranges[2 * c + 1]) ranges[2 * c + 1] = full - value;
        }
    } else if (!strncmp(name, "scale_", 6)) {
        const char *from = device(a[0], a[2] * bytes, name);
        char *to = device(a[1], a[2] * bytes, name);
        const uint32_t *ranges = (uint32_t *)device(a[3], 8 * channels, name);
        const uint64_t lo = (uint32_t)a[5], hi = (uint32_t)a[6];
        for (uint64_t i = 0; i < a[2]; i++) {
            const int c = i % channels;
            uint64_t value = get(from, i, bits), min = ranges[2 * c], rest = ranges[2 * c + 1];
            for (int k = 0; k < colours && !(uint32_t)a[4]; k++) {
                if (ranges[2 * k] < min) min = ranges[2 * k];
                if (ranges[2 * k + 1] < rest) rest = ranges[2 * k + 1];
            }
            const uint64_t max = full - rest;
            if (c < colours && max > min) {
                const uint64_t inside = value < min ? min : value > max ? max : value;
                value = lo + (2 * (inside - min) * (hi - lo) + (max - min)) / (2 * (max - min));
            }
            put(to, i, bits, value);
        }
    } else if (!strncmp(name, "histogram_", 10)) {
        const char *from = device(a[0], a[1] * bytes, name);
        uint64_t *bins = (uint64_t *)device(a[2], 8 * channels * (full + 1), name);
        for (uint64_t i = 0; i < a[1]; i++) bins[i % channels * (full + 1) + get(from, i, bits)]++;
    } else if (!strncmp(name, "calibrate_", 10)) {
        char *image = device(a[0], a[1] * bytes, name);
        // A frame that there is not is not read, and any memory stands for it.
        const char *dark = (uint32_t)a[5] ? device(a[2], a[1] * bytes, name) : NULL;
        const char *flat = (uint32_t)a[6] ? device(a[3], a[1] * bytes, name) : NULL;
        const double *factors = (double *)device(a[4], 32 * channels, name);
        uint64_t *clamped = (uint64_t *)device(a[9], 8, name);
        for (uint64_t i = 0; i < a[1]; i++) {
            const int c = i % channels, zero = (int)a[7], offset = (int)a[8];
            if (c >= colours) continue;
            const int x = (int)get(image, i, bits) - ((uint32_t)a[5] ? (int)get(dark, i, bits) : zero);
            const double q = (uint32_t)a[6] ? get(flat, i, bits) : 1, *factor = factors + 4 * c;
            const double twice = x * factor[0] + floor(x * factor[x < 0 ? 2 : 1]);
            const double value = floor((twice + q) / (2 * q)) + zero + offset;
            *clamped += value < 0 || value > full;
            put(image, i, bits, value < 0 ? 0 : value > full ? full : (uint64_t)value);
        }
    } else if (!strncmp(name, "median_", 7)) {
        const uint64_t samples = a[1], images = (uint32_t)a[2];
        const char *from = device(a[0], samples * images * bytes, name);
        char *to = device(a[3], samples * bytes, name);
        uint32_t *all = malloc(4 * images);
        for (uint64_t i = 0; i < samples; i++) {
            for (uint64_t k = 0; k < images; k++) all[k] = get(from, k * samples + i, bits);
            qsort(all, images, 4, ascending);
            put(to, i, bits, (all[(images - 1) / 2] + all[images / 2] + 1) / 2);
        }
        free(all);
    } else { // add, lower, raise
        const int wide = *name == 'a' ? 32 : bits;
        const char *from = device(a[0], a[1] * bytes, name);
        char *to = device(a[2], a[1] * (wide / 8), name);
        for (uint64_t i = 0; i < a[1]; i++) {
            const uint64_t value = get(from, i, bits), before = get(to, i, wide);
            if (*name == 'a') put(to, i, wide, before + value);
            else if (*name == 'l' ? value < before : value > before) put(to, i, wide, value);
        }
    }
}

// Streams.

// Whether work is carried out: with STUB_KERNEL only copies of a few numbers are, whose values must be the same in every run.
static int is_done(const struct Work *work) {
    const int is_copy = work->act != LAUNCH || is_of_memory(work->function->name);
    return !nanoseconds() || (is_copy && work->bytes <= 4096 && !work->rows);
}

// Waits for a GPU that is busy until then, while other threads go on.
static void wait_until(uint64_t time) {
    if (time <= now()) return;
    pthread_mutex_unlock(&lock);
    const struct timespec until = {.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    pthread_mutex_lock(&lock);
}

static void act(struct Work *work) {
    switch (work->act) {
    case COPY: if (is_done(work)) memcpy(work->to, work->from, work->bytes); break;
    case COPY_ROWS:
        for (size_t row = 0; row < work->rows && is_done(work); row++)
            memcpy(work->to + row * work->to_pitch, work->from + row * work->from_pitch, work->bytes);
        break;
    case FILL: if (is_done(work)) memset(work->to, work->value, work->bytes); break;
    case LAUNCH:
        if (!is_of_memory(work->function->name)) {
            launches++;
            launches_of[work->function->context->device]++;
        }
        int named = 0;
        while (named < 255 && by_name[named].count && strcmp(by_name[named].name, work->function->name)) named++;
        strcpy(by_name[named].name, work->function->name);
        by_name[named].count++;
        launches_after += failed > 0;
        if (!is_done(work)) break;
        if (signature(work->function->name)) run_kernel(work->function->name, work->args);
        else unknown_launches++;
        break;
    case FREE: release_memory(holder(MEMORY, work->to, 1)); break;
    }
}

// Carries out all work of a stream; a dead context's is given up, but for what frees.
static void finish(struct Thing *stream) {
    uint64_t until = 0;
    for (struct Work *work = stream->first; work; work = work->next)
        if (work->until > until) until = work->until;
    wait_until(until);
    while (stream->first) {
        struct Work *work = stream->first;
        stream->first = work->next;
        if (work->act == FREE || !(lost || stream->context->dead)) act(work);
        free(work->staged);
        free(work);
    }
    stream->last = NULL;
}

// Carries out all work of a GPU.
static void finish_all(const struct Context *context) {
    if (!context) return;
    wait_until(context->until);
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing->kind == STREAM && thing->context == context && thing->first) {
            finish(thing);
            thing = things; // memory may have been removed
        }
}

static void queue(void *handle, struct Work work, const char *by) {
    if (!handle) violation("work on the default stream in", by);
    struct Thing *stream = known(STREAM, handle, by);
    struct Work *copy = malloc(sizeof work);
    *copy = work;
    if (work.act == LAUNCH && nanoseconds() && !is_of_memory(work.function->name)) {
        struct Context *context = stream->context;
        const uint64_t start = context->until > now() ? context->until : now();
        copy->until = context->until = start + nanoseconds();
    }
    *(stream->last ? &stream->last->next : &stream->first) = copy;
    stream->last = copy;
    stream->until = copy->until ? copy->until : now() + 1000 * strtoull(setting("STUB_WAIT", "0"), NULL, 10);
}

// The beginning and the end of a call.
#define CALL(name, needs_context)                                                                                      \
    pthread_mutex_lock(&lock);                                                                                         \
    CUresult result = begin(#name, needs_context);
#define TRY if (result == OK)
#define END                                                                                                            \
    pthread_mutex_unlock(&lock);                                                                                       \
    return result;

CUresult cuInit(unsigned flags) {
    CALL(cuInit, 0)
    (void)flags;
    TRY initialized = 1;
    END
}
CUresult cuDriverGetVersion(int *version) {
    CALL(cuDriverGetVersion, 0)
    TRY *version = 12040;
    END
}
CUresult cuDeviceGetCount(int *count) {
    CALL(cuDeviceGetCount, 0)
    TRY *count = atoi(setting("STUB_DEVICES", "1"));
    END
}
CUresult cuDeviceGet(int *device, int ordinal) {
    CALL(cuDeviceGet, 0)
    TRY *device = ordinal;
    END
}
CUresult cuDeviceGetName(char *name, int size, int device) {
    CALL(cuDeviceGetName, 0)
    (void)device;
    TRY snprintf(name, size, "Stub 100");
    END
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALL(cuDeviceGetAttribute, 0)
    (void)device;
    TRY switch (attribute) {
    case 16: *value = 4; break;              // multiprocessors
    case 38: *value = 1 << 20; break;        // bytes of L2
    case 75: *value = 9; break;              // compute capability 9.0
    case 91: *value = 1; break;              // kernels reach registered memory by the host's addresses
    case 115: *value = atoi(setting("STUB_POOLS", "1")); break;
    default: *value = 0;
    }
    END
}
CUresult cuDevicePrimaryCtxRetain(struct Context **handle, int device) {
    CALL(cuDevicePrimaryCtxRetain, 0)
    TRY {
        struct Context *context = contexts[device];
        if (!context) {
            context = contexts[device] = calloc(1, sizeof *context);
            context->device = device;
        }
        context->retained++;
        *handle = context;
        if (context->dead) result = context->dead, context->retained--;
    }
    END
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) {
    CALL(cuDevicePrimaryCtxRelease_v2, 0)
    struct Context *context = contexts[device];
    if (!context) violation("a context that is not retained in", "cuDevicePrimaryCtxRelease");
    if (--context->retained == 0) {
        // What a context that has failed holds is gone with it.
        for (struct Thing *thing = things, *next; thing; thing = next) {
            next = thing->next;
            if (thing->context != context) continue;
            if (thing->kind != FUNCTION && !lost && !context->dead)
                violation("held in a context that is destroyed:", kinds[thing->kind]);
            removed(thing);
        }
        // Not freed: another may not get its address.
        contexts[device] = NULL;
    }
    END
}
CUresult cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    CALL(cuDevicePrimaryCtxSetFlags_v2, 0)
    (void)device, (void)flags;
    END
}
CUresult cuCtxGetCurrent(struct Context **handle) {
    CALL(cuCtxGetCurrent, 0)
    TRY *handle = current;
    END
}
CUresult cuCtxSetCurrent(struct Context *handle) {
    CALL(cuCtxSetCurrent, 0)
    TRY {
        if (!is_live(handle)) violation("a context that is gone in", "cuCtxSetCurrent");
        current = handle;
    }
    END
}
CUresult cuCtxSynchronize(void) {
    CALL(cuCtxSynchronize, 1)
    finish_all(current);
    END
}
CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
    CALL(cuMemGetInfo, 1)
    TRY {
        *total = strtoull(setting("STUB_MEMORY", "1073741824"), NULL, 10);
        *unused = *total - current->used;
    }
    END
}
CUresult cuGetErrorString(CUresult error, const char **text) {
    CALL(cuGetErrorString, 0)
    // A driver that has lost its device still has its texts.
    if (result == lost) result = OK;
    TRY switch (error) {
    case 2: *text = "out of memory"; break;
    case 3: *text = "initialization error"; break;
    case 46: *text = "CUDA-capable device(s) is/are busy or unavailable"; break;
    case 101: *text = "invalid device ordinal"; break;
    case 719: *text = "unspecified launch failure"; break;
    case 999: *text = "unknown error"; break;
    default: result = INVALID;
    }
    END
}

CUresult cuDeviceGetDefaultMemPool(void **pool, int device) {
    CALL(cuDeviceGetDefaultMemPool, 0)
    (void)device;
    TRY *pool = &things;
    END
}
CUresult cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
    CALL(cuMemPoolSetAttribute, 0)
    (void)pool, (void)attribute, (void)value;
    END
}

static CUresult allocate(CUdeviceptr *address, size_t size) {
    const size_t all = strtoull(setting("STUB_MEMORY", "1073741824"), NULL, 10);
    if (current->used + size > all) finish_all(current); // what is freed in the order of a stream
    if (current->used + size > all) return NO_MEMORY;
    char *memory = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!nanoseconds()) memset(memory, 0xcd, size);
    current->used += size;
    add(MEMORY, memory, size);
    *address = (CUdeviceptr)memory;
    return OK;
}
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    CALL(cuMemAlloc, 1)
    TRY result = allocate(address, size);
    END
}
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, void *stream) {
    CALL(cuMemAllocAsync, 1)
    TRY {
        known(STREAM, stream, "cuMemAllocAsync");
        result = allocate(address, size);
    }
    END
}
// What is given back is given back, whatever the call returns.
CUresult cuMemFree_v2(CUdeviceptr address) {
    CALL(cuMemFree, 1)
    struct Thing *memory = holder(MEMORY, (void *)address, 1);
    if (memory) finish_all(memory->context);
    memory = holder(MEMORY, (void *)address, 1); // unless it was freed in the order of a stream
    if (!memory || memory->start != (char *)address) violation("no buffer is at the address in", "cuMemFree");
    release_memory(memory);
    END
}
CUresult cuMemFreeAsync(CUdeviceptr address, void *stream) {
    CALL(cuMemFreeAsync, 1)
    struct Thing *memory = holder(MEMORY, (void *)address, 1);
    if (!memory || memory->start != (char *)address) violation("no buffer is at the address in", "cuMemFreeAsync");
    queue(stream, (struct Work){.act = FREE, .to = memory->start}, "cuMemFreeAsync");
    if (result != OK) finish(known(STREAM, stream, "cuMemFreeAsync"));
    END
}

CUresult cuMemHostRegister_v2(void *start, size_t size, unsigned flags) {
    CALL(cuMemHostRegister, 1)
    (void)flags;
    TRY {
        for (struct Thing *thing = things; thing; thing = thing->next)
            if (thing->kind == REGISTRATION && thing->start < (char *)start + size && (char *)start < thing->start + thing->size)
                result = ALREADY_REGISTERED;
        TRY add(REGISTRATION, start, size);
    }
    END
}
CUresult cuMemHostUnregister(void *start) {
    CALL(cuMemHostUnregister, 1)
    struct Thing *found = NULL;
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing->kind == REGISTRATION && thing->start == start) found = thing;
    if (!found) violation("memory that is not registered in", "cuMemHostUnregister");
    for (struct Thing *thing = things; thing; thing = thing->next)
        for (struct Work *work = thing->kind == STREAM ? thing->first : NULL; work; work = work->next)
            if (!lost && !thing->context->dead && work->act == COPY &&
                ((work->from >= found->start && work->from < found->start + found->size) ||
                 (work->to >= found->start && work->to < found->start + found->size)))
                violation("memory that a queued copy uses in", "cuMemHostUnregister");
    removed(found);
    END
}
CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr address) {
    CALL(cuPointerGetAttributes, 0)
    (void)count, (void)attributes;
    TRY *(unsigned *)values[0] = holder(REGISTRATION, (void *)address, 1) ? 1 : holder(MEMORY, (void *)address, 1) ? 2 : 0;
    END
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, void *stream) {
    CALL(cuMemcpyHtoDAsync, 1)
    TRY {
        struct Work work = {.act = COPY, .to = device(to, size, "cuMemcpyHtoDAsync"), .from = (char *)from, .bytes = size};
        // Of memory that is not page-locked the driver makes a copy before it returns.
        if (!holder(REGISTRATION, from, size)) work.from = work.staged = memcpy(malloc(size), from, size);
        queue(stream, work, "cuMemcpyHtoDAsync");
    }
    END
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, void *stream) {
    CALL(cuMemcpyDtoHAsync, 1)
    TRY {
        queue(stream, (struct Work){.act = COPY, .to = to, .from = device(from, size, "cuMemcpyDtoHAsync"), .bytes = size}, "cuMemcpyDtoHAsync");
        if (!holder(REGISTRATION, to, size)) finish(stream);
    }
    END
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, void *stream) {
    CALL(cuMemcpyDtoDAsync, 1)
    TRY queue(stream, (struct Work){.act = COPY, .to = device(to, size, "cuMemcpyDtoDAsync"), .from = device(from, size, "cuMemcpyDtoDAsync"), .bytes = size}, "cuMemcpyDtoDAsync");
    END
}
// As in cuda.h.
struct Copy2D {
    size_t from_x, from_y; int from_kind; const void *from_host; CUdeviceptr from_device; void *from_array; size_t from_pitch;
    size_t to_x, to_y; int to_kind; void *to_host; CUdeviceptr to_device; void *to_array; size_t to_pitch;
    size_t bytes, rows;
};
CUresult cuMemcpy2DAsync_v2(const struct Copy2D *copy, void *stream) {
    CALL(cuMemcpy2DAsync, 1)
    TRY {
        if (copy->from_kind != 1 || copy->to_kind != 2) violation("another than host to device in", "cuMemcpy2DAsync");
        struct Work work = {.act = COPY_ROWS, .rows = copy->rows, .bytes = copy->bytes, .from_pitch = copy->from_pitch,
                            .to_pitch = copy->to_pitch, .from = (char *)copy->from_host + copy->from_x};
        work.to = device(copy->to_device + copy->to_x, (copy->rows - 1) * copy->to_pitch + copy->bytes, "cuMemcpy2DAsync");
        queue(stream, work, "cuMemcpy2DAsync");
        if (!holder(REGISTRATION, copy->from_host, copy->rows * copy->from_pitch)) finish(stream);
    }
    END
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, void *stream) {
    CALL(cuMemsetD8Async, 1)
    TRY queue(stream, (struct Work){.act = FILL, .to = device(to, size, "cuMemsetD8Async"), .value = value, .bytes = size}, "cuMemsetD8Async");
    END
}

CUresult cuStreamCreate(void **stream, unsigned flags) {
    CALL(cuStreamCreate, 1)
    (void)flags;
    TRY *stream = add(STREAM, NULL, 0);
    END
}
CUresult cuStreamDestroy_v2(void *stream) {
    CALL(cuStreamDestroy, 1)
    struct Thing *thing = known(STREAM, stream, "cuStreamDestroy");
    finish(thing);
    removed(thing);
    END
}
// The error that a wait returns may be that of work before it, which is over.
CUresult cuStreamSynchronize(void *stream) {
    CALL(cuStreamSynchronize, 1)
    if (current) finish(known(STREAM, stream, "cuStreamSynchronize"));
    END
}
CUresult cuStreamQuery(void *stream) {
    CALL(cuStreamQuery, 1)
    calls--; // how often it is asked depends on the speed of the machine
    TRY {
        struct Thing *thing = known(STREAM, stream, "cuStreamQuery");
        if (thing->until > now()) result = NOT_READY;
        else finish(thing);
    }
    END
}
CUresult cuEventCreate(void **event, unsigned flags) {
    CALL(cuEventCreate, 1)
    (void)flags;
    TRY *event = add(EVENT, NULL, 0);
    END
}
CUresult cuEventDestroy_v2(void *event) {
    CALL(cuEventDestroy, 1)
    removed(known(EVENT, event, "cuEventDestroy"));
    END
}
CUresult cuEventRecord(void *event, void *stream) {
    CALL(cuEventRecord, 1)
    TRY {
        struct Thing *thing = known(EVENT, event, "cuEventRecord");
        thing->size = calls;
        thing->until = known(STREAM, stream, "cuEventRecord")->context->until;
    }
    END
}
CUresult cuEventSynchronize(void *event) {
    CALL(cuEventSynchronize, 1)
    struct Thing *thing = known(EVENT, event, "cuEventSynchronize");
    if (nanoseconds()) wait_until(thing->until);
    else finish_all(thing->context);
    END
}
CUresult cuEventElapsedTime(float *ms, void *before, void *after) {
    CALL(cuEventElapsedTime, 1)
    TRY *ms = (float)known(EVENT, after, "cuEventElapsedTime")->size / 1000 - (float)known(EVENT, before, "cuEventElapsedTime")->size / 1000;
    END
}

CUresult cuModuleLoadData(void **module, const void *image) {
    CALL(cuModuleLoadData, 1)
    (void)image;
    TRY *module = add(MODULE, NULL, 0);
    END
}
CUresult cuModuleUnload(void *module) {
    CALL(cuModuleUnload, 1)
    removed(known(MODULE, module, "cuModuleUnload"));
    END
}
CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
    CALL(cuModuleGetFunction, 1)
    TRY {
        known(MODULE, module, "cuModuleGetFunction");
        struct Thing *thing = add(FUNCTION, NULL, 0);
        snprintf(thing->name, sizeof thing->name, "%s", name);
        *function = thing;
    }
    END
}
CUresult cuFuncGetAttribute(int *value, int attribute, void *function) {
    CALL(cuFuncGetAttribute, 1)
    (void)attribute;
    known(FUNCTION, function, "cuFuncGetAttribute");
    TRY *value = 256;
    END
}
CUresult cuFuncSetAttribute(void *function, int attribute, int value) {
    CALL(cuFuncSetAttribute, 1)
    (void)attribute, (void)value;
    known(FUNCTION, function, "cuFuncSetAttribute");
    END
}

static void queue_kernel(void *stream, struct Thing *kernel, void **args) {
    struct Work work = {.act = LAUNCH, .function = kernel};
    const char *types = signature(kernel->name);
    for (int k = 0; types && types[k]; k++) memcpy(&work.args[k], args[k], types[k] == 'u' ? 4 : 8);
    if (is_of_memory(kernel->name)) work.bytes = work.args[kernel->name[0] == 'm' ? 2 : 1];
    queue(stream, work, "cuLaunchKernel");
}

// The launch of a kernel for several images, as that of the plain kernel for each. `set`: the `_set` in its name. `table`: as
// kernels/launch.py describes `Set`.
static void queue_set(void *stream, struct Thing *kernel, const char *set, char *table) {
    char name[64];
    snprintf(name, sizeof name, "%.*s%s", (int)(set - kernel->name), kernel->name, set + 4);
    struct Thing *plain = things;
    while (plain && !(plain->kind == FUNCTION && plain->context == kernel->context && !strcmp(plain->name, name))) plain = plain->next;
    if (!plain) violation("no plain kernel beside", kernel->name);
    const char *types = signature(name);
    size_t offsets[10], size = 0;
    for (int k = 0; types && types[k]; k++) {
        const size_t bytes = types[k] == 'u' ? 4 : 8;
        offsets[k] = (size + bytes - 1) / bytes * bytes;
        size = offsets[k] + bytes;
    }
    size = (size + 7) / 8 * 8;
    size_t most = 1; // images of the table
    while (types && (4 * (most + 3) + 7) / 8 * 8 + (most + 1) * size <= 4096) most++;
    const size_t from = (4 * (most + 2) + 7) / 8 * 8;
    uint32_t images;
    memcpy(&images, table, 4);
    if (images < 2 || (types && images > most)) violation("a wrong number of images for", kernel->name);
    for (uint32_t image = 0; image < images; image++) {
        void *args[10] = {0};
        for (int k = 0; types && types[k]; k++) args[k] = table + from + image * size + offsets[k];
        queue_kernel(stream, plain, args);
    }
    set_launches++;
}

CUresult cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void *stream, void **args, void **extra) {
    CALL(cuLaunchKernel, 1)
    (void)shared, (void)extra;
    struct Thing *kernel = known(FUNCTION, function, "cuLaunchKernel");
    TRY {
        if (!(gx && gy && gz && bx && by && bz)) violation("an empty grid of", kernel->name);
        const char *set = strstr(kernel->name, "_set");
        if (set) queue_set(stream, kernel, set, args[0]);
        else queue_kernel(stream, kernel, args);
    }
    END
}
