#include "bench_attention.h"

#include <nonlocal/attention.h>
#include <nonlocal/cpu.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "bench.h"
#include "bench_attention_peers.h"
#include "frame_times.h"
#include "gst.h"
#include "json_text.h"
#include "peak_memory.h"
#include "progress.h"
#include "reference/attention.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

struct Options : CommonBenchOptions {
  int tokens = 14400;
  int keys = 0;  // 0: as many
  int dim = 64;
  int heads = 1;
  std::string precision = "automatic";
  int rounds = 5;

  [[nodiscard]] AttentionParameters parameters() const {
    AttentionParameters p;
    p.queries = tokens;
    p.keys = keys;
    p.dim = dim;
    p.heads = heads;
    p.threads = threads;
    p.precision = precision == "f32"    ? AttentionPrecision::kFloat32
                  : precision == "bf16" ? AttentionPrecision::kBfloat16
                                        : AttentionPrecision::kAutomatic;
    return p;
  }
  [[nodiscard]] double pairs() const { return static_cast<double>(heads) * tokens * keys; }
};

struct PeerTimes {
  std::string name;
  std::string title;
  bool is_installed = false;
  FrameTimes times;
  std::string problem;
};

struct Result {
  std::string isa;
  bool is_bfloat16 = false;
  double operations = 0;
  FrameTimes times;
  double relative_error = 0;
  double working_mib = 0;
  std::optional<double> peak_memory_mib;
  std::vector<PeerTimes> peers;

  [[nodiscard]] double gflop_per_s() const { return operations / times.min() / 1e6; }
};

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return normal(generator); });
  return values;
}

// Attention among Gaussian features.
class OurAttention {
 public:
  explicit OurAttention(const AttentionParameters& p)
      : p_(p),
        width_(p.heads * p.dim),
        query_(random_values(static_cast<size_t>(p.queries) * width_, 1)),
        key_(random_values(static_cast<size_t>(p.keys) * width_, 2)),
        value_(random_values(static_cast<size_t>(p.keys) * width_, 3)),
        out_(query_.size()) {}

  // Untimed; returns the memory that it took beyond the matrices, in MiB.
  std::optional<double> warm_up() {
    const PeakMemory memory;
    attention_.emplace(p_);
    run();
    return memory.mib();
  }

  void measure(FrameTimes& times) {
    check_interrupted();
    const Stopwatch watch;
    run();
    times.add(watch.ms());
  }

  [[nodiscard]] const Attention& attention() const { return *attention_; }

  // The largest difference from the formula in double precision, relative to the largest value of it, of some
  // queries.
  [[nodiscard]] double relative_error() const {
    constexpr int kQueries = 16;
    double largest = 0;
    double difference = 0;
    for (int i = 0; i < std::min(kQueries, p_.queries); ++i) {
      const auto at = static_cast<int>(static_cast<int64_t>(i) * p_.queries / kQueries) % p_.queries;
      AttentionParameters one = p_;
      one.queries = 1;
      const ConstMatrix query{query_.data() + static_cast<ptrdiff_t>(at) * width_, 1, width_, width_};
      const std::vector<double> exact = reference::attention(one, {query, view(key_), view(value_)});
      for (int c = 0; c < width_; ++c) {
        largest = std::max(largest, std::abs(exact[c]));
        difference = std::max(difference, std::abs(exact[c] - out_[static_cast<size_t>(at) * width_ + c]));
      }
    }
    return difference / largest;
  }

 private:
  [[nodiscard]] ConstMatrix view(const std::vector<float>& m) const {
    return {m.data(), static_cast<int>(m.size() / width_), width_, width_};
  }
  void run() {
    attention_->run({view(query_), view(key_), view(value_)}, {out_.data(), p_.queries, width_, width_});
  }

  AttentionParameters p_;
  int width_;
  std::vector<float> query_, key_, value_, out_;
  std::optional<Attention> attention_;
};

void check(Options& options) {
  take_up(options);
  if (options.keys == 0) options.keys = options.tokens;
}

void measure_alone(const Options& options, OurAttention& ours, FrameTimes& times) {
  Progress progress(0, options.shows_no_progress(), "call");
  while (times.count() < kFewestTimes || progress.seconds() < options.seconds) {
    ours.measure(times);
    progress.show(times.count(), "");
  }
}

// Makes the peer the first time. What fails once is not tried again.
void try_peer(const KnownAttentionPeer& known, std::unique_ptr<AttentionPeer>& peer, PeerTimes& result) {
  if (!result.is_installed || !result.problem.empty()) return;
  result.problem = problem_of([&] {
    if (!peer) peer = known.make();
    result.times.add(peer->measure());
  });
}

// Ours, each peer, and so on round by round: whatever else the machine does meets all alike.
void measure_with_peers(const Options& options, OurAttention& ours, Result& result) {
  constexpr double kTurnMs = 500;
  const AttentionTask task{options.tokens, options.keys,       options.dim,
                           options.heads,  result.is_bfloat16, options.threads};
  const std::vector<KnownAttentionPeer> known = known_attention_peers(task);
  std::vector<std::unique_ptr<AttentionPeer>> peers(known.size());
  for (const KnownAttentionPeer& peer : known)
    result.peers.push_back({peer.name, peer.title, peer.make != nullptr, {}, ""});
  Progress progress(options.rounds, options.shows_no_progress(), "round");
  for (int round = 1; round <= options.rounds; ++round) {
    const Stopwatch turn;
    do ours.measure(result.times);
    while (turn.ms() < kTurnMs);
    for (size_t i = 0; i < peers.size(); ++i) try_peer(known[i], peers[i], result.peers[i]);
    progress.show(round, "");
  }
}

