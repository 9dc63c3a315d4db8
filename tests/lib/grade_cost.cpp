// What a frame costs to grade: grade_cost [WIDTHxHEIGHT ...]
//
// Exactly and baked, with places and without, I420 and RGBx of 8 bits, 1 and 2 threads: milliseconds by the
// clock and frames a second, the least of many frames taken in turn. The model has 16 tokens, 4 heads, 11
// features of the colour, with places 2 frequencies, and one layer; the pictures are waves of colour with
// grain.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grade_model.h"
#include "nonlocal/cpu.h"
#include "nonlocal/frame_grader.h"

namespace {

using namespace nonlocal;

constexpr int kRounds = 15;

double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A frame in place: planes that look like a picture's.
class Frame {
 public:
  Frame(int width, int height, bool is_rgb) {
    const auto fill = [this](int w, int h, int step, double phase) {
      std::vector<std::byte>& samples = memory_.emplace_back(static_cast<std::size_t>(w) * h * step);
      unsigned seed = 1;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const double x = static_cast<double>(i / step % w) / w;
        const double y = static_cast<double>(i / step / w) / h;
        seed = seed * 1664525 + 1013904223;
        const double grain = static_cast<double>(seed >> 24) / 32 - 4;
        const double wave =
            std::sin(7 * x + phase + 2.0 * static_cast<double>(i % step)) * std::cos(5 * y - phase);
        samples[i] = static_cast<std::byte>(std::lround(125 + 90 * wave + grain));
      }
      return samples.data();
    };
    if (is_rgb) {
      std::byte* at = fill(width, height, 4, 0);
      for (int c = 0; c < 3; ++c) {
        planes.push_back({at + c, width, height, 4 * width, 8, 4});
      }
    } else {
      const int w = (width + 1) / 2;
      const int h = (height + 1) / 2;
      planes = {{fill(width, height, 1, 0), width, height, width},
                {fill(w, h, 1, 1), w, h, w},
                {fill(w, h, 1, 2), w, h, w}};
    }
  }
  std::vector<Plane> planes;

 private:
  std::vector<std::vector<std::byte>> memory_;
};

struct Candidate {
  std::string name;
  int threads;
  std::function<void()> run;
  double least = 1e9;
};

CrossAttentionFilter filter_of(bool has_places) {
  testing::RandomShape shape;
  shape.features = {{"r", "g", "b", "r*r", "g*g", "b*b", "r*g", "g*b", "b*r", "luma*luma*luma", "chroma"},
                    has_places ? 2 : 0};
  shape.heads = 4;
  shape.dim = 16;
  shape.value_dim = 8;
  shape.tokens = 16;
  shape.embedding = 64;
  shape.sharpness = 0.5;
  return testing::random_weights(shape).filter();
}

void measure(int width, int height) {
  std::vector<Candidate> all;
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::unique_ptr<FrameGrader>> graders;
  for (const bool is_rgb : {false, true}) {
    const ColourFormat format =
        is_rgb ? ColourFormat{}
               : ColourFormat{ColourModel::kYCbCr, ColourMatrix::kBt709, ColourRange::kLimited};
    for (const bool has_places : {false, true}) {
      const CrossAttentionFilter filter = filter_of(has_places);
      const CrossAttentionFilter other = filter_of(has_places);
      const auto look = GradeLook::bake(filter, format);
      const auto to = GradeLook::bake(other, format);
      const std::string of = std::string(is_rgb ? "RGBx" : "I420") + (has_places ? ", places" : "        ");
      std::printf("%s: %d^3 colours at %dx%d places, %.2f codes off at random\n", of.c_str(),
                  look->lattice_size(), look->columns(), look->rows(), look->error());
      Frame* frame = frames.emplace_back(std::make_unique<Frame>(width, height, is_rgb)).get();
      for (const int threads : {1, 2}) {
        FrameGrader* grader = graders.emplace_back(std::make_unique<FrameGrader>()).get();
        const std::vector<ConstPlane> in(frame->planes.begin(), frame->planes.end());
        const std::span<const Plane> out = frame->planes;
        const GradeParameters p{1e-3, threads};  // the picture stays what it is
        all.push_back({of + " exact", threads, [=] { grader->run(in, out, format, filter, p); }});
        all.push_back({of + " baked", threads, [=] { grader->run(in, out, format, *look, p); }});
        auto weight = std::make_shared<double>(0.5);
        all.push_back({of + " fading", threads, [=] {
                         *weight = 1.01 - *weight;  // another one each frame
                         grader->run(in, out, format, *look, *to, *weight, p);
                       }});
        all.push_back({of + " to bake", threads,
                       [=] { GradeLook::bake(filter, format, {.threads = threads}); }});
      }
    }
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Candidate& c : all) {
      const double start = now();
      c.run();
      c.least = std::min(c.least, now() - start);
    }
    std::fprintf(stderr, "\rround %d of %d", round + 1, kRounds);
  }
  std::fprintf(stderr, "\r                \r");
  std::printf("%dx%d, %s\n", width, height, instruction_set().c_str());
  for (const Candidate& c : all) {
    std::printf("  %-22s %d thread%s %8.2f ms %7.1f fps\n", c.name.c_str(), c.threads,
                c.threads == 1 ? " " : "s", c.least, 1000 / c.least);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::pair<int, int>> sizes;
  for (int i = 1; i < argc; ++i) {
    int width = 0;
    int height = 0;
    if (std::sscanf(argv[i], "%dx%d", &width, &height) != 2) {
      std::fprintf(stderr, "usage: grade_cost [WIDTHxHEIGHT ...]\n");
      return 2;
    }
    sizes.emplace_back(width, height);
  }
  if (sizes.empty()) {
    sizes = {{1920, 1080}, {3840, 2160}};
  }
  try {
    for (const auto& [width, height] : sizes) {
      measure(width, height);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "grade_cost: %s\n", e.what());
    return 1;
  }
}
