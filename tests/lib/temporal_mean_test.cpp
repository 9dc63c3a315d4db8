// The mean with the frame before against the formula and PyTorch, on every instruction set; and the motion
// that it finds.
#include "network/temporal_mean.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "forced_instruction_set.h"
#include "model/safetensors.h"
#include "motion/motion_search.h"
#include "nonlocal/cpu.h"
#include "reference/temporal_mean.h"

namespace nonlocal::network {
namespace {

using reference::MeanFrame;
using reference::MeanMotion;
using testing::ForcedInstructionSet;

constexpr double kSteps = 128;       // of a code value
constexpr double kTolerance = 0.05;  // of code values: x̂ is rounded nine times to such steps
constexpr int kSquare = 8;

void write(const MeanFrame& frame, const TemporalMean& mean) {
  for (int c = 0; c < frame.channels; ++c) {
    const Plane& plane = mean.planes()[static_cast<std::size_t>(c)];
    for (int y = 0; y < frame.height; ++y) {
      for (int x = 0; x < frame.width; ++x) {
        reinterpret_cast<std::uint16_t*>(plane.row(y))[x] =
            static_cast<std::uint16_t>(std::lround(frame.at(c, x, y) * kSteps));
      }
    }
  }
}

MeanFrame run(TemporalMean& mean, const MeanFrame& frame, int threads = 1) {
  MeanFrame out(frame.channels, frame.width, frame.height);
  mean.run(threads, [&](int c, int y, const float* codes, int) {
    for (int x = 0; x < out.width; ++x) {
      out.at(c, x, y) = codes[x];
    }
  });
  return out;
}

void expect_near(const MeanFrame& got, const MeanFrame& wanted, double tolerance, const std::string& what) {
  for (int c = 0; c < wanted.channels; ++c) {
    for (int y = 0; y < wanted.height; ++y) {
      for (int x = 0; x < wanted.width; ++x) {
        ASSERT_NEAR(std::as_const(got).at(c, x, y), std::as_const(wanted).at(c, x, y), tolerance)
            << what << ": " << c << ", " << x << ", " << y;
      }
    }
  }
}

// Code values of 128ths, as planes hold them.
MeanFrame frame_of(int channels, int width, int height, const std::function<double(int, int, int)>& code) {
  MeanFrame frame(channels, width, height);
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        frame.at(c, x, y) = std::round(std::clamp(code(c, x, y), 0.0, 255.0) * kSteps) / kSteps;
      }
    }
  }
  return frame;
}

// What `mean` makes of `now` behind `before`, with these vectors.
MeanFrame mean_of(double h, const MeanFrame& before, const MeanFrame& now,
                  const std::vector<motion::MotionVector>& vectors, int threads = 1) {
  TemporalMean mean(h);
  mean.prepare(now.width, now.height, now.channels, threads);
  write(before, mean);
  run(mean, before, threads);
  write(now, mean);
  std::copy(vectors.begin(), vectors.end(), mean.vectors().begin());
  return run(mean, now, threads);
}

int squares_of(int side) { return (side + kSquare - 1) / kSquare; }

MeanFrame reference_mean(double h, const MeanFrame& before, const MeanFrame& now,
                         const std::vector<motion::MotionVector>& vectors) {
  return reference::temporal_mean(now, before, h, [&](int x, int y) {
    const motion::MotionVector v =
        vectors[static_cast<std::size_t>(y / kSquare) * squares_of(now.width) + x / kSquare];
    return MeanMotion{v.x / 16.0, v.y / 16.0};
  });
}

std::vector<motion::MotionVector> some_vectors(int width, int height, int reach, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> part(-reach, reach);
  std::vector<motion::MotionVector> vectors(static_cast<std::size_t>(squares_of(width)) * squares_of(height));
  for (motion::MotionVector& v : vectors) {
    v = {static_cast<std::int16_t>(part(random)), static_cast<std::int16_t>(part(random))};
  }
  return vectors;
}

