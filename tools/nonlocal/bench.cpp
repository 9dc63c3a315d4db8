// nonlocal bench: how fast the library is on this machine, how exact, and how its peers do.
#include <nonlocal/cpu.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "bench.h"
#include "bench_attention.h"
#include "bench_frames.h"
#include "bench_peers.h"
#include "bench_text.h"
#include "chart.h"
#include "commands.h"
#include "failure.h"
#include "frame_denoiser.h"
#include "frame_times.h"
#include "gst.h"
#include "json_text.h"
#include "option_checks.h"
#include "partial_file.h"
#include "peak_memory.h"
#include "png_file.h"
#include "progress.h"
#include "subprocess.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

constexpr int kFrames = 2;  // that take turns: their noise differs

struct BenchOptions : CommonBenchOptions {
  std::string size_text = "1920x1080";
  cv::Size size;
  int patch = 7;
  int search = 21;
  double sigma = 25;
  std::string format = "GRAY8";
  std::string chroma = "separate";
  std::string method = "direct";
  int frames = 0;  // 0: as many as `seconds` hold
  std::string plot;

  [[nodiscard]] NonLocalMeansParameters parameters() const {
    return {.patch_size = patch,
            .search_size = search,
            .sigma = sigma,
            .threads = threads,
            .method = method == "attention" ? NonLocalMeansMethod::kAttention : NonLocalMeansMethod::kDirect};
  }
  [[nodiscard]] bool is_joint() const { return chroma == "joint"; }
  [[nodiscard]] std::string size_name() const { return formatted("%dx%d", size.width, size.height); }
};

struct PeerResult {
  std::string name;
  std::string title;
  bool is_installed = false;
  FrameTimes times;
  std::string problem;

  [[nodiscard]] bool is_measured() const { return problem.empty() && times.count() > 0; }
};

struct PlotPoint {
  cv::Size size;
  int search = 0;
  double ms = 0;

  [[nodiscard]] std::string size_name() const { return formatted("%dx%d", size.width, size.height); }
};

struct Plot {
  std::vector<PlotPoint> by_size;
  std::vector<PlotPoint> by_search;
};

struct BenchResult {
  std::string isa;
  size_t frame_bytes = 0;
  FrameTimes times;
  Exactness exactness;
  std::optional<double> peak_memory_mib;
  std::vector<PeerResult> peers;
  std::optional<Plot> plot;
};

// A frame's pixels times the positions that each is compared with.
double pairs(cv::Size size, int search) {
  return static_cast<double>(size.area()) * (static_cast<double>(search) * search - 1);
}

void check(BenchOptions& options) {
  constexpr int kSmallest = 16;
  constexpr int kLargest = 8192;
  const int largest = options.plot.empty() ? kLargest : kLargest / 4;
  const auto fits = [&](int n) { return n >= kSmallest && n <= largest; };
  const auto is_odd_within = [](int n, int from, int to) { return n % 2 == 1 && n >= from && n <= to; };
  if (!read_size(options.size_text, options.size.width, options.size.height) || !fits(options.size.width) ||
      !fits(options.size.height))
    throw Failure(formatted("--size takes WIDTHxHEIGHT, both from %d to %d%s, not %s", kSmallest, largest,
                            options.plot.empty() ? "" : " with --plot", options.size_text.c_str()));
  if (!is_odd_within(options.patch, 1, 15))
    throw Failure(formatted("--patch takes an odd number from 1 to 15, not %d", options.patch));
  if (!is_odd_within(options.search, 3, 63))
    throw Failure(formatted("--search takes an odd number from 3 to 63, not %d", options.search));
  if (options.is_joint() && options.method == "attention")
    throw Failure("--method attention takes chroma by weights of its own, not --chroma joint");
  if (!options.plot.empty()) check_png_name(options.plot);
  take_up(options);
}

// The library on frames of one size, each turn going on where the last one stopped.
class OurTurns {
 public:
  OurTurns(std::vector<BenchFrame> frames, const NonLocalMeansParameters& parameters, bool is_joint)
      : frames_(std::move(frames)),
        out_(frames_[0].same_shape()),
        parameters_(parameters),
        is_joint_(is_joint) {}

