// What AddressSanitizer is told of fibers, where the emulator is built with it (feature `sanitize`); nothing otherwise.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SUDARE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SUDARE_ASAN 1
#endif
#endif

#ifdef SUDARE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
// A thread's state of the emulator lives as long as the process.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace sanitizer {
constexpr size_t STACK = 256 << 10;             // locals have red zones around them
struct Stack {
  const void* bottom = nullptr;
  size_t size = 0;
  void* fake = nullptr;
  // A fiber's stack, before it runs anew: what an earlier run left there means nothing.
  void make(char* stack) {
    bottom = stack;
    size = STACK;
    fake = nullptr;
    __asan_unpoison_memory_region(stack, STACK);
  }
  void enter_from(Stack& here) { __sanitizer_start_switch_fiber(&here.fake, bottom, size); }
  // From a stack that is not used again.
  void enter_for_good() { __sanitizer_start_switch_fiber(nullptr, bottom, size); }
  void entered() { __sanitizer_finish_switch_fiber(fake, nullptr, nullptr); }
  // On a fiber's first instructions: where it came from is this stack.
  void left() { __sanitizer_finish_switch_fiber(nullptr, &bottom, &size); }
};
}  // namespace sanitizer
#else
namespace sanitizer {
constexpr size_t STACK = 64 << 10;
struct Stack {
  void make(char*) {}
  void enter_from(Stack&) {}
  void enter_for_good() {}
  void entered() {}
  void left() {}
};
}  // namespace sanitizer
#endif
