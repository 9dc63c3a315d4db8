#include "evaluate_peers.h"

#include <algorithm>
#include <fstream>
#include <opencv2/photo.hpp>

#include "failure.h"
#include "raw_video.h"
#include "subprocess.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr int kPatch = 7;
constexpr int kSearch = 21;

// Of non-local means, as multiples of sigma.
SettingGrid h_factors() { return {{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3}}; }

class OpenCvPeer : public EvaluatedPeer {
 public:
  [[nodiscard]] SettingGrid settings() const override { return h_factors(); }
  [[nodiscard]] bool parts_chroma() const override { return true; }

  Filtered filter(const Sequence& noisy, double sigma, const PeerChoice& choice, bool,
                  const Tick& tick) override {
    Filtered filtered;
    for (size_t i = 0; i < noisy.frames.size(); ++i) {
      check_interrupted();
      const Stopwatch watch;
      Planes& out = filtered.frames.emplace_back(noisy.frames[i].size());
      for (size_t plane = 0; plane < out.size(); ++plane) {
        const double factor = (plane == 0 ? choice.luma : choice.chroma).strength;
        filter_plane(noisy, i, plane, static_cast<float>(factor * sigma), out[plane]);
      }
      filtered.ms.push_back(watch.ms());
      tick(1);
    }
    return filtered;
  }

  [[nodiscard]] std::string text(double sigma, const PeerChoice& choice, bool has_chroma) const override {
    std::string text = formatted("h=%.3g", choice.luma.strength * sigma);
    if (has_chroma) text += formatted(", chroma h=%.3g", choice.chroma.strength * sigma);
    return text + formatted(", patch %d, search %d", kPatch, kSearch);
  }

 private:
  virtual void filter_plane(const Sequence& noisy, size_t frame, size_t plane, float h, cv::Mat& out) {
    cv::fastNlMeansDenoising(noisy.frames[frame][plane], out, h, kPatch, kSearch);
  }
};

// Over five frames; mirrored at the ends of the clip, where some are missing.
class OpenCvMultiPeer : public OpenCvPeer {
 public:
  [[nodiscard]] std::string text(double sigma, const PeerChoice& choice, bool has_chroma) const override {
    return OpenCvPeer::text(sigma, choice, has_chroma) + formatted(", %d frames", kFrames);
  }

 private:
  static constexpr int kFrames = 5;

  void filter_plane(const Sequence& noisy, size_t frame, size_t plane, float h, cv::Mat& out) override {
    const int count = static_cast<int>(noisy.frames.size());
    std::vector<cv::Mat> window;
    for (int offset = -kFrames / 2; offset <= kFrames / 2; ++offset) {
      const int at = cv::borderInterpolate(static_cast<int>(frame) + offset, count, cv::BORDER_REFLECT_101);
      window.push_back(noisy.frames[at][plane]);
    }
    cv::fastNlMeansDenoisingMulti(window, out, kFrames / 2, kFrames, h, kPatch, kSearch);
  }
};

// Runs FFmpeg from one raw file to another.
class FfmpegPeer : public EvaluatedPeer {
 public:
  Filtered filter(const Sequence& noisy, double sigma, const PeerChoice& choice, bool timed,
                  const Tick& tick) override {
    write(noisy);
    const double with = run(noisy, graph(sigma, choice), tick);
    Filtered filtered = read(noisy);
    if (timed)
      filtered.ms = {with_less_without(noisy, with, graph(sigma, choice), tick) /
                     static_cast<double>(noisy.frames.size())};
    tick(std::ssize(noisy.frames));
    return filtered;
  }

  [[nodiscard]] std::string text(double sigma, const PeerChoice& choice, bool) const override {
    return graph(sigma, choice);
  }

 private:
  [[nodiscard]] virtual std::string graph(double sigma, const PeerChoice& choice) const = 0;

  // Whether it takes nothing without chroma: gray frames then get some of no colour.
  [[nodiscard]] virtual bool wants_chroma() const { return false; }

  [[nodiscard]] bool adds_chroma(const Sequence& noisy) const {
    return wants_chroma() && noisy.frames[0].size() == 1;
  }
  static size_t added_bytes(const Sequence& noisy) {
    const cv::Size half = (noisy.size() + cv::Size(1, 1)) / 2;
    return 2 * static_cast<size_t>(half.area());
  }

  void write(const Sequence& noisy) const {
    std::ofstream out(folder_.file("in"), std::ios::binary);
    for (const Planes& planes : noisy.frames) {
      write_planes(out, planes);
      if (adds_chroma(noisy)) out << std::string(added_bytes(noisy), '\x80');
    }
    if (!out.flush()) throw Failure(folder_.file("in") + ": could not be written whole");
  }

  Filtered read(const Sequence& noisy) const {
    std::ifstream in(folder_.file("out"), std::ios::binary);
    Filtered filtered;
    for (const Planes& like : noisy.frames) {
      filtered.frames.push_back(read_planes(in, like));
      if (adds_chroma(noisy)) in.ignore(static_cast<std::streamsize>(added_bytes(noisy)));
    }
    if (!in || in.peek() != std::ifstream::traits_type::eof())
      throw Failure("ffmpeg gave not as many frames as it got");
    return filtered;
  }