TEST(TemporalMean, IsPyTorchs) {
  const model::Safetensors file(PARITY_FOLDER "/temporal_mean.safetensors");
  const auto frame = [&](const std::string& name) {
    const model::Shape shape = file.shape(name);
    MeanFrame values(static_cast<int>(shape[0]), static_cast<int>(shape[2]), static_cast<int>(shape[1]));
    const std::vector<float> floats = file.floats(name, shape);
    values.codes.assign(floats.begin(), floats.end());
    return values;
  };
  for (const std::string& set : instruction_sets()) {
    const ForcedInstructionSet forced(set);
    for (const std::string name : {"gray", "colours", "beyond", "still"}) {
      const std::vector<float> parts = file.floats(name + ".vectors", file.shape(name + ".vectors"));
      std::vector<motion::MotionVector> vectors;
      for (std::size_t i = 0; i < parts.size(); i += 2) {
        vectors.push_back({static_cast<std::int16_t>(parts[i]), static_cast<std::int16_t>(parts[i + 1])});
      }
      const MeanFrame before = frame(name + ".before");
      const MeanFrame now = frame(name + ".now");
      const double h = file.floats(name + ".h", {1})[0];
      const MeanFrame expected = frame(name + ".expected");
      expect_near(mean_of(h, before, now, vectors), expected, kTolerance, name + " on " + set);
      expect_near(reference_mean(h, before, now, vectors), expected, 1e-4, name + ", the reference");
    }
  }
}

// Minimum, maximum, constant, ramps and random samples, of all kinds of sizes.
TEST(TemporalMean, IsTheFormulaOnEveryContentAndSize) {
  const std::vector<std::pair<const char*, std::function<double(int, int, int)>>> contents = {
      {"black", [](int, int, int) { return 0.0; }},
      {"white", [](int, int, int) { return 255.0; }},
      {"gray", [](int, int, int) { return 77.0; }},
      {"ramp", [](int c, int x, int y) { return x * 3.7 + y + c * 9; }},
      {"squares", [](int, int x, int y) { return (x / 3 + y / 2) % 2 != 0 ? 255.0 : 0.0; }},
      {"random", [](int c, int x, int y) { return (x * 7919 + y * 104729 + c * 31) % 251; }},
  };
  for (const std::string& set : instruction_sets()) {
    const ForcedInstructionSet forced(set);
    for (const auto& [width, height] :
         std::vector<std::pair<int, int>>{{1, 1}, {2, 3}, {17, 9}, {33, 65}, {67, 40}}) {
      const std::vector<motion::MotionVector> vectors = some_vectors(width, height, 70, 3);
      for (const auto& [name, code] : contents) {
        const auto& content = code;
        const MeanFrame now = frame_of(1, width, height, content);
        const MeanFrame before =
            frame_of(1, width, height, [&](int c, int x, int y) { return content(c, x + 1, y) + 2; });
        for (const double h : {0.5, 8.0, 255.0}) {
          const std::string what = std::string(name) + " of " + std::to_string(width) + "x" +
                                   std::to_string(height) + ", h " + std::to_string(h) + " on " + set;
          // The share of what is rounded to steps changes fastest where w is one half.
          expect_near(mean_of(h, before, now, vectors), reference_mean(h, before, now, vectors),
                      kTolerance + (h < 1 ? 0.1 : 0), what);
        }
      }
    }
  }
}

TEST(TemporalMean, ThreadsGiveTheSameValues) {
  const auto code = [](int c, int x, int y) { return 100.0 + (x * 31 + y * 17 + c * 5) % 23; };
  const MeanFrame before = frame_of(3, 101, 150, code);
  const MeanFrame now = frame_of(3, 101, 150, [&](int c, int x, int y) { return code(c, x, y + 1) + 1; });
  const std::vector<motion::MotionVector> vectors = some_vectors(101, 150, 40, 8);
  const MeanFrame alone = mean_of(9, before, now, vectors, 1);
  for (const int threads : {2, 3, 7}) {
    expect_near(mean_of(9, before, now, vectors, threads), alone, 0, std::to_string(threads) + " threads");
  }
}

// Waves and noise that go on for ever.
double scene(double x, double y) {
  return 120 + 40 * std::sin(x * 0.21) * std::cos(y * 0.17) + 30 * std::sin(x * 0.07 - y * 0.4) +
         25 * std::sin((x + 2 * y) * 0.05);
}

MeanFrame seen(double dx, double dy) {
  return frame_of(1, 176, 144, [=](int, int x, int y) { return scene(x + dx, y + dy); });
}

