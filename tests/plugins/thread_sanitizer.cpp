// Only in the tests of the tsan preset: tells ThreadSanitizer what GLib and GStreamer, which are built
// without it, put in order. GLib's mutexes and conditions are futexes; a buffer that goes back to its pool is
// handed on by atomic operations. The sanitizer sees neither, and would take two accesses that they separate
// for a race. The functions here stand before the libraries' own, call them, and say what happened. Nothing
// of ours is left out of its sight.
#include <dlfcn.h>
#include <gst/gst.h>
#include <sanitizer/tsan_interface.h>

#define SEEN_BY_LIBRARIES extern "C" __attribute__((visibility("default")))

// Races inside libraries that are not instrumented are not ours to find, and the threads that GLib and the
// library keep for later use are no leaks.
SEEN_BY_LIBRARIES const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:report_thread_leaks=0";
}

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define NEXT(function) static auto* const real = next<decltype(function)>(#function)

SEEN_BY_LIBRARIES void g_mutex_lock(GMutex* mutex) {
  NEXT(g_mutex_lock);
  real(mutex);
  __tsan_acquire(mutex);
}

SEEN_BY_LIBRARIES gboolean g_mutex_trylock(GMutex* mutex) {
  NEXT(g_mutex_trylock);
  const gboolean locked = real(mutex);
  if (locked) {
    __tsan_acquire(mutex);
  }
  return locked;
}

SEEN_BY_LIBRARIES void g_mutex_unlock(GMutex* mutex) {
  NEXT(g_mutex_unlock);
  __tsan_release(mutex);
  real(mutex);
}

SEEN_BY_LIBRARIES void g_cond_wait(GCond* condition, GMutex* mutex) {
  NEXT(g_cond_wait);
  __tsan_release(mutex);
  real(condition, mutex);
  __tsan_acquire(mutex);
}

SEEN_BY_LIBRARIES gboolean g_cond_wait_until(GCond* condition, GMutex* mutex, gint64 end_time) {
  NEXT(g_cond_wait_until);
  __tsan_release(mutex);
  const gboolean signalled = real(condition, mutex, end_time);
  __tsan_acquire(mutex);
  return signalled;
}