  // Untimed; returns the memory that it took beyond the frames, in MiB.
  std::optional<double> warm_up() {
    const PeakMemory memory;
    denoiser_.emplace(parameters_, is_joint_);
    for (size_t i = 0; i < frames_.size(); ++i) filter();
    return memory.mib();
  }

  void measure(FrameTimes& times) {
    check_interrupted();
    const Stopwatch watch;
    filter();
    times.add(watch.ms());
  }

  // Of the first frame.
  Exactness exactness() {
    denoiser_->filter(frames_[0], out_);
    return tools::exactness(frames_[0], out_, parameters_, is_joint_);
  }

 private:
  void filter() { denoiser_->filter(frames_[next_++ % frames_.size()], out_); }

  std::vector<BenchFrame> frames_;
  BenchFrame out_;
  NonLocalMeansParameters parameters_;
  bool is_joint_;
  std::optional<FrameDenoiser> denoiser_;
  size_t next_ = 0;
};

void measure_alone(const BenchOptions& options, OurTurns& ours, FrameTimes& times) {
  Progress progress(options.frames, options.shows_no_progress());
  const auto goes_on = [&] {
    if (options.frames > 0) return times.count() < options.frames;
    return times.count() < kFewestTimes || progress.seconds() < options.seconds;
  };
  while (goes_on()) {
    ours.measure(times);
    progress.show(times.count(), "");
  }
}

// What fails once is not tried again.
void try_peer(PeerResult& result, const std::function<void()>& action) {
  if (result.is_installed && result.problem.empty()) result.problem = problem_of(action);
}

// Ours for a moment, one measurement of each peer, and so on: whatever else the machine does meets all alike.
void measure_with_peers(const BenchOptions& options, OurTurns& ours, BenchResult& result) {
  constexpr double kTurnMs = 250;
  constexpr int kMostInATurn = 20;
  constexpr int kRounds = 5;
  const int rounds = std::max(kFewestTimes, options.frames > 0 ? options.frames : kRounds);

  PeerJob job{{}, options.patch, options.search, options.sigma, options.threads};
  for (const BenchFrame& frame : noisy_frames(options.size, bench_format("GRAY8"), options.sigma, kFrames))
    job.frames.push_back(frame.planes[0]);
  std::vector<std::unique_ptr<Peer>> peers;
  Progress progress(rounds, options.shows_no_progress(), "round");
  for (const KnownPeer& known : known_peers(job)) {
    result.peers.push_back({known.name, known.title, known.make != nullptr, {}, ""});
    std::unique_ptr<Peer>& peer = peers.emplace_back();
    try_peer(result.peers.back(), [&] {
      peer = known.make();
      peer->warm_up();
    });
  }
  for (int round = 1; round <= rounds; ++round) {
    const Stopwatch turn;
    for (int i = 0; i < kMostInATurn && (i == 0 || turn.ms() < kTurnMs); ++i) ours.measure(result.times);
    for (size_t i = 0; i < peers.size(); ++i)
      try_peer(result.peers[i], [&] { peers[i]->measure(result.peers[i].times); });
    progress.show(round, "");
  }
  // What starting takes is subtracted: a small rest may be lost in it.
  for (PeerResult& peer : result.peers)
    if (peer.is_measured() && peer.times.median() <= 0)
      peer.problem = "its frames take too little time to tell from its start";
}

double measured_point(const BenchOptions& options, cv::Size size, int search) {
  constexpr double kSeconds = 0.5;
  NonLocalMeansParameters parameters = options.parameters();
  parameters.search_size = search;
  OurTurns ours(noisy_frames(size, bench_format(options.format), options.sigma, 1), parameters,
                options.is_joint());
  ours.warm_up();
  FrameTimes times;
  const Stopwatch watch;
  while (times.count() < kFewestTimes || watch.ms() < 1000 * kSeconds) ours.measure(times);
  return times.median();
}

// 480p, 720p, 1080p, 2160p and 4320p where --size is 1080p.
std::vector<cv::Size> sizes_around(cv::Size size) {
  std::vector<cv::Size> sizes;
  for (const double factor : {4 / 9.0, 2 / 3.0, 1.0, 2.0, 4.0})
    sizes.emplace_back(cvRound(size.width * factor), cvRound(size.height * factor));
  return sizes;
}

