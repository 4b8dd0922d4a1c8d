// What NVIDIA's own libraries take for the work of the rows of `gpuimg bench production`: CUB's maximum and sum, and
// cuBLAS's transposition of f32 beside a copy kernel. Times as the bench's (launches queued between two events), and of
// one launch alone between them, as the libraries' own papers have it; an empty launch's beside.
//   nvcc -O2 -std=c++17 -arch=native benches/peers/rivals.cu -lcublas -o /tmp/rivals && /tmp/rivals
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <vector>

static __global__ void empty() {}
static __global__ void noise(uint32_t *words, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        words[i] = (uint32_t)i * 2654435761u ^ (uint32_t)(i >> 7);
}
static __global__ void copy(const uint4 *from, uint4 *to, size_t n) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

static void check(cudaError_t error) {
    if (error) printf("%s\n", cudaGetErrorString(error)), exit(1);
}

// Microseconds of one of `times` launches between two events: the median of 15 measurements.
template <class Launch> static double time_of(Launch launch, int times) {
    cudaEvent_t before, after;
    cudaEventCreate(&before), cudaEventCreate(&after);
    std::vector<float> found;
    for (int i = 0; i < 18; i++) {
        cudaEventRecord(before);
        for (int k = 0; k < times; k++) launch();
        cudaEventRecord(after);
        check(cudaEventSynchronize(after));
        float ms;
        cudaEventElapsedTime(&ms, before, after);
        if (i >= 3) found.push_back(ms * 1000 / times);
    }
    std::sort(found.begin(), found.end());
    return found[found.size() / 2];
}

template <class Launch> static void row(const char *name, double bytes, Launch launch) {
    launch();
    const double alone = time_of(launch, 1), queued = time_of(launch, (int)std::max(1.0, 1000 / alone));
    printf("%-40s %9.2f us queued %8.0f GB/s %9.2f us alone %8.0f GB/s\n", name, queued, bytes / queued / 1e3, alone,
           bytes / alone / 1e3);
}

int main() {
    const size_t bytes = 1 << 30;
    char *from, *to, *result, *scratch;
    check(cudaMalloc(&from, bytes)), check(cudaMalloc(&to, bytes)), check(cudaMalloc(&result, 256));
    size_t room = 1 << 26;
    check(cudaMalloc(&scratch, room));
    noise<<<2048, 256>>>((uint32_t *)from, bytes / 4);
    row("empty launch", 0, [] { empty<<<1, 32>>>(); });
    char name[80];
    for (size_t mib : {8, 32, 64, 128, 512, 1024}) {
        const size_t n = mib << 20;
        snprintf(name, sizeof name, "copy, %zu MiB", mib);
        row(name, 2.0 * n, [&] { copy<<<n / 16 / 256, 256>>>((uint4 *)from, (uint4 *)to, n / 16); });
    }
    for (size_t mpx : {4, 16, 64, 512}) {
        const size_t n = mpx << 20;
        snprintf(name, sizeof name, "CUB Max of u16, %zu Mpx", mpx);
        row(name, 2.0 * n, [&] { cub::DeviceReduce::Max(scratch, room, (uint16_t *)from, (uint16_t *)result, (int)n); });
        snprintf(name, sizeof name, "CUB Sum of u32, as many bytes");
        row(name, 2.0 * n, [&] { cub::DeviceReduce::Sum(scratch, room, (uint32_t *)from, (uint32_t *)result, (int)(n / 2)); });
    }
    row("CUB Sum of 2^22 u32", 16.0 * (1 << 20),
        [&] { cub::DeviceReduce::Sum(scratch, room, (uint32_t *)from, (uint32_t *)result, 1 << 22); });
    cublasHandle_t cublas;
    cublasCreate(&cublas);
    const float one = 1, zero = 0;
    for (int n : {8192, 16384}) {
        snprintf(name, sizeof name, "cuBLAS geam, transposition of f32, %d^2", n);
        const size_t size = (size_t)n * n * 4;
        if (size > bytes) continue;
        row(name, 2.0 * size, [&] {
            cublasSgeam(cublas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, &one, (float *)from, n, &zero, (float *)from, n, (float *)to, n);
        });
    }
    check(cudaDeviceSynchronize());
}
