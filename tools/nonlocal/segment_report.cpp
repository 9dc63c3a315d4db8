#include "segment_report.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

json psnr_json(const Psnr& psnr) { return {psnr.luma, psnr.chroma}; }

Psnr psnr_of(const json& value) { return {value.at(0), value.at(1)}; }

void add_to(Psnr& sum, const Psnr& other) {
  sum.luma += other.luma;
  sum.chroma += other.chroma;
}

}  // namespace

void SegmentReport::add(const SegmentReport& other) {
  frames_in += other.frames_in;
  format = other.format;
  decoded = other.decoded;
  coded = other.coded;
  noise_sum += other.noise_sum;
  compared += other.compared;
  add_to(before, other.before);
  add_to(after, other.after);
}

json to_json(const SegmentReport& report) {
  return {{"frames_in", report.frames_in},   {"times", report.times},
          {"format", report.format},         {"decoded", report.decoded},
          {"coded", report.coded},           {"noise_sum", report.noise_sum},
          {"compared", report.compared},     {"before", psnr_json(report.before)},
          {"after", psnr_json(report.after)}};
}

SegmentReport report_of(const json& value) {
  return {.frames_in = value.at("frames_in"),
          .times = value.at("times"),
          .format = value.at("format"),
          .decoded = value.at("decoded"),
          .coded = value.at("coded"),
          .noise_sum = value.at("noise_sum"),
          .compared = value.at("compared"),
          .before = psnr_of(value.at("before")),
          .after = psnr_of(value.at("after"))};
}

}  // namespace nonlocal::tools
