// The functions of NVIDIA's driver library that `src/driver/card.rs` calls, over the emulator: so that all of Sudare but
// the card itself runs without one. Stricter than it has to be: a call without a current context, a handle that was
// not given out, more shared memory than a function was allowed, memory that is freed twice, and an upload from memory that
// is not pinned are errors. Nothing happens before somebody waits for it: a source that was freed, or written again, too
// early is seen in the answers. After a kernel has failed every call fails.
//
// `tests/card.rs` builds it as libcuda.so.1 and opens it as the driver. SUDARE_HOST_VERSION is the version that it tells,
// SUDARE_HOST_RATIO how many times as fast single precision is as double, SUDARE_HOST_POOLS=0 a card without memory pools,
// SUDARE_HOST_FAULT the number of a launch that fails, counted from 1.
#include "emulator.cpp"
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <mutex>

namespace host {
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_SUPPORTED = 801, LAUNCH_FAILED = 719 };
struct Function { const emulator::Entry* entry; size_t shared = 48 << 10; };
static std::mutex lock;
static std::map<uint64_t, size_t> memory;
static std::map<std::string, Function> functions;
static int retained = 0;
static uint64_t launches = 0;
static thread_local void* current = nullptr;
static char context, stream, module_;
constexpr size_t TOTAL = size_t(320) << 20;
static std::map<uint64_t, size_t> pinned;
// What was asked for and not done yet, and the error after which nothing works any more.
static std::deque<std::function<int()>> queue;
static int lost = OK;

static int number(const char* name, int otherwise) {
  const char* told = std::getenv(name);
  return told ? std::atoi(told) : otherwise;
}

static size_t used() {
  size_t all = 0;
  for (auto& m : memory) all += m.second;
  return all;
}
// Whether some memory of a list holds these bytes.
static bool inside(const std::map<uint64_t, size_t>& list, uint64_t at, size_t bytes) {
  auto m = list.upper_bound(at);
  return m != list.begin() && (--m, at + bytes <= m->first + m->second);
}
static int flush() {
  while (!queue.empty() && lost == OK) {
    lost = queue.front()();
    queue.pop_front();
  }
  return lost;
}
static int give_back(uint64_t at) {
  auto m = memory.find(at);
  if (m == memory.end()) return INVALID_VALUE;
  sudare_emulator_free(reinterpret_cast<void*>(at), m->second);
  memory.erase(m);
  return OK;
}
static int take(uint64_t* at, size_t bytes) {
  if (bytes == 0) return INVALID_VALUE;
  if (used() + bytes > TOTAL && flush() != OK) return lost;
  if (used() + bytes > TOTAL) return OUT_OF_MEMORY;
  *at = reinterpret_cast<uint64_t>(sudare_emulator_allocate(bytes));
  memory[*at] = bytes;
  return OK;
}
}  // namespace host
#define CONTEXT() \
  if (host::current != &host::context) return host::INVALID_CONTEXT; \
  std::lock_guard<std::mutex> held(host::lock); \
  if (host::lost != host::OK) return host::lost
#define STREAM(s) do { if ((s) != &host::stream) return host::INVALID_VALUE; } while (0)

