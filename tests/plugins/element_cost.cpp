// Measures what nonlocaldenoise adds to the library's own time: 1920x1080 I420 frames with every setting at
// its default but sigma, through the element and, in turn, through the library as the element would call it,
// from frame to frame. Not a test of ctest: times are no tests. Usage: element_cost [FRAMES]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "nonlocal/non_local_means.h"
#include "support.h"

namespace {

using namespace nonlocal::test;
using nonlocal::NonLocalMeans;
using nonlocal::NonLocalMeansParameters;
using nonlocal::Plane;

constexpr double kSigma = 20;

template <typename Action>
double milliseconds(const Action& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

double least(const std::vector<double>& times) { return *std::min_element(times.begin(), times.end()); }

// A frame that is mapped as long as it lives.
class Mapped {
 public:
  Mapped(GstBuffer* buffer, const GstVideoInfo& info) {
    gst_video_frame_map(&frame_, &info, buffer, GST_MAP_READWRITE);
  }
  ~Mapped() { gst_video_frame_unmap(&frame_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  Plane plane(int component) {
    return {reinterpret_cast<std::byte*>(GST_VIDEO_FRAME_COMP_DATA(&frame_, component)),
            GST_VIDEO_FRAME_COMP_WIDTH(&frame_, component), GST_VIDEO_FRAME_COMP_HEIGHT(&frame_, component),
            GST_VIDEO_FRAME_COMP_STRIDE(&frame_, component)};
  }

 private:
  GstVideoFrame frame_{};
};

class Library {
 public:
  void filter(Mapped& in, Mapped& out) {
    const NonLocalMeansParameters luma{.patch_size = 5, .search_size = 15, .sigma = kSigma};
    const nonlocal::ConstPlane y = in.plane(0);
    const Plane to_y = out.plane(0);
    const std::array<nonlocal::ConstPlane, 2> uv{in.plane(1), in.plane(2)};
    const std::array<Plane, 2> to_uv{out.plane(1), out.plane(2)};
    luma_.filter({&y, 1}, {&to_y, 1}, luma);
    chroma_.filter(uv, to_uv, nonlocal::chroma_parameters(luma, true));
  }

 private:
  NonLocalMeans luma_;
  NonLocalMeans chroma_;
};

void measure(int frames) {
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420, 1920, 1080);
  const Buffer noisy = noisy_frame(info);
  const Buffer result(gst_buffer_copy_deep(noisy.get()));
  Mapped in(noisy.get(), info);
  Mapped out(result.get(), info);
  Library library;
  Harness harness(info, "nonlocaldenoise ! fakesink");
  harness.set("sigma", std::to_string(kSigma)).set("search-size", "15");
  harness.set("temporal", "off").set("refinement", "off");
  std::vector<double> by_element;
  std::vector<double> by_library;
  for (int i = -5; i < frames; ++i) {
    Buffer buffer(gst_buffer_copy_deep(noisy.get()));
    const double element_ms = milliseconds([&] { harness.push(std::move(buffer)); });
    const double library_ms = milliseconds([&] { library.filter(in, out); });
    if (i >= 0) {
      by_element.push_back(element_ms);
      by_library.push_back(library_ms);
    }
  }
  std::printf("library  %.2f ms a frame (median of %d; fastest %.2f)\n", median(by_library), frames,
              least(by_library));
  std::printf("element  %.2f ms a frame (median of %d; fastest %.2f)\n", median(by_element), frames,
              least(by_element));
  std::printf("the element adds %.1f %% (median; fastest %.1f %%)\n",
              100 * (median(by_element) / median(by_library) - 1),
              100 * (least(by_element) / least(by_library) - 1));
}

}  // namespace

int main(int argc, char** argv) {
  const int frames = argc > 1 ? std::atoi(argv[1]) : 100;
  if (frames < 1) {
    std::fprintf(stderr, "usage: element_cost [FRAMES]\n");
    return 2;
  }
  g_setenv("GST_PLUGIN_PATH_1_0", PLUGIN_DIR, TRUE);
  gst_init(&argc, &argv);
  measure(frames);
}
