// The functions of NVIDIA's driver library that `src/driver/card.rs` calls, over the emulator: so that all of Sudare but
// the card itself runs without one. Stricter than it has to be: a call without a current context, a handle that was
// not given out, more shared memory than a function was allowed, and memory that is freed twice are errors.
//
// `tests/card.rs` builds it as libcuda.so.1 and opens it as the driver. SUDARE_HOST_VERSION is the version that it tells.
#include "emulator.cpp"
#include <cstdlib>
#include <map>
#include <string>
#include <mutex>

namespace host {
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NOT_FOUND = 500, LAUNCH_FAILED = 719 };
struct Function { const emulator::Entry* entry; size_t shared = 48 << 10; };
static std::mutex lock;
static std::map<uint64_t, size_t> memory;
static std::map<std::string, Function> functions;
static int retained = 0;
static uint64_t launches = 0;
static thread_local void* current = nullptr;
static char context, stream, module_;
constexpr size_t TOTAL = size_t(320) << 20;

static size_t used() {
  size_t all = 0;
  for (auto& m : memory) all += m.second;
  return all;
}
// Whether some memory that was allocated holds these bytes.
static bool inside(uint64_t at, size_t bytes) {
  auto m = memory.upper_bound(at);
  return m != memory.begin() && (--m, at + bytes <= m->first + m->second);
}
}  // namespace host
#define CONTEXT() do { if (host::current != &host::context) return host::INVALID_CONTEXT; } while (0)
#define STREAM(s) do { if ((s) != &host::stream) return host::INVALID_VALUE; } while (0)