extern "C" {
int cuInit(unsigned) { return host::OK; }
int cuDriverGetVersion(int* v) { *v = host::number("SUDARE_HOST_VERSION", 13000); return host::OK; }
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
    case 87: *value = host::number("SUDARE_HOST_RATIO", 2); break;
    case 115: *value = host::number("SUDARE_HOST_POOLS", 1); break;
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
// Others have contexts, too, which are theirs to check.
int cuCtxSetCurrent(void* c) { host::current = c; return c != &host::context || host::retained > 0 ? host::OK : host::INVALID_CONTEXT; }
int cuCtxGetCurrent(void** c) { *c = host::current; return host::OK; }
int cuStreamCreate(void** s, unsigned) { CONTEXT(); *s = &host::stream; return host::OK; }
int cuStreamDestroy_v2(void* s) { STREAM(s); return host::OK; }
int cuStreamSynchronize(void* s) { CONTEXT(); STREAM(s); return host::flush(); }
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
    *f = &host::functions.emplace(name, host::Function{e}).first->second;
    return host::OK;
  }
  return host::NOT_FOUND;
}
int cuFuncSetAttribute(void* f, int which, int value) {
  CONTEXT();
  if (which == 9) return value == 100 ? host::OK : host::INVALID_VALUE;  // the part of the cache that is shared memory
  if (which != 8 || value < 0 || value > 227 << 10) return host::INVALID_VALUE;
  static_cast<host::Function*>(f)->shared = size_t(value);
  return host::OK;
}
int cuMemAllocAsync(uint64_t* at, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  return host::number("SUDARE_HOST_POOLS", 1) ? host::take(at, bytes) : host::NOT_SUPPORTED;
}
int cuMemFreeAsync(uint64_t at, void* s) {
  CONTEXT();
  STREAM(s);
  if (!host::memory.count(at)) return host::INVALID_VALUE;
  host::queue.push_back([=] { return host::give_back(at); });
  return host::OK;
}
int cuMemAlloc_v2(uint64_t* at, size_t bytes) { CONTEXT(); return host::take(at, bytes); }
int cuMemFree_v2(uint64_t at) { CONTEXT(); return host::flush() == host::OK ? host::give_back(at) : host::lost; }
int cuMemHostAlloc(void** at, size_t bytes, unsigned) {
  CONTEXT();
  *at = std::malloc(bytes);
  host::pinned[reinterpret_cast<uint64_t>(*at)] = bytes;
  return host::OK;
}
int cuMemFreeHost(void* at) {
  CONTEXT();
  if (!host::pinned.erase(reinterpret_cast<uint64_t>(at))) return host::INVALID_VALUE;
  std::free(at);
  return host::OK;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  CONTEXT();
  host::flush();
  *total = host::TOTAL;
  *free = host::TOTAL - host::used();
  return host::lost;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  if (!host::inside(host::memory, to, bytes) || !host::inside(host::pinned, reinterpret_cast<uint64_t>(from), bytes)) return host::INVALID_VALUE;
  host::queue.push_back([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); return int(host::OK); });
  return host::OK;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  if (!host::inside(host::memory, from, bytes)) return host::INVALID_VALUE;
  host::queue.push_back([=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); return int(host::OK); });
  return host::OK;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* s) {
  CONTEXT();
  STREAM(s);
  if (!host::inside(host::memory, from, bytes) || !host::inside(host::memory, to, bytes)) return host::INVALID_VALUE;
  host::queue.push_back([=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); return int(host::OK); });
  return host::OK;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* s, void** arguments, void** extra) {
  CONTEXT();
  STREAM(s);
  const host::Function& function = *static_cast<host::Function*>(f);
  if (!gx || !gy || !gz || !bx || by != 1 || bz != 1 || gy > 65535 || gz > 65535 || extra || shared > function.shared) return host::INVALID_VALUE;
  const emulator::Entry& e = *function.entry;
  // The argument is copied before the call returns; all else is the queue's.
  const std::vector<char> argument(static_cast<const char*>(arguments[0]), static_cast<const char*>(arguments[0]) + e.bytes);
  host::queue.push_back([=, &e] {
    const unsigned grid[3] = {gx, gy, gz};
    const emulator::Trial trial{++host::launches, -1};
    if (int(host::launches) == host::number("SUDARE_HOST_FAULT", 0)) return int(host::LAUNCH_FAILED);
    char message[320] = "";
    emulator::Counts counts;
    if (sudare_emulator_launch(e.name, grid, bx, shared, argument.data(), e.bytes, &trial, &counts, message, sizeof message) == 0) return int(host::OK);
    std::fprintf(stderr, "host driver: %s\n", message);
    return int(host::LAUNCH_FAILED);
  });
  return host::OK;
}
int cuEventCreate(void** e, unsigned) { CONTEXT(); *e = new double(0); return host::OK; }
int cuEventRecord(void* e, void* s) {
  CONTEXT();
  STREAM(s);
  host::queue.push_back([=] { *static_cast<double*>(e) = double(host::launches); return int(host::OK); });
  return host::OK;
}
int cuEventSynchronize(void*) { CONTEXT(); return host::flush(); }
// A millisecond a launch.
int cuEventElapsedTime(float* ms, void* from, void* to) { CONTEXT(); *ms = float(*static_cast<double*>(to) - *static_cast<double*>(from)); return host::OK; }
int cuEventDestroy_v2(void* e) { CONTEXT(); host::flush(); delete static_cast<double*>(e); return host::OK; }
int cuGetErrorString(int code, const char** text) { *text = code == host::INVALID_IMAGE ? "no image of the host" : "an error of the host"; return host::OK; }
int cuGetErrorName(int code, const char** text) { return cuGetErrorString(code, text); }
}
