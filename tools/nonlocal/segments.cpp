#include "segments.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "failure.h"
#include "gst.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A file is another one where its length, its beginning or its end is.
std::string fingerprint(const std::string& path) {
  constexpr std::streamoff kLooked = 1 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  const std::unique_ptr<GChecksum, Releaser<g_checksum_free>> sum{g_checksum_new(G_CHECKSUM_SHA256)};
  std::vector<char> bytes(kLooked);
  for (const std::streamoff at : {std::streamoff(0), std::max<std::streamoff>(size - kLooked, 0)}) {
    file.clear();
    file.seekg(at);
    file.read(bytes.data(), kLooked);
    g_checksum_update(sum.get(), reinterpret_cast<const guchar*>(bytes.data()), file.gcount());
  }
  return std::to_string(size) + "-" + g_checksum_get_string(sum.get());
}

// Of the files that a filter reads, which are named by paths: those in a folder, where it is one.
json fingerprints_of(const FilterChain& chain) {
  json files = json::object();
  for (const Filter& filter : chain)
    for (const auto& [name, value] : filter.properties) {
      if (value.find('/') == std::string::npos) continue;
      std::error_code error;
      if (fs::is_regular_file(value, error)) files[value] = fingerprint(value);
      for (fs::directory_iterator entry(value, error), end; !error && entry != end; entry.increment(error))
        if (entry->is_regular_file(error)) files[entry->path().string()] = fingerprint(entry->path());
    }
  return files;
}

// A plan may be worked on from anywhere.
FilterChain with_absolute_paths(FilterChain chain) {
  for (Filter& filter : chain)
    for (auto& [name, value] : filter.properties)
      if (name == "model" && value.find('/') != std::string::npos)
        value = fs::absolute(value).lexically_normal().string();
  return chain;
}

json chain_json(const FilterChain& chain) {
  json filters = json::array();
  for (const Filter& filter : chain)
    filters.push_back({{"element", filter.element}, {"properties", filter.properties}});
  return filters;
}

FilterChain chain_of(const json& filters) {
  FilterChain chain;
  for (const json& filter : filters)
    chain.push_back({filter.at("element"), filter.at("properties").get<Properties>()});
  return chain;
}

json segment_json(const Segment& s) {
  return {{"index", s.index}, {"first", s.first},           {"frames", s.frames},    {"begin", s.begin},
          {"end", s.end},     {"feed_begin", s.feed_begin}, {"feed_end", s.feed_end}};
}

Segment segment_of(const json& s) {
  return {.index = s.at("index"),
          .first = s.at("first"),
          .frames = s.at("frames"),
          .begin = s.at("begin"),
          .end = s.at("end"),
          .feed_begin = s.at("feed_begin"),
          .feed_end = s.at("feed_end")};
}

// The first key frame from which a lead-in reaches to a frame at or after `time`; none: the number of frames.
int64_t key_for(const FrameIndex& index, GstClockTime time, int lead_in) {
  for (const int64_t key : index.keys)
    if (key + lead_in < index.frames && index.times[key + lead_in] >= time) return key;
  return index.frames;
}

}  // namespace

std::vector<Segment> cut(const FrameIndex& index, double seconds, const Reach& reach) {
  Segment segment{.frames = index.frames};
  std::vector<Segment> segments;
  const auto length = static_cast<GstClockTime>(seconds * GST_SECOND);
  while (!index.times.empty()) {
    const GstClockTime wanted = index.times.front() + segments.size() * length + length;
    const int64_t key = key_for(index, std::max(wanted, index.times[segment.first] + 1), reach.before);
    if (key == index.frames) break;
    Segment next{.index = segment.index + 1, .first = key + reach.before};
    next.begin = index.times[next.first];
    next.feed_begin = index.times[key];
    next.frames = index.frames - next.first;
    segment.frames = next.first - segment.first;
    segment.end = next.begin;
    const int64_t beyond = next.first + reach.after;
    if (beyond < index.frames) segment.feed_end = index.times[beyond];
    segments.push_back(std::exchange(segment, next));
  }
  segments.push_back(segment);
  return segments;
}

Plan make_plan(const FilterJob& job, double segment_seconds, const std::function<void(int64_t)>& tick) {
  const Codec& codec = codec_named(job.codec);
  check_container(job.output, codec);
  encoder_of(codec, job.quality);
  Plan plan;
  plan.job = job;
  plan.media = inspect(job.input);
  check_audio(job.output, plan.media);
  check_samples(job.input, codec, plan.media);
  for (const Filter& filter : job.chain) check_properties(filter.element, filter.properties);
  const FrameIndex index = index_frames(job.input, plan.media, tick);
  plan.frames = index.frames;
  plan.segments = cut(index, segment_seconds, reach_of(job.chain));
  return plan;
}

json recipe_of(const Plan& plan) {
  const FilterJob& job = plan.job;
  const FilterChain chain = with_absolute_paths(job.chain);
  json segments = json::array();
  for (const Segment& segment : plan.segments) segments.push_back(segment_json(segment));
  return {{"version", NONLOCAL_VERSION},
          {"input", fs::absolute(job.input).lexically_normal().string()},
          {"fingerprint", fingerprint(job.input)},
          {"extension", fs::path(job.output).extension().string()},
          {"filters", chain_json(chain)},
          {"models", fingerprints_of(chain)},
          {"codec", job.codec},
          {"quality", job.quality},
          {"frames", plan.frames},
          {"segments", segments}};
}

Plan plan_of(const json& recipe) {
  if (recipe.at("version") != NONLOCAL_VERSION)
    throw Failure("planned by nonlocal " + recipe.at("version").get<std::string>() + ", this is " +
                  NONLOCAL_VERSION + ": one version filters all segments");
  Plan plan;
  plan.job.input = recipe.at("input");
  plan.job.output = "joined" + recipe.at("extension").get<std::string>();
  plan.job.chain = chain_of(recipe.at("filters"));
  plan.job.codec = recipe.at("codec");
  plan.job.quality = recipe.at("quality");
  plan.media = inspect(plan.job.input);
  if (fingerprint(plan.job.input) != recipe.at("fingerprint"))
    throw Failure(plan.job.input + ": is not the file any more that was planned for");
  if (fingerprints_of(plan.job.chain) != recipe.at("models"))
    throw Failure("a model of the plan is not any more what was planned for");
  plan.frames = recipe.at("frames");
  for (const json& segment : recipe.at("segments")) plan.segments.push_back(segment_of(segment));
  return plan;
}

}  // namespace nonlocal::tools
