#include "filter_report.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "json_text.h"
#include "progress.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

double fps(const FilterResult& result) { return static_cast<double>(result.frames_now) / result.seconds; }

// What gst-launch-1.0 does: not with pictures.
bool is_of_pictures(const FilterResult& result) { return result.description.empty(); }

json or_null(const std::string& text) { return text.empty() ? json() : json(text); }

double mean_noise(const FilterResult& result) {
  return result.all.noise_sum / static_cast<double>(result.frames_out);
}

// The value of the chain's first nonlocaldenoise; empty: not given.
std::string given_sigma(const FilterChain& chain) {
  for (const Filter& filter : chain)
    for (const auto& [name, value] : filter.properties)
      if (filter.element == "nonlocaldenoise" && name == "sigma") return value;
  return "";
}

bool sigma_is_given(const FilterChain& chain) {
  const std::string sigma = given_sigma(chain);
  return !sigma.empty() && std::stod(sigma) >= 0;
}

bool has_denoiser(const FilterChain& chain) {
  for (const Filter& filter : chain)
    if (filter.element == "nonlocaldenoise") return true;
  return false;
}

std::optional<Psnr> mean_psnr(const SegmentReport& all, const Psnr& sum) {
  if (all.compared == 0) return std::nullopt;
  const auto frames = static_cast<double>(all.compared);
  return Psnr{sum.luma / frames, sum.chroma / frames};
}

json psnr_json(const std::optional<Psnr>& psnr) {
  if (!psnr) return nullptr;
  return {{"luma", psnr->luma}, {"chroma", psnr->chroma}};
}

json result_json(const FilterRequest& request, const FilterResult& result) {
  const MediaFile& media = result.plan.media;
  return {
      {"event", "end"},
      {"input", request.job.input},
      {"output", request.job.output},
      {"picture", or_null(request.picture)},
      {"width", media.width},
      {"height", media.height},
      {"format", result.all.format},
      {"codec", is_of_pictures(result) ? json() : json(request.job.codec)},
      {"frames_in", result.all.frames_in},
      {"frames_out", result.frames_out},
      {"segments", result.plan.segments.size()},
      {"audio_streams", media.audio.size()},
      {"subtitle_streams", subtitles_kept(request.job, media)},
      {"streams_left_out", streams_left_out(request.job, media)},
      {"seconds", result.seconds},
      {"fps", fps(result)},
      {"noise", mean_noise(result)},
      {"noise_is_estimated", has_denoiser(request.job.chain) && !sigma_is_given(request.job.chain)},
      {"psnr",
       {{"before", psnr_json(mean_psnr(result.all, result.all.before))},
        {"after", psnr_json(mean_psnr(result.all, result.all.after))}}},
      {"pipeline", or_null(result.description)},
      {"command", or_null(result.command)},
  };
}

std::string count(size_t n, const char* what) {
  return n == 1 ? std::string(what) + " copied" : std::to_string(n) + " " + what + " streams copied";
}

std::string streams_text(const FilterRequest& request, const MediaFile& media) {
  const size_t subtitles = subtitles_kept(request.job, media);
  return (media.audio.empty() ? "no audio" : count(media.audio.size(), "audio")) +
         (subtitles == 0 ? "" : ", " + count(subtitles, "subtitle"));
}

void print(const FilterRequest& request, const FilterResult& result) {
  const MediaFile& media = result.plan.media;
  std::printf("input     %s: %dx%d, %s\n", request.job.input.c_str(), media.width, media.height,
              result.all.format.c_str());
  std::printf("output    %s: %ld frames in, %ld out, %s\n", request.job.output.c_str(),
              long(result.all.frames_in), long(result.frames_out), streams_text(request, media).c_str());
  if (const int left_out = streams_left_out(request.job, media))
    std::printf("left out  %d further stream(s): subtitles or videos\n", left_out);
  if (!request.picture.empty()) std::printf("picture   %s\n", request.picture.c_str());
  std::printf("speed     %.1f fps (%.1f s)\n", fps(result), result.seconds);
  if (has_denoiser(request.job.chain))
    std::printf("noise     sigma %.1f of 255, %s\n", mean_noise(result),
                sigma_is_given(request.job.chain) ? "as given" : "estimated (mean over the frames)");
  const auto before = mean_psnr(result.all, result.all.before);
  const auto after = mean_psnr(result.all, result.all.after);
  if (before && after)
    std::printf("PSNR      luma %.2f -> %.2f dB, chroma %.2f -> %.2f dB (before encoding)\n", before->luma,
                after->luma, before->chroma, after->chroma);
  std::printf("pipeline  %s\n", result.command.c_str());
}