  // What starting, reading and writing take does not count. A small rest may be lost in them: the shortest of
  // several short runs says more. Pictures are several runs anyway.
  double with_less_without(const Sequence& noisy, double with, const std::string& filter,
                           const Tick& tick) const {
    constexpr double kShort = 1000;
    const int runs = noisy.frames.size() > 1 ? 4 : 1;
    double without = run(noisy, "null", tick);
    for (int i = 1; i < runs && with < kShort; ++i) {
      with = std::min(with, run(noisy, filter, tick));
      without = std::min(without, run(noisy, "null", tick));
    }
    return with - without;
  }

  // In milliseconds.
  double run(const Sequence& noisy, const std::string& filter, const Tick& tick) const {
    const bool is_gray = noisy.frames[0].size() == 1 && !adds_chroma(noisy);
    const std::string format = is_gray ? "gray" : "yuv420p";
    const Arguments arguments{"ffmpeg",
                              "-v",
                              "error",
                              "-nostdin",
                              "-y",
                              "-f",
                              "rawvideo",
                              "-pix_fmt",
                              format,
                              "-s",
                              formatted("%dx%d", noisy.info.width, noisy.info.height),
                              "-i",
                              folder_.file("in"),
                              "-vf",
                              filter,
                              "-pix_fmt",
                              format,
                              "-f",
                              "rawvideo",
                              folder_.file("out")};
    return run_command(arguments, [&] { tick(0); });
  }

  TemporaryFolder folder_;
};

class NlmeansPeer : public FfmpegPeer {
 public:
  [[nodiscard]] SettingGrid settings() const override { return h_factors(); }
  [[nodiscard]] bool parts_chroma() const override { return false; }

 private:
  [[nodiscard]] std::string graph(double sigma, const PeerChoice& choice) const override {
    // Its weights are exp(-d / (10 s)²), d the sum of the patches' squared differences, not the mean.
    const double s = std::clamp(kPatch * choice.luma.strength * sigma / 10, 1.0, 30.0);
    return formatted("nlmeans=s=%.3g:p=%d:r=%d", s, kPatch, kSearch);
  }
};

// Recursive over time: tried on more frames, as it takes some to settle.
class Hqdn3dPeer : public FfmpegPeer {
 public:
  explicit Hqdn3dPeer(bool is_clip) : is_clip_(is_clip) {}

  [[nodiscard]] SettingGrid settings() const override {
    const std::vector<double> factors{0.1, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0,
                                      1.4, 2.0,  2.8,  4.0,  5.6, 8.0, 11.2};
    return {factors, is_clip_ ? factors : std::vector{1.0}};
  }
  [[nodiscard]] bool parts_chroma() const override { return true; }
  [[nodiscard]] int64_t tried_frames() const override { return 30; }
  [[nodiscard]] int64_t settling_frames() const override { return 10; }

 private:
  [[nodiscard]] std::string graph(double sigma, const PeerChoice& choice) const override {
    return formatted("hqdn3d=%.3g:%.3g:%.3g:%.3g", choice.luma.strength * sigma,
                     choice.chroma.strength * sigma, choice.luma.temporal * sigma,
                     choice.chroma.temporal * sigma);
  }
  [[nodiscard]] bool wants_chroma() const override { return true; }

  bool is_clip_;
};

// Both stages, the second with the first as its reference. Its sigma is not in code values: FFmpeg 5.1 does
// best at about three times the noise's in the first stage, ten times in the second. Groups of one block, as
// by default: larger ones do worse there.
class Bm3dPeer : public FfmpegPeer {
 public:
  [[nodiscard]] SettingGrid settings() const override { return {{2, 2.5, 3, 3.5, 4, 4.5, 5}}; }
  [[nodiscard]] bool parts_chroma() const override { return false; }

 private:
  [[nodiscard]] std::string graph(double sigma, const PeerChoice& choice) const override {
    const double first = choice.luma.strength * sigma;
    return formatted(
        "split[a][b];[a]bm3d=sigma=%.4g:bstep=2[c];[b][c]bm3d=sigma=%.4g:bstep=2:estim=final:ref=1", first,
        3 * first);
  }
};

template <typename CommandPeer, typename... Arguments>
std::unique_ptr<EvaluatedPeer> if_installed(Arguments... arguments) {
  return is_installed("ffmpeg") ? std::make_unique<CommandPeer>(arguments...) : nullptr;
}

}  // namespace

std::vector<NamedEvaluatedPeer> make_evaluated_peers(bool is_clip) {
  std::vector<NamedEvaluatedPeer> peers;
  peers.push_back({"opencv", "OpenCV " CV_VERSION " fastNlMeansDenoising", std::make_unique<OpenCvPeer>()});
  if (is_clip)
    peers.push_back({"opencv-multi", "OpenCV " CV_VERSION " fastNlMeansDenoisingMulti",
                     std::make_unique<OpenCvMultiPeer>()});
  peers.push_back({"ffmpeg-nlmeans", "FFmpeg nlmeans", if_installed<NlmeansPeer>()});
  peers.push_back({"ffmpeg-hqdn3d", "FFmpeg hqdn3d", if_installed<Hqdn3dPeer>(is_clip)});
  peers.push_back({"ffmpeg-bm3d", "FFmpeg bm3d", if_installed<Bm3dPeer>()});
  return peers;
}

}  // namespace nonlocal::tools
