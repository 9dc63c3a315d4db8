#include "bench_peers.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <opencv2/photo.hpp>

#include "failure.h"
#include "subprocess.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

// Pixels times offsets: what a frame's time is nearly in proportion to.
double pairs(const PeerJob& job) {
  return static_cast<double>(job.frames[0].total()) * (job.search_size * job.search_size - 1);
}

// So many frames that filtering them takes about `seconds`, where a pair takes `ns`.
int frames_for(const PeerJob& job, double seconds, double ns) {
  return static_cast<int>(std::clamp(std::ceil(seconds * 1e9 / (ns * pairs(job))), 2.0, 200.0));
}

void write_file(const std::string& path, const std::string& header, const std::string& before_each,
                const std::string& after_each, const std::vector<cv::Mat>& frames, int count) {
  std::ofstream out(path, std::ios::binary);
  out << header;
  for (int i = 0; i < count; ++i) {
    const cv::Mat& frame = frames[i % frames.size()];
    out << before_each;
    out.write(reinterpret_cast<const char*>(frame.data), static_cast<std::streamsize>(frame.total()));
    out << after_each;
  }
  if (!out.flush()) throw Failure(path + ": could not be written whole");
}

class OpenCvPeer : public Peer {
 public:
  explicit OpenCvPeer(const PeerJob& job) : job_(job) {}

  void warm_up() override { filter(); }

  void measure(FrameTimes& times) override {
    const Stopwatch watch;
    filter();
    times.add(watch.ms());
  }

 private:
  void filter() {
    cv::setNumThreads(job_.threads);
    const cv::Mat& frame = job_.frames[next_++ % job_.frames.size()];
    cv::fastNlMeansDenoising(frame, result_, static_cast<float>(job_.h()), job_.patch_size, job_.search_size);
  }

  const PeerJob& job_;
  cv::Mat result_;
  size_t next_ = 0;
};

// A run over several frames less a run over one, so that what both need to start does not count.
class FfmpegPeer : public Peer {
 public:
  explicit FfmpegPeer(const PeerJob& job) : job_(job), more_(frames_for(job, 1, 1.5)) {
    write_file(folder_.file("in.gray"), "", "", "", job.frames, 1 + more_);
  }

  void warm_up() override { run_command(arguments(1)); }

  void measure(FrameTimes& times) override {
    const double one = run_command(arguments(1));
    times.add((run_command(arguments(1 + more_)) - one) / more_);
  }

 private:
  [[nodiscard]] Arguments arguments(int frames) const {
    // Its weights are exp(-d / (10 s)²), d the sum of the patches' squared differences, not the mean.
    const double s = std::clamp(job_.patch_size * job_.h() / 10, 1.0, 30.0);
    const std::string threads = std::to_string(job_.threads);
    return {"ffmpeg",
            "-v",
            "error",
            "-nostdin",
            "-threads",
            threads,
            "-filter_threads",
            threads,
            "-f",
            "rawvideo",
            "-pix_fmt",
            "gray",
            "-s",
            formatted("%dx%d", job_.frames[0].cols, job_.frames[0].rows),
            "-i",
            folder_.file("in.gray"),
            "-frames:v",
            std::to_string(frames),
            "-vf",
            formatted("nlmeans=s=%.3f:p=%d:r=%d", s, job_.patch_size, job_.search_size),
            "-f",
            "null",
            "-"};
  }

  const PeerJob& job_;
  int more_;
  TemporaryFolder folder_;
};

// A run with the filter less one without; both scale the frames down afterwards, so that encoding costs
// nothing.
class HandBrakePeer : public Peer {
 public:
  explicit HandBrakePeer(const PeerJob& job) : job_(job), frames_(whole_turns(job)) {
    const cv::Size size = job.frames[0].size();
    const auto chroma = static_cast<size_t>((size.width + 1) / 2) * ((size.height + 1) / 2);
    write_file(folder_.file("in.y4m"),
               formatted("YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n", size.width, size.height), "FRAME\n",
               std::string(2 * chroma, '\x80'), job.frames, frames_);
  }

  void warm_up() override { run(false); }

  void measure(FrameTimes& times) override {
    const double without = run(false);
    times.add((run(true) - without) / frames_);
  }

 private:
  // Each of its threads filters a frame of its own. It looks only every fifth of a second whether it is done:
  // hence the long run.
  static int whole_turns(const PeerJob& job) {
    const int frames = frames_for(job, 3, 0.6);
    return (frames + job.threads - 1) / job.threads * job.threads;
  }

  double run(bool filtered) const {
    const std::string out = folder_.file("out.mkv");
    Arguments arguments{"HandBrakeCLI",
                        "-i",
                        folder_.file("in.y4m"),
                        "-o",
                        out,
                        "--previews",
                        "1:0",
                        "--crop",
                        "0:0:0:0",
                        "--no-decomb",
                        "--no-comb-detect",
                        "-w",
                        "64",
                        "-l",
                        "48",
                        "--non-anamorphic",
                        "-e",
                        "x264",
                        "--encoder-preset",
                        "ultrafast",
                        "-q",
                        "40"};
    if (filtered)
      arguments.push_back(
          formatted("--nlmeans=y-strength=%.3f:y-origin-tune=1:y-patch-size=%d:y-range=%d:y-frame-count=1:"
                    "y-prefilter=0:cb-strength=0:cr-strength=0:threads=%d",
                    job_.h(), job_.patch_size, job_.search_size, job_.threads));
    std::error_code error;
    fs::remove(out, error);
    const double ms = run_command(arguments);
    if (fs::file_size(out, error) == 0 || error) throw Failure("HandBrakeCLI wrote nothing");
    return ms;
  }

  const PeerJob& job_;
  int frames_;
  TemporaryFolder folder_;
};

template <typename SomePeer>
MakePeer maker(const PeerJob& job) {
  return [&job] { return std::make_unique<SomePeer>(job); };
}

}  // namespace

std::vector<KnownPeer> known_peers(const PeerJob& job) {
  return {
      {"opencv", "OpenCV " CV_VERSION, maker<OpenCvPeer>(job)},
      {"ffmpeg", "FFmpeg nlmeans", is_installed("ffmpeg") ? maker<FfmpegPeer>(job) : nullptr},
      {"handbrake", "HandBrake nlmeans", is_installed("HandBrakeCLI") ? maker<HandBrakePeer>(job) : nullptr}};
}

}  // namespace nonlocal::tools