// One line: there may be many such files.
void print_pictures(const FilterRequest& request, const FilterResult& result) {
  const MediaFile& media = result.plan.media;
  std::string text = formatted("%s: %dx%d, %s", request.job.output.c_str(), media.width, media.height,
                               result.all.format.c_str());
  if (has_denoiser(request.job.chain))
    text += formatted(", noise %.1f of 255%s", mean_noise(result),
                      sigma_is_given(request.job.chain) ? "" : " (estimated)");
  if (result.frames_out > 1)
    text += formatted(", %ld pictures, %.1f fps", long(result.frames_out), fps(result));
  std::printf("%s, %.1f s\n", text.c_str(), result.seconds);
  std::fflush(stdout);
}

class TextReport : public FilterReport {
 public:
  TextReport(bool quiet, bool denoises) : quiet_(quiet), denoises_(denoises) { progress_.emplace(0, quiet_); }

  void indexed(int64_t frames) override { progress_->show(frames, "reading the index"); }

  void begins(const Plan& plan, int64_t frames_done) override {
    progress_.emplace(plan.frames, quiet_);
    progress_->begin_at(frames_done);
  }

  void filtered(int64_t frames, double noise) override {
    progress_->show(frames, denoises_ ? formatted("noise %.1f", noise) : "");
  }

  void joined(int64_t) override {}

  void warn(const std::string& text) override {
    progress_.reset();
    std::cerr << "nonlocal: warning: " << text << std::endl;
  }

  void fail(const std::string& text) override {
    progress_.reset();
    std::cerr << "nonlocal: " << text << std::endl;
  }

  void end(const FilterRequest& request, const FilterResult& result) override {
    progress_.reset();
    is_of_pictures(result) ? print_pictures(request, result) : print(request, result);
  }

 private:
  bool quiet_;
  bool denoises_;
  std::optional<Progress> progress_;
};

class JsonReport : public FilterReport {
 public:
  explicit JsonReport(const FilterRequest& request) : request_(request) {}

  void indexed(int64_t) override {}

  void begins(const Plan& plan, int64_t frames_done) override {
    progress_.emplace(plan.frames, true);
    progress_->begin_at(frames_done);
    frames_ = plan.frames;
    say({{"event", "begin"},
         {"input", request_.job.input},
         {"output", request_.job.output},
         {"frames", plan.frames},
         {"frames_done", frames_done},
         {"segments", plan.segments.size()}});
  }

  void filtered(int64_t frames, double noise) override {
    constexpr std::chrono::seconds kBetween{1};
    const auto now = std::chrono::steady_clock::now();
    if (now - said_ < kBetween) return;
    said_ = now;
    say({{"event", "progress"},
         {"frames_out", frames},
         {"frames", frames_},
         {"fps", progress_->rate(frames)},
         {"seconds_left", progress_->seconds_left(frames)},
         {"noise", noise}});
  }

  void joined(int64_t) override {}

  void warn(const std::string& text) override { say({{"event", "warning"}, {"text", text}}); }

  void fail(const std::string& text) override {
    say({{"event", "error"}, {"input", request_.job.input}, {"text", text}});
  }

  void end(const FilterRequest& request, const FilterResult& result) override {
    say(result_json(request, result));
  }

 private:
  // Names of files need not be UTF-8.
  static void say(const json& event) {
    std::cout << json_text(event) << std::endl;
  }

  const FilterRequest& request_;
  std::optional<Progress> progress_;
  int64_t frames_ = 0;
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
};

}  // namespace

std::unique_ptr<FilterReport> make_report(Report kind, const FilterRequest& request) {
  if (kind == Report::kJson) return std::make_unique<JsonReport>(request);
  return std::make_unique<TextReport>(kind == Report::kQuiet, has_denoiser(request.job.chain));
}

}  // namespace nonlocal::tools