// Away from the borders, where what comes in was nowhere before.
TEST(TemporalMean, FindsMotionToPartsOfASample) {
  for (const auto& [dx, dy] : std::vector<std::pair<double, double>>{
           {0, 0}, {3, -2}, {0.5, 0}, {-1.25, 0.75}, {6.5, 4.25}, {-0.25, -5.5}}) {
    TemporalMean mean(4);
    mean.prepare(176, 144, 1, 2);
    write(seen(0, 0), mean);
    mean.find_motion(2);
    run(mean, seen(0, 0));
    write(seen(dx, dy), mean);
    mean.find_motion(2);
    double sum = 0;
    int count = 0;
    for (int row = 4; row < 14; ++row) {
      for (int column = 4; column < 18; ++column, ++count) {
        const motion::MotionVector v = mean.vectors()[static_cast<std::size_t>(row) * 22 + column];
        const double error = std::hypot(v.x / 16.0 - dx, v.y / 16.0 - dy);
        ASSERT_LT(error, 0.5) << dx << ", " << dy << ": " << column << ", " << row;
        sum += error;
      }
    }
    const double whole = std::hypot(dx - std::round(dx), dy - std::round(dy));  // what whole samples leave
    EXPECT_LT(sum / count, 0.02 + whole / 2) << dx << ", " << dy;
  }
}

double error_of(const MeanFrame& frame, const MeanFrame& clean) {
  double sum = 0;
  int count = 0;
  for (int y = 32; y < frame.height - 32; ++y) {
    for (int x = 32; x < frame.width - 32; ++x, ++count) {
      const double difference = frame.at(0, x, y) - clean.at(0, x, y);
      sum += difference * difference;
    }
  }
  return std::sqrt(sum / count);
}

// Errors that two frames do not share become smaller, along the motion; of another scene nothing is seen.
TEST(TemporalMean, AveragesWhatIsAlikeAndNothingElse) {
  std::mt19937 random(4);
  std::normal_distribution<double> noise(0, 3);
  const auto noisy = [&](double dx, double dy) {
    return frame_of(1, 176, 144, [&](int, int x, int y) { return scene(x + dx, y + dy) + noise(random); });
  };
  TemporalMean mean(8);
  mean.prepare(176, 144, 1, 1);
  const MeanFrame first = noisy(0, 0);
  write(first, mean);
  mean.find_motion(1);
  expect_near(run(mean, first), first, 1e-4, "the first frame");
  const MeanFrame second = noisy(3.5, -1.25);
  write(second, mean);
  mean.find_motion(1);
  const MeanFrame clean = seen(3.5, -1.25);
  EXPECT_LT(error_of(run(mean, second), clean), 0.8 * error_of(second, clean));  // 0.71 at best
  const MeanFrame other =
      frame_of(1, 176, 144, [](int, int x, int y) { return (x / 5 + y / 7) % 2 != 0 ? 230.0 : 20.0; });
  write(other, mean);
  mean.find_motion(1);
  expect_near(run(mean, other), other, 0.01, "behind a cut");
  mean.reset();
  write(second, mean);
  mean.find_motion(1);
  expect_near(run(mean, second), second, 1e-4, "behind a reset");
  mean.prepare(60, 40, 1, 1);
  const MeanFrame small = frame_of(1, 60, 40, [](int, int x, int y) { return x + y; });
  write(small, mean);
  mean.find_motion(1);
  expect_near(run(mean, small), small, 1e-4, "of another size");
}

// What was a dot of a few samples is seen for no frame longer.
TEST(TemporalMean, SmallThingsThatAreGoneLeaveLittle) {
  const MeanFrame flat = frame_of(1, 64, 48, [](int, int, int) { return 100; });
  for (const int side : {1, 2, 4}) {
    for (const double contrast : {4.0, 8.0, 12.0, 24.0, 60.0, 150.0}) {
      const MeanFrame dot = frame_of(1, 64, 48, [&](int, int x, int y) {
        const bool is_dot = x >= 30 && x < 30 + side && y >= 20 && y < 20 + side;
        return is_dot ? 100 + contrast : 100;
      });
      const MeanFrame still = mean_of(4, dot, flat, some_vectors(64, 48, 0, 1));
      const double left = *std::max_element(still.codes.begin(), still.codes.end()) - 100;
      EXPECT_LT(left, side == 1 ? 3.2 : 1.6) << side << ", " << contrast;
      if (contrast > 20) {
        EXPECT_LT(left, 0.5) << side << ", " << contrast;
      }
    }
  }
}

}  // namespace
}  // namespace nonlocal::network