Plot measure_plot(const BenchOptions& options) {
  Plot plot;
  for (const cv::Size size : sizes_around(options.size)) plot.by_size.push_back({size, options.search, 0});
  for (const int search : {3, 5, 7, 11, 15, 21, 31}) plot.by_search.push_back({options.size, search, 0});
  Progress progress(static_cast<int64_t>(plot.by_size.size() + plot.by_search.size()),
                    options.shows_no_progress(), "point");
  int done = 0;
  for (std::vector<PlotPoint>* points : {&plot.by_size, &plot.by_search}) {
    for (PlotPoint& point : *points) {
      point.ms = measured_point(options, point.size, point.search);
      progress.show(++done, point.size_name() + ", search " + std::to_string(point.search));
    }
  }
  return plot;
}

// What is measured, and a line in proportion to `x` through the measured point nearest to `through`.
std::vector<Series> series_of(const std::vector<PlotPoint>& points, const std::string& name,
                              double (*x)(const PlotPoint&), double through,
                              const std::string& proportional) {
  Series measured{name, {}, {180, 90, 20}, true};
  for (const PlotPoint& point : points) measured.points.emplace_back(x(point), point.ms);
  const cv::Point2d base = *std::ranges::min_element(
      measured.points, {}, [&](const cv::Point2d& p) { return std::abs(std::log(p.x / through)); });
  Series line{proportional, {}, {40, 120, 230}, false};
  for (const cv::Point2d& p : {measured.points.front(), measured.points.back()})
    line.points.emplace_back(p.x, base.y * p.x / base.x);
  return {line, measured};
}

cv::Mat drawn(const BenchOptions& options, const BenchResult& result) {
  const std::string name = formatted("measured: %s, %s, %d thread%s", options.format.c_str(),
                                     result.isa.c_str(), options.threads, options.threads == 1 ? "" : "s");
  const auto pixels = [](const PlotPoint& p) { return static_cast<double>(p.size.area()); };
  const auto offsets = [](const PlotPoint& p) { return static_cast<double>(p.search) * p.search - 1; };
  Chart by_size{formatted("nonlocal bench denoise: patch %d, search %d", options.patch, options.search),
                "pixels of the frame (logarithmic)",
                "ms a frame (median, logarithmic)",
                {},
                series_of(result.plot->by_size, name, pixels, options.size.area(),
                          "in proportion to pixels, through " + options.size_name())};
  for (const PlotPoint& p : result.plot->by_size) by_size.x_ticks.push_back({pixels(p), p.size_name()});
  Chart by_search{
      formatted("nonlocal bench denoise: %s, patch %d", options.size_name().c_str(), options.patch),
      "search size (spaced by the logarithm of its offsets, search^2 - 1)",
      "ms a frame (median, logarithmic)",
      {},
      series_of(result.plot->by_search, name, offsets, 21 * 21 - 1, "in proportion to offsets, through 21")};
  for (const PlotPoint& p : result.plot->by_search)
    by_search.x_ticks.push_back({offsets(p), std::to_string(p.search)});
  return draw({by_size, by_search});
}

BenchResult bench(const BenchOptions& options) {
  std::optional<PartialFile> plot;
  if (!options.plot.empty()) plot.emplace(options.plot);
  BenchResult result;
  result.isa = instruction_set();
  std::vector<BenchFrame> frames =
      noisy_frames(options.size, bench_format(options.format), options.sigma, kFrames);
  result.frame_bytes = frames[0].bytes();
  {
    OurTurns ours(std::move(frames), options.parameters(), options.is_joint());
    result.peak_memory_mib = ours.warm_up();
    if (options.peers)
      measure_with_peers(options, ours, result);
    else
      measure_alone(options, ours, result.times);
    result.exactness = ours.exactness();
  }
  if (plot) {
    result.plot = measure_plot(options);
    write_png(plot->path(), drawn(options, result));
    plot->commit();
  }
  return result;
}