extern "C" {
int cuInit(unsigned) { return host::OK; }
int cuDriverGetVersion(int* v) {
  const char* told = std::getenv("SUDARE_HOST_VERSION");
  *v = told ? std::atoi(told) : 13000;
  return host::OK;
}
int cuDeviceGetCount(int* n) { *n = 1; return host::OK; }
int cuDeviceGet(int* d, int i) { *d = 7; return i == 0 ? host::OK : host::INVALID_VALUE; }
int cuDeviceGetName(char* name, int length, int) { std::snprintf(name, size_t(length), "host"); return host::OK; }
int cuDeviceTotalMem_v2(size_t* bytes, int) { *bytes = host::TOTAL; return host::OK; }
int cuDeviceGetAttribute(int* value, int which, int) {
  switch (which) {
    case 75: *value = 9; break;             // compute capability
    case 76: *value = 0; break;
    case 16: *value = 132; break;           // multiprocessors
    case 97: *value = 227 << 10; break;     // shared memory of a block, where it is asked for
    case 38: *value = 50 << 20; break;      // L2
    default: return host::INVALID_VALUE;
  }
  return host::OK;
}
int cuDevicePrimaryCtxRetain(void** c, int) { host::retained++; *c = &host::context; return host::OK; }
int cuDevicePrimaryCtxRelease_v2(int) {
  host::retained--;
  std::fprintf(stderr, "host driver: released, %zu bytes allocated, %llu launches\n", host::used(), (unsigned long long)host::launches);
  return host::OK;
}
int cuCtxSetCurrent(void* c) { host::current = c; return c == &host::context && host::retained > 0 ? host::OK : host::INVALID_CONTEXT; }
int cuStreamCreate(void** s, unsigned) { CONTEXT(); *s = &host::stream; return host::OK; }
int cuStreamDestroy_v2(void* s) { STREAM(s); return host::OK; }
int cuStreamSynchronize(void* s) { CONTEXT(); STREAM(s); return host::OK; }
int cuModuleLoadData(void** m, const void* image) {
  CONTEXT();
  *m = &host::module_;
  return std::strcmp(static_cast<const char*>(image), "kernels of the host") ? host::INVALID_IMAGE : host::OK;
}
int cuModuleUnload(void* m) { CONTEXT(); return m == &host::module_ ? host::OK : host::INVALID_VALUE; }
int cuModuleGetFunction(void** f, void* m, const char* name) {
  CONTEXT();
  if (m != &host::module_) return host::INVALID_VALUE;
  for (const emulator::Entry* e = emulator::entries(); e; e = e->next) {
    if (std::strcmp(e->name, name)) continue;
    std::lock_guard<std::mutex> held(host::lock);
    *f = &host::functions.emplace(name, host::Function{e}).first->second;
    return host::OK;
  }
  return host::NOT_FOUND;
}
int cuFuncSetAttribute(void* f, int which, int value) {
  CONTEXT();
  if (which != 8 || value < 0 || value > 227 << 10) return host::INVALID_VALUE;
  static_cast<host::Function*>(f)->shared = size_t(value);
  return host::OK;
}
int cuMemAllocAsync(uint64_t* at, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  std::lock_guard<std::mutex> held(host::lock);
  if (bytes == 0) return host::INVALID_VALUE;
  if (host::used() + bytes > host::TOTAL) return host::OUT_OF_MEMORY;
  *at = reinterpret_cast<uint64_t>(sudare_emulator_allocate(bytes));
  host::memory[*at] = bytes;
  return host::OK;
}
int cuMemFreeAsync(uint64_t at, void* s) {
  CONTEXT();
  STREAM(s);
  std::lock_guard<std::mutex> held(host::lock);
  auto m = host::memory.find(at);
  if (m == host::memory.end()) return host::INVALID_VALUE;
  sudare_emulator_free(reinterpret_cast<void*>(at), m->second);
  host::memory.erase(m);
  return host::OK;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) { CONTEXT(); *total = host::TOTAL; *free = host::TOTAL - host::used(); return host::OK; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  if (!host::inside(to, bytes)) return host::INVALID_VALUE;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return host::OK;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  if (!host::inside(from, bytes)) return host::INVALID_VALUE;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return host::OK;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  if (!host::inside(from, bytes) || !host::inside(to, bytes)) return host::INVALID_VALUE;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return host::OK;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* s, void** arguments, void** extra) {
  CONTEXT();
  STREAM(s);
  const host::Function& function = *static_cast<host::Function*>(f);
  if (!gx || !gy || !gz || !bx || by != 1 || bz != 1 || gy > 65535 || gz > 65535 || extra || shared > function.shared) return host::INVALID_VALUE;
  const unsigned grid[3] = {gx, gy, gz};
  const emulator::Trial trial{++host::launches, -1};
  char message[320] = "";
  const emulator::Entry& e = *function.entry;
  if (sudare_emulator_launch(e.name, grid, bx, shared, arguments[0], e.bytes, &trial, message, sizeof message) == 0) return host::OK;
  std::fprintf(stderr, "host driver: %s\n", message);
  return host::LAUNCH_FAILED;
}
int cuEventCreate(void** e, unsigned) { CONTEXT(); *e = new double(0); return host::OK; }
int cuEventRecord(void* e, void* s) { CONTEXT(); STREAM(s); *static_cast<double*>(e) = double(host::launches); return host::OK; }
int cuEventSynchronize(void*) { CONTEXT(); return host::OK; }
// A millisecond a launch.
int cuEventElapsedTime(float* ms, void* from, void* to) { CONTEXT(); *ms = float(*static_cast<double*>(to) - *static_cast<double*>(from)); return host::OK; }
int cuEventElapsedTime_v2(float* ms, void* from, void* to) { return cuEventElapsedTime(ms, from, to); }
int cuEventDestroy_v2(void* e) { CONTEXT(); delete static_cast<double*>(e); return host::OK; }
int cuGetErrorString(int code, const char** text) { *text = code == host::INVALID_IMAGE ? "no image of the host" : "an error of the host"; return host::OK; }
int cuGetErrorName(int code, const char** text) { return cuGetErrorString(code, text); }
}
