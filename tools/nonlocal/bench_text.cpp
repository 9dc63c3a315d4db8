#include "bench_text.h"

#include <nonlocal/cpu.h>
#include <nonlocal/text_encoder.h>
#include <nonlocal/vision_encoder.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench.h"
#include "bench_text_peer.h"
#include "frame_times.h"
#include "gst.h"
#include "json_text.h"
#include "progress.h"
#include "random_clip.h"
#include "subprocess.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

struct Options : CommonBenchOptions {
  int tokens = 12;
  int layers = kLayers;
  std::string precision = "f32";
  int rounds = 3;
};

struct Result {
  FrameTimes text, vision;
  double text_load_ms = 0, vision_load_ms = 0;
  std::string precision;
  bool has_peer = false;
  std::string peer_problem, peer_products;
  FrameTimes peer_text, peer_vision;
};

// Both encoders of a random model, and something to encode.
class Encoders {
 public:
  explicit Encoders(const Options& options) {
    write_random_clip(folder_.file(""), options.layers);
    EncoderParameters parameters;
    parameters.threads = options.threads;
    parameters.precision =
        options.precision == "bf16" ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32;
    Stopwatch watch;
    text_.emplace(folder_.file(""), parameters);
    text_load_ms_ = watch.ms();
    watch = {};
    vision_.emplace(folder_.file(""), parameters);
    vision_load_ms_ = watch.ms();
    for (int i = 0; i < options.tokens; ++i) ids_.push_back(i);
    tokens_.resize(ids_.size() * kTextTower.width);
    pooled_.resize(kEmbedding);
    constexpr int kSide = kPatch * kGrid;
    samples_.assign(kSide * kSide, 0.5F);
    planes_.assign(3, {samples_.data(), kSide, kSide, kSide});
  }

  void warm_up() {
    encode_text();
    encode_vision();
  }
  void measure(Result& result) {
    check_interrupted();
    Stopwatch watch;
    encode_text();
    result.text.add(watch.ms());
    watch = {};
    encode_vision();
    result.vision.add(watch.ms());
  }
  void describe(Result& result) const {
    result.precision = text_->precision() == AttentionPrecision::kBfloat16 ? "bf16" : "f32";
    result.text_load_ms = text_load_ms_;
    result.vision_load_ms = vision_load_ms_;
  }

 private:
  void encode_text() {
    text_->encode(ids_, {tokens_.data(), static_cast<int>(ids_.size()), kTextTower.width, kTextTower.width},
                  pooled_);
  }
  void encode_vision() { vision_->encode(planes_, {.pooled = {pooled_.data(), 1, kEmbedding, kEmbedding}}); }

  TemporaryFolder folder_;
  std::optional<TextEncoder> text_;
  std::optional<VisionEncoder> vision_;
  double text_load_ms_ = 0, vision_load_ms_ = 0;
  std::vector<std::int32_t> ids_;
  std::vector<float> tokens_, pooled_, samples_;
  std::vector<ConstFloatPlane> planes_;
};

void measure_alone(const Options& options, Encoders& encoders, Result& result) {
  Progress progress(0, options.shows_no_progress(), "call");
  while (result.text.count() < kFewestTimes || progress.seconds() < options.seconds) {
    encoders.measure(result);
    progress.show(result.text.count(), "");
  }
}

// Ours, PyTorch, and so on round by round: whatever else the machine does meets both alike.
void measure_with_peer(const Options& options, Encoders& encoders, Result& result) {
  constexpr double kTurnMs = 1000;
  std::optional<PyTorchTowers> peer;
  result.has_peer = has_pytorch();
  Progress progress(options.rounds, options.shows_no_progress(), "round");
  for (int round = 1; round <= options.rounds; ++round) {
    const Stopwatch turn;
    do encoders.measure(result);
    while (turn.ms() < kTurnMs);
    if (result.has_peer && result.peer_problem.empty()) {
      result.peer_problem = problem_of([&] {
        if (!peer) peer.emplace(options.tokens, options.layers, options.threads);
        const TowerTimes times = peer->measure();
        result.peer_text.add(times.text_ms);
        result.peer_vision.add(times.vision_ms);
      });
    }
    progress.show(round, "");
  }
  if (peer) result.peer_products = peer->products_by();
}