struct Rates {
  Rates(const BenchOptions& options, const BenchResult& result)
      : ms(result.times.median()),
        fps(1000 / ms),
        gb_per_s(2 * static_cast<double>(result.frame_bytes) / ms / 1e6),
        ns_per_pair(ms * 1e6 / pairs(options.size, options.search)) {}

  double ms;
  double fps;
  double gb_per_s;
  double ns_per_pair;
};

json peers_json(const BenchResult& result) {
  json peers = json::object();
  for (const PeerResult& peer : result.peers) {
    json& entry = peers[peer.name];
    if (!peer.is_installed) continue;
    if (peer.is_measured()) {
      const double ms = peer.times.median();
      entry = {
          {"ms_median", ms}, {"ratio", ms / result.times.median()}, {"measurements", peer.times.count()}};
    } else {
      entry = {{"ms_median", nullptr}, {"ratio", nullptr}, {"problem", peer.problem}};
    }
  }
  return peers;
}

json plot_json(const BenchOptions& options, const Plot& plot) {
  json by_size = json::array();
  for (const PlotPoint& point : plot.by_size)
    by_size.push_back({{"size", point.size_name()}, {"pixels", point.size.area()}, {"ms_median", point.ms}});
  json by_search = json::array();
  for (const PlotPoint& point : plot.by_search)
    by_search.push_back({{"search", point.search}, {"ms_median", point.ms}});
  return {{"file", options.plot}, {"by_size", by_size}, {"by_search", by_search}};
}

json as_json(const BenchOptions& options, const BenchResult& result) {
  const Rates rates(options, result);
  return {
      {"size", options.size_name()},
      {"format", options.format},
      {"chroma", options.chroma},
      {"method", options.method},
      {"patch", options.patch},
      {"search", options.search},
      {"sigma", options.sigma},
      {"threads", options.threads},
      {"isa", result.isa},
      {"frames", result.times.count()},
      {"ms_median", rates.ms},
      {"ms_min", result.times.min()},
      {"fps", rates.fps},
      {"gb_per_s", rates.gb_per_s},
      {"ns_per_pixel_and_offset", rates.ns_per_pair},
      {"pairs_per_second", 1e9 / rates.ns_per_pair},
      {"psnr_vs_exact", result.exactness.psnr},
      {"largest_error", result.exactness.largest_error},
      {"samples_compared", result.exactness.samples},
      {"peak_memory_mib", result.peak_memory_mib ? json(*result.peak_memory_mib) : json()},
      {"peers", options.peers ? peers_json(result) : json()},
      {"plot", result.plot ? plot_json(options, *result.plot) : json()},
  };
}

std::string peer_text(const PeerResult& peer, double our_ms) {
  if (!peer.is_installed) return "not installed";
  if (!peer.is_measured()) return peer.problem;
  const double ms = peer.times.median();
  return formatted("%.2f ms a frame, %.1f x ours", ms, ms / our_ms);
}

void print(const BenchOptions& options, const BenchResult& result) {
  const Rates rates(options, result);
  std::printf("frame      %s %s, noise sigma %g; patch %d, search %d%s%s\n", options.size_name().c_str(),
              options.format.c_str(), options.sigma, options.patch, options.search,
              options.is_joint() ? ", chroma by luma's weights" : "",
              options.method == "attention" ? ", by attention" : "");
  std::printf("runs on    %s, %d thread%s\n", result.isa.c_str(), options.threads,
              options.threads == 1 ? "" : "s");
  std::printf("speed      %.2f ms a frame (median of %d; fastest %.2f), %.1f fps\n", rates.ms,
              result.times.count(), result.times.min(), rates.fps);
  std::printf("           %.4f ns a pixel and offset: %.2f billion pairs a second\n", rates.ns_per_pair,
              1 / rates.ns_per_pair);
  std::printf("           %.3f GB/s of frames read and written\n", rates.gb_per_s);
  std::printf(
      "exactness  %.1f dB PSNR to the formula in double precision, largest error %.2f of 255 "
      "(%d samples)\n",
      result.exactness.psnr, result.exactness.largest_error, result.exactness.samples);
  if (result.peak_memory_mib)
    std::printf("memory     %.1f MiB at most beyond the frames\n", *result.peak_memory_mib);
  if (options.peers) std::printf("peers      on 8-bit luma alone, same patch, search and threads:\n");
  for (const PeerResult& peer : result.peers)
    std::printf("  %-18s %s\n", peer.title.c_str(), peer_text(peer, rates.ms).c_str());
  if (result.plot) std::printf("plot       %s\n", options.plot.c_str());
}

