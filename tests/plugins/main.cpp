// The main program of the element tests: GStreamer with the plugin of this build tree and the few of
// GStreamer's own that the tests use, so that nothing else of the machine can get in the way.
#include <gst/gst.h>
#include <gtest/gtest.h>

#ifdef __SANITIZE_ADDRESS__
// Freed memory that is kept aside, to catch uses of it, would look like a leak to the test of resident
// memory.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=16";
}
#endif

int main(int argc, char** argv) {
  g_setenv("GST_PLUGIN_PATH_1_0", PLUGIN_DIR, TRUE);
  g_setenv("GST_PLUGIN_SYSTEM_PATH_1_0", SYSTEM_PLUGIN_DIR, TRUE);
  g_setenv("GST_REGISTRY_1_0", REGISTRY, TRUE);
  // A helper process, which GStreamer would start to look at plugins, has no sanitizer built in.
  g_setenv("GST_REGISTRY_FORK", "no", TRUE);
  testing::InitGoogleTest(&argc, argv);
  gst_init(&argc, &argv);
  g_log_set_always_fatal(
      static_cast<GLogLevelFlags>(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING));
  const int result = RUN_ALL_TESTS();
  gst_deinit();
  return result;
}
