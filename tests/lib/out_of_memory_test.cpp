// Memory that runs out, at each allocation of an object's first frame in turn: the frame throws, and the next
// one comes out as from a new object. (Frames behind the first allocate nothing; other tests count that.)
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <vector>

#include "grade_model.h"
#include "image.h"
#include "nonlocal/cross_attention_filter.h"
#include "nonlocal/frame_grader.h"
#include "nonlocal/map_tracker.h"
#include "nonlocal/network.h"
#include "nonlocal/noise_estimate.h"
#include "nonlocal/non_local_means.h"
#include "nonlocal/refinement.h"
#include "nonlocal/relevance.h"
#include "nonlocal/temporal_fusion.h"
#include "nonlocal/video_denoiser.h"
#include "random_matrix.h"

#ifndef NONLOCAL_SANITIZED

namespace {

constexpr int kNever = 1 << 30;
std::atomic<int> until_failure = kNever;

// oneDNN has its own way to say that it has none.
bool is_onednn(const void* code) {
  Dl_info from;
  return dladdr(code, &from) != 0 && from.dli_fname != nullptr &&
         std::strstr(from.dli_fname, "libdnnl") != nullptr;
}

void* allocate(std::size_t size, std::size_t alignment, const void* caller) {
  const bool is_counting = until_failure < kNever && !is_onednn(caller);
  if (is_counting && until_failure-- <= 0) {
    throw std::bad_alloc();
  }
  void* memory =
      std::aligned_alloc(alignment, (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, 16, __builtin_return_address(0)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace nonlocal {
namespace {

using testing::Image;

constexpr int kWidth = 70;
constexpr int kHeight = 50;
constexpr int kThreads = 2;

Image noise(int planes, int width = kWidth, int height = kHeight, unsigned seed = 1) {
  std::mt19937 random(seed);
  Image image(width, height, 8, planes);
  for (int c = 0; c < planes; ++c) {
    for (int i = 0; i < width * height; ++i) {
      image.set(c, i % width, i / width, 60 + i % width + static_cast<int>(random() % 40));
    }
  }
  return image;
}

// A frame with a new object: what comes out, and whether memory ran out where it was to run out.
struct Case {
  std::function<void()> make;
  std::function<void()> run;
  std::function<Image()> result;
};

void expect_survived(const Case& c) {
  c.make();
  c.run();
  const Image expected = c.result();
  int failures = 0;
  for (int n = 0;; n += 1 + n / 50) {
    ASSERT_LT(n, 100'000);
    c.make();
    bool has_failed = false;
    until_failure = n;
    try {
      c.run();
    } catch (const std::bad_alloc&) {
      has_failed = true;
    }
    until_failure = kNever;
    if (!has_failed) {
      break;
    }
    ++failures;
    c.run();
    ASSERT_TRUE(c.result() == expected) << "after allocation " << n << " failed";
  }
  EXPECT_GT(failures, 0);
}

TEST(OutOfMemory, NonLocalMeans) {
  for (const NonLocalMeansMethod method : {NonLocalMeansMethod::kDirect, NonLocalMeansMethod::kAttention}) {
    const Image in = noise(1);
    Image out(kWidth, kHeight, 8, 1);
    std::unique_ptr<NonLocalMeans> filter;
    const auto planes_in = in.views();
    const auto planes_out = out.views();
    NonLocalMeansParameters parameters;
    parameters.threads = kThreads;
    parameters.method = method;
    expect_survived({[&] { filter = std::make_unique<NonLocalMeans>(); },
                     [&] { filter->filter(planes_in, planes_out, parameters); }, [&] { return out; }});
  }
}

TEST(OutOfMemory, TemporalFusion) {
  const Image luma = noise(1);
  const Image chroma = noise(2, kWidth / 2, kHeight / 2, 2);
  std::unique_ptr<TemporalFusion> fusion;
  const auto guides = luma.views();
  const auto others = chroma.views();
  const auto result = [&] {
    Image made(kWidth, kHeight, 16, 1);
    const ConstPlane fused = fusion->guides()[0];
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        made.set(0, x, y, reinterpret_cast<const std::uint16_t*>(fused.row(y))[x]);
      }
    }
    return made;
  };
  TemporalFusionParameters parameters;
  parameters.threads = kThreads;
  expect_survived({[&] { fusion = std::make_unique<TemporalFusion>(); },
                   [&] { fusion->fuse(guides, others, parameters); }, result});
}

TEST(OutOfMemory, NoiseEstimator) {
  const Image in = noise(1);
  std::unique_ptr<NoiseEstimator> estimator;
  double sigma = 0;
  const auto planes = in.views();
  const auto result = [&] {
    Image made(1, 1, 16, 1);
    made.set(0, 0, 0, static_cast<int>(sigma * 1000));
    return made;
  };
  expect_survived({[&] { estimator = std::make_unique<NoiseEstimator>(); },
                   [&] { sigma = estimator->update(planes[0], kThreads); }, result});
}

TEST(OutOfMemory, VideoDenoiser) {
  for (const bool is_joint : {false, true}) {
    Image luma = noise(1);
    Image chroma = noise(2, kWidth / 2, kHeight / 2, 2);
    std::unique_ptr<VideoDenoiser> denoiser;
    const auto luma_planes = luma.views();
    const auto chroma_planes = chroma.views();
    VideoDenoiserParameters parameters;
    parameters.threads = kThreads;
    parameters.joint_chroma = is_joint;
    expect_survived({[&] {
                       denoiser = std::make_unique<VideoDenoiser>();
                       denoiser->refine_with(find_model("refine_balanced"));
                     },
                     [&] {
                       const int left = until_failure;  // the frame is filtered in place
                       until_failure = kNever;
                       const Image fresh = noise(1);
                       const Image fresh_chroma = noise(2, kWidth / 2, kHeight / 2, 2);
                       for (int i = 0; i < kWidth * kHeight; ++i) {
                         luma.set(0, i % kWidth, i / kWidth, fresh.get(0, i % kWidth, i / kWidth));
                       }
                       for (int i = 0; i < kWidth * kHeight / 4; ++i) {
                         for (int c = 0; c < 2; ++c) {
                           chroma.set(c, i % (kWidth / 2), i / (kWidth / 2),
                                      fresh_chroma.get(c, i % (kWidth / 2), i / (kWidth / 2)));
                         }
                       }
                       denoiser->reset();
                       until_failure = left;
                       denoiser->filter(luma_planes, chroma_planes, parameters);
                     },
                     [&] { return luma; }});
  }
}

TEST(OutOfMemory, Networks) {
  for (const char* name : {"restore", "gaussian"}) {
    const Image in = noise(1);
    Image out(kWidth, kHeight, 8, 1);
    std::unique_ptr<Network> network;
    const auto planes_in = in.views();
    const auto planes_out = out.views();
    expect_survived({[&] { network = std::make_unique<Network>(find_model(name)); },
                     [&] { network->run(planes_in, planes_out, {.condition = {}, .threads = kThreads}); },
                     [&] { return out; }});
  }
}

constexpr ColourFormat kGray = {ColourModel::kGray, ColourMatrix::kBt709, ColourRange::kFull};

TEST(OutOfMemory, FrameGrader) {
  testing::RandomShape shape;
  shape.features.frequencies = 2;
  const CrossAttentionFilter model = testing::random_weights(shape).filter();
  const auto look = GradeLook::bake(model, kGray);
  for (const bool is_baked : {false, true}) {
    const Image in = noise(1);
    Image out(kWidth, kHeight, 8, 1);
    std::unique_ptr<FrameGrader> grader;
    const auto planes_in = in.views();
    const auto planes_out = out.views();
    expect_survived({[&] { grader = std::make_unique<FrameGrader>(); },
                     [&] {
                       is_baked ? grader->run(planes_in, planes_out, kGray, *look, {.threads = kThreads})
                                : grader->run(planes_in, planes_out, kGray, model, {.threads = kThreads});
                     },
                     [&] { return out; }});
  }
}

Image image_of(const ConstMatrix& map) {
  Image made(std::max(map.columns, 1), std::max(map.rows, 1), 16, 1);
  for (int y = 0; y < map.rows; ++y) {
    for (int x = 0; x < map.columns; ++x) {
      made.set(0, x, y, static_cast<int>(map.row(y)[x] * 1000));
    }
  }
  return made;
}

TEST(OutOfMemory, TokenMaps) {
  const CrossAttentionFilter model = testing::random_weights({}).filter();
  const Image in = noise(1);
  std::unique_ptr<TokenMaps> maps;
  const auto planes = in.views();
  expect_survived({[&] { maps = std::make_unique<TokenMaps>(); },
                   [&] { maps->run(planes, kGray, model, {.columns = 8, .rows = 6, .threads = kThreads}); },
                   [&] { return image_of(maps->map(1)); }});
}

TEST(OutOfMemory, MapTracker) {
  const Image in = noise(1);
  const testing::OwnMatrix map = testing::OwnMatrix::random(6, 8, 0.2, 3);
  std::unique_ptr<MapTracker> tracker;
  const auto planes = in.views();
  expect_survived({[&] { tracker = std::make_unique<MapTracker>(); },
                   [&] {
                     tracker->follow(planes, kGray, {.threads = kThreads});
                     tracker->begin();
                     tracker->found(map.view(), {.threads = kThreads});
                     tracker->follow(planes, kGray, {.threads = kThreads});
                   },
                   [&] { return image_of(tracker->map()); }});
}

}  // namespace
}  // namespace nonlocal

#endif