void run(BenchOptions options) {
  catch_interrupts();
  check(options);
  const BenchResult result = bench(options);
  if (options.as_json)
    std::cout << json_text(as_json(options, result), 2) << std::endl;
  else
    print(options, result);
}

void add_denoise(CLI::App& bench) {
  auto* command = bench.add_subcommand("denoise", "Non-local means on noisy frames, in process");
  command->footer(
      "A pair is a pixel and one of the search^2 - 1 positions that it is compared with; its time is the\n"
      "frame's over its pixels (luma's, whatever the format) and those positions. With --peers the library\n"
      "filters for a moment, then each peer is measured, and so on round by round; OpenCV runs in process,\n"
      "ffmpeg and HandBrakeCLI are used where they are installed, less the time that they take to start.");
  const auto options = std::make_shared<BenchOptions>();
  command->add_option("--size", options->size_text, "WIDTHxHEIGHT of the frames")->capture_default_str();
  command->add_option("--patch", options->patch, "Side of the patches compared, odd")->capture_default_str();
  command->add_option("--search", options->search, "Side of the window searched, odd")->capture_default_str();
  command->add_option("--sigma", options->sigma, "Standard deviation of the noise, of 255")
      ->check(number_within(1, 100))
      ->capture_default_str();
  command->add_option("--format", options->format, "The frames' format")
      ->check(CLI::IsMember(bench_formats()))
      ->capture_default_str();
  command->add_option("--chroma", options->chroma, "Chroma by weights of its own, or by luma's")
      ->check(CLI::IsMember({"separate", "joint"}))
      ->capture_default_str();
  command->add_option("--method", options->method, "Averages offset by offset, or by the attention core")
      ->check(CLI::IsMember({"direct", "attention"}))
      ->capture_default_str();
  const auto flags = add_common(*command, *options, "Measure OpenCV, FFmpeg and HandBrake in turn with it");
  command
      ->add_option("--frames", options->frames,
                   "Frames to time, not --seconds; with --peers: rounds, at least 3 [5]")
      ->check(CLI::Range(1, 1000000))
      ->excludes(flags.seconds);
  command->add_option("--plot", options->plot,
                      "Draw the time against pixels (4/9 to 4 times --size) and search size here: .png");
  command->callback([options] { run(*options); });
}

}  // namespace

CommonBenchFlags add_common(CLI::App& command, CommonBenchOptions& options, const std::string& peers_help) {
  CommonBenchFlags flags{};
  command.add_option("--threads", options.threads, "Threads; 0: all")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command.add_option("--isa", options.isa, "Use this instruction set [the CPU's best]");
  flags.seconds = command.add_option("--seconds", options.seconds, "For how long, without --peers")
                      ->check(number_within(0, 3600))
                      ->capture_default_str();
  flags.peers = command.add_flag("--peers", options.peers, peers_help)->excludes(flags.seconds);
  command.add_flag("--json", options.as_json, "Print the result as one JSON object, and no progress");
  command.add_flag("--quiet", options.quiet, "Show no progress");
  return flags;
}

void take_up(CommonBenchOptions& options) {
  force_instruction_set(options.isa);
  if (options.threads == 0) options.threads = std::max(1, int(std::thread::hardware_concurrency()));
}

std::string problem_of(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    return one_line(error.what());
  }
}

bool has_pytorch() {
  return problem_of([] { run_command({"/usr/bin/python3", "-c", "import torch"}); }).empty();
}

void add_bench(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "Measure the library's speed, beside its peers'");
  bench->require_subcommand(1);
  add_denoise(*bench);
  add_bench_attention(*bench);
  add_bench_text(*bench);
}

}  // namespace nonlocal::tools