Result bench(const Options& options) {
  Result result;
  Encoders encoders(options);
  encoders.describe(result);
  encoders.warm_up();
  if (options.peers)
    measure_with_peer(options, encoders, result);
  else
    measure_alone(options, encoders, result);
  return result;
}

json times_json(const FrameTimes& times, double load_ms) {
  return {
      {"ms_min", times.min()}, {"ms_median", times.median()}, {"calls", times.count()}, {"load_ms", load_ms}};
}

json peer_json(const Result& result) {
  if (!result.has_peer) return nullptr;
  if (!result.peer_problem.empty()) return {{"problem", result.peer_problem}};
  return {
      {"products_by", result.peer_products},
      {"measurements", result.peer_text.count()},
      {"text", {{"ms_min", result.peer_text.min()}, {"ratio", result.peer_text.min() / result.text.min()}}},
      {"vision",
       {{"ms_min", result.peer_vision.min()}, {"ratio", result.peer_vision.min() / result.vision.min()}}}};
}

json as_json(const Options& options, const Result& result) {
  return {{"tokens", options.tokens},
          {"layers", options.layers},
          {"precision", result.precision},
          {"threads", options.threads},
          {"isa", instruction_set()},
          {"text", times_json(result.text, result.text_load_ms)},
          {"vision", times_json(result.vision, result.vision_load_ms)},
          {"peers", options.peers ? json{{"pytorch", peer_json(result)}} : json()}};
}

std::string peer_text(const Result& result) {
  if (!result.has_peer) return "not installed";
  if (!result.peer_problem.empty()) return result.peer_problem;
  return formatted("text %.2f ms, %.1f x ours; vision %.2f ms, %.1f x ours; products by %s",
                   result.peer_text.min(), result.peer_text.min() / result.text.min(),
                   result.peer_vision.min(), result.peer_vision.min() / result.vision.min(),
                   result.peer_products.c_str());
}

void print(const Options& options, const Result& result) {
  std::printf("encoders   of ViT-B/32's size with random weights, %d layers, %s\n", options.layers,
              result.precision.c_str());
  std::printf("runs on    %s, %d thread%s\n", instruction_set().c_str(), options.threads,
              options.threads == 1 ? "" : "s");
  std::printf("text       %.2f ms at least, median %.2f of %d prompts of %d tokens\n", result.text.min(),
              result.text.median(), result.text.count(), options.tokens);
  std::printf("vision     %.2f ms at least, median %.2f of %d pictures of %d patches\n", result.vision.min(),
              result.vision.median(), result.vision.count(), kGrid * kGrid);
  std::printf("loading    text %.0f ms, vision %.0f ms\n", result.text_load_ms, result.vision_load_ms);
  if (options.peers) std::printf("PyTorch    %s\n", peer_text(result).c_str());
}

void run(Options options) {
  catch_interrupts();
  take_up(options);
  const Result result = bench(options);
  if (options.as_json)
    std::cout << json_text(as_json(options, result), 2) << std::endl;
  else
    print(options, result);
}

}  // namespace

void add_bench_text(CLI::App& bench) {
  auto* command = bench.add_subcommand("text", "Encoders of prompts and pictures, in process");
  command->footer(
      "Towers of ViT-B/32's size with random weights. With --peers the library runs for a moment, then the\n"
      "same towers by PyTorch of /usr/bin/python3 in float32, with one thread or all, whichever is faster,\n"
      "and so on round by round. Which library multiplies for PyTorch is said: where the system has "
      "several,\n"
      "LD_LIBRARY_PATH chooses.");
  const auto options = std::make_shared<Options>();
  command->add_option("--tokens", options->tokens, "Tokens of the prompt, with start and end")
      ->check(CLI::Range(1, kContext))
      ->capture_default_str();
  command->add_option("--layers", options->layers, "Layers of each tower")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--precision", options->precision, "What is multiplied")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  const auto flags = add_common(*command, *options, "Measure PyTorch in turn with it");
  command->add_option("--rounds", options->rounds, "Rounds with peers")
      ->check(CLI::Range(1, 1000))
      ->needs(flags.peers)
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