Result bench(const Options& options) {
  Result result;
  result.isa = instruction_set();
  OurAttention ours(options.parameters());
  result.peak_memory_mib = ours.warm_up();
  result.is_bfloat16 = ours.attention().precision() == AttentionPrecision::kBfloat16;
  result.operations = ours.attention().operations();
  result.working_mib = static_cast<double>(ours.attention().working_bytes()) / (1 << 20);
  if (options.peers)
    measure_with_peers(options, ours, result);
  else
    measure_alone(options, ours, result.times);
  result.relative_error = ours.relative_error();
  return result;
}

json peers_json(const Result& result) {
  json peers = json::object();
  for (const PeerTimes& peer : result.peers) {
    json& entry = peers[peer.name];
    if (!peer.is_installed) continue;
    if (!peer.problem.empty()) {
      entry = {{"ms_min", nullptr}, {"ratio", nullptr}, {"problem", peer.problem}};
    } else {
      const double ms = peer.times.min();
      entry = {{"ms_min", ms}, {"ratio", ms / result.times.min()}, {"measurements", peer.times.count()}};
    }
  }
  return peers;
}

json as_json(const Options& options, const Result& result) {
  return {
      {"tokens", options.tokens},
      {"keys", options.keys},
      {"dim", options.dim},
      {"heads", options.heads},
      {"precision", result.is_bfloat16 ? "bf16" : "f32"},
      {"threads", options.threads},
      {"isa", result.isa},
      {"calls", result.times.count()},
      {"ms_min", result.times.min()},
      {"ms_median", result.times.median()},
      {"ns_per_pair", result.times.min() * 1e6 / options.pairs()},
      {"gflop_per_s", result.gflop_per_s()},
      {"relative_error", result.relative_error},
      {"working_memory_mib", result.working_mib},
      {"peak_memory_mib", result.peak_memory_mib ? json(*result.peak_memory_mib) : json()},
      {"peers", options.peers ? peers_json(result) : json()},
  };
}

std::string peer_text(const PeerTimes& peer, double our_ms) {
  if (!peer.is_installed) return "not installed";
  if (!peer.problem.empty()) return peer.problem;
  return formatted("%.2f ms, %.2f x ours", peer.times.min(), peer.times.min() / our_ms);
}

void print(const Options& options, const Result& result) {
  std::printf("attention  %d queries, %d keys, %d head%s of %d channels, %s\n", options.tokens, options.keys,
              options.heads, options.heads == 1 ? "" : "s", options.dim, result.is_bfloat16 ? "bf16" : "f32");
  std::printf("runs on    %s, %d thread%s\n", result.isa.c_str(), options.threads,
              options.threads == 1 ? "" : "s");
  std::printf("speed      %.2f ms at least, median %.2f of %d calls\n", result.times.min(),
              result.times.median(), result.times.count());
  std::printf("           %.3f ns a pair of query and key, %.0f GFLOP/s\n",
              result.times.min() * 1e6 / options.pairs(), result.gflop_per_s());
  std::printf("exactness  largest error %.2g of the formula's largest output\n", result.relative_error);
  std::printf("memory     %.1f MiB of working memory", result.working_mib);
  if (result.peak_memory_mib) std::printf(", %.1f MiB at most seen", *result.peak_memory_mib);
  std::printf("\n");
  if (options.peers) std::printf("peers      the least of what was measured in turn:\n");
  for (const PeerTimes& peer : result.peers)
    std::printf("  %-22s %s\n", peer.title.c_str(), peer_text(peer, result.times.min()).c_str());
}

void run(Options options) {
  catch_interrupts();
  check(options);
  const Result result = bench(options);
  if (options.as_json)
    std::cout << json_text(as_json(options, result), 2) << std::endl;
  else
    print(options, result);
}

}  // namespace

void add_bench_attention(CLI::App& bench) {
  auto* command = bench.add_subcommand("attention", "Softmax attention of random features, in process");
  command->footer(
      "With --peers the library runs for a moment, then each peer, and so on round by round: oneDNN's two\n"
      "matrix products alone in the same precision and threads, in slabs of the fastest of three heights,\n"
      "and softmax(QK')V by PyTorch of /usr/bin/python3, with one thread or all, whichever is faster.");
  const auto options = std::make_shared<Options>();
  const auto number = [&](const char* name, int& value, int least, int most, const char* text) {
    command->add_option(name, value, text)->check(CLI::Range(least, most))->capture_default_str();
  };
  number("--tokens", options->tokens, 1, 1 << 24, "Queries");
  number("--keys", options->keys, 0, 1 << 24, "Keys and values; 0: as many as queries");
  number("--dim", options->dim, 1, 1024, "Channels of a head");
  number("--heads", options->heads, 1, 64, "Heads");
  command->add_option("--precision", options->precision, "What is multiplied")
      ->check(CLI::IsMember({"automatic", "f32", "bf16"}))
      ->capture_default_str();
  const auto flags = add_common(*command, *options, "Measure oneDNN and PyTorch in turn with it");
  command->add_option("--rounds", options->rounds, "Rounds with peers")
      ->check(CLI::Range(1, 1000))
      ->needs(flags.peers)
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
