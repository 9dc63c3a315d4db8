#include "codec.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "failure.h"
#include "gst.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

// How many threads an encoder has is part of what it writes, where it is not cut into slices: a number of its
// own would make other bytes on a machine with more cores.
const Codec kCodecs[] = {
    {.name = "h264",
     // Without a capacity of 0 x264enc keeps constant quality, too, within the bit rate that it has by
     // default (2 Mbit/s over 0.6 s: noisy 1080p had a fiftieth of its bits), and then makes other bytes with
     // each run of several threads.
     .encoder = "x264enc pass=qual qp-min=0 vbv-buf-capacity=0 speed-preset=fast threads=4",
     .quality = "quantizer=%d",
     .worst = 50,
     .usual = 18,
     .most_bits = 10,
     .needs_even = true,
     .says_mastering = true,
     .unsaid = " insert-vui=false",
     .type = "video/x-h264",
     .coded = "video/x-h264,stream-format=avc,alignment=au",
     .containers = ".mkv .mp4 .mov"},
    {.name = "h265",
     // x265 has as many frames at work as the machine lets it, with other bytes for each number, and with 4
     // one run in 50 was another.
     .encoder = "x265enc speed-preset=fast",
     .quality = "option-string=frame-threads=2:crf=%d",
     .worst = 51,
     .usual = 20,
     .most_bits = 10,
     .needs_even = true,
     .says_mastering = true,
     .unsaid = ":colorprim=unknown:transfer=unknown:colormatrix=unknown",
     .type = "video/x-h265",
     .coded = "h265parse ! video/x-h265,stream-format=hvc1,alignment=au",
     .containers = ".mkv .mp4 .mov"},
    {.name = "vp9",
     // Frames that it lags behind, 1.22 loses at the end.
     .encoder =
         "vp9enc lag-in-frames=0 target-bitrate=100000000 deadline=1000000 cpu-used=4 row-mt=true threads=4",
     .quality = "min-quantizer=%d max-quantizer=%d",
     .worst = 63,
     .usual = 24,
     .most_bits = 10,
     .type = "video/x-vp9",
     .coded = "vp9parse ! video/x-vp9,alignment=super-frame",
     .containers = ".mkv .webm .mp4"},
    {.name = "av1",
     .encoder = "av1enc end-usage=q cpu-used=6 row-mt=true threads=4",
     .quality = "min-quantizer=%d max-quantizer=%d",
     .worst = 63,
     .usual = 24,
     .most_bits = 8,         // GStreamer 1.22's encoder takes no more
     .says_colours = false,  // nor does it write what it knows
     .type = "video/x-av1",
     .coded = "av1parse ! video/x-av1,stream-format=obu-stream,alignment=tu",
     .containers = ".mkv .webm .mp4"},
    {.name = "ffv1",
     .encoder = "avenc_ffv1 slices=4 threads=auto",
     .odd_encoder = "avenc_ffv1",  // which takes a given number of slices only of some odd sizes
     .most_bits = 10,
     .type = "video/x-ffv",
     .coded =
         "capssetter caps=video/x-ffv,ffversion=1",  // GStreamer 1.22's matroskamux wants it by this name
     .containers = ".mkv"},
    {.name = "prores",
     .encoder = "avenc_prores_ks profile=hq threads=auto",
     .most_bits = 10,
     .needs_even_width = true,
     .type = "video/x-prores",
     .coded = "video/x-prores",
     .containers = ".mov .mkv"},
};

struct Container {
  std::string_view extension;
  const char* muxer;
  std::set<std::string_view> subtitles;  // what it holds
  std::string_view refused = {};         // audio that the muxer says to take, and does not
};

const Container kContainers[] = {
    {".mkv",
     "matroskamux",
     {"text/x-raw", "application/x-ssa", "application/x-ass", "application/x-usf", "subpicture/x-dvd"}},
    {".mp4", "mp4mux", {"text/x-raw"}},
    {".mov", "qtmux", {"text/x-raw"}, "audio/x-opus"},
    {".webm", "webmmux", {}},
};

std::string extension_of(const std::string& output) {
  std::string extension = std::filesystem::path(output).extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension;
}

const Container& container_of(const std::string& output) {
  const auto* found = std::ranges::find(kContainers, extension_of(output), &Container::extension);
  if (found == std::end(kContainers))
    throw Failure(output + ": the output's name must end in .mkv, .mp4, .mov or .webm");
  return *found;
}

// What the muxer takes of the stream as add_audio() gives it.
CapsPtr caps_for_muxer(const AudioStream& audio) {
  if (audio.is_pcm()) return CapsPtr{gst_caps_new_empty_simple("audio/x-raw")};
  if (audio.type == "audio/mpeg") return CapsPtr{gst_caps_new_empty_simple("audio/mpeg")};
  return CapsPtr{gst_caps_ref(audio.caps.get())};
}

bool holds(const Container& container, const AudioStream& audio) {
  if (audio.type == container.refused) return false;
  // Samples of 24 bits that two packets share GStreamer 1.22 puts together wrongly.
  if (audio.is_packed_pcm() && audio.bits != 16) return false;
  const CapsPtr caps = caps_for_muxer(audio);
  const std::unique_ptr<GstElementFactory, Releaser<gst_object_unref>> muxer{
      gst_element_factory_find(container.muxer)};
  if (!muxer) throw Failure("GStreamer cannot make the element " + std::string(container.muxer));
  for (const GList* pad = gst_element_factory_get_static_pad_templates(muxer.get()); pad; pad = pad->next) {
    auto* made = static_cast<GstStaticPadTemplate*>(pad->data);
    const CapsPtr taken{gst_static_pad_template_get_caps(made)};
    if (made->direction == GST_PAD_SINK && std::string_view(made->name_template).starts_with("audio") &&
        gst_caps_can_intersect(caps.get(), taken.get()))
      return true;
  }
  return false;
}

}  // namespace

const Codec& codec_named(const std::string& name) {
  const auto* found = std::ranges::find(kCodecs, name, &Codec::name);
  if (found == std::end(kCodecs)) throw Failure("--codec takes one of " + codec_names() + ", not " + name);
  return *found;
}

std::string codec_names() {
  std::string names;
  for (const Codec& codec : kCodecs) names.append(names.empty() ? "" : ", ").append(codec.name);
  return names;
}

std::string encoder_of(const Codec& codec, int quality, bool is_odd) {
  const std::string& encoder = is_odd && !codec.odd_encoder.empty() ? codec.odd_encoder : codec.encoder;
  if (codec.quality.empty()) {
    if (quality >= 0) throw Failure("--quality: " + codec.name + " has none to choose");
    return encoder;
  }
  if (quality > codec.worst)
    throw Failure(
        formatted("--quality: %s takes from 0 to %d, not %d", codec.name.c_str(), codec.worst, quality));
  // One number, in all its places.
  std::string setting = codec.quality;
  const std::string number = std::to_string(quality < 0 ? codec.usual : quality);
  for (size_t at; (at = setting.find("%d")) != std::string::npos;) setting.replace(at, 2, number);
  return encoder + " " + setting;
}

void check_container(const std::string& output, const Codec& codec) {
  const std::string extension(container_of(output).extension);
  if (codec.containers.find(extension) == std::string::npos)
    throw Failure(output + ": a " + extension + " file cannot hold " + codec.name + ", only " +
                  codec.containers + " files can");
}

void check_samples(const std::string& input, const Codec& codec, const MediaFile& media) {
  if (std::min(media.bits, kMostBits) > codec.most_bits)
    throw Failure(formatted("%s: has %d bits a sample, %s would keep %d: choose another --codec",
                            input.c_str(), media.bits, codec.name.c_str(), codec.most_bits));
  if (codec.needs_even_width && media.width % 2)
    throw Failure(
        formatted("%s: is %d samples wide, and FFmpeg's encoder of %s spoils the last column of odd "
                  "widths: choose another --codec",
                  input.c_str(), media.width, codec.name.c_str()));
}

void check_audio(const std::string& output, const MediaFile& media) {
  const Container& container = container_of(output);
  for (const AudioStream& audio : media.audio) {
    if (holds(container, audio)) continue;
    const auto* other =
        std::ranges::find_if(kContainers, [&](const Container& c) { return holds(c, audio); });
    throw Failure(output + ": a " + std::string(container.extension) + " file cannot hold the input's " +
                  audio.type + " as it is" +
                  (other == std::end(kContainers) ? ", nor can another that is written here"
                                                  : ": write a " + std::string(other->extension) + " file"));
  }
}

bool holds_subtitles(const std::string& output, const std::string& type) {
  return container_of(output).subtitles.contains(type);
}

std::string lost_colours(const std::string& output, const Codec& codec, const MediaFile& media) {
  if (!codec.says_colours && !media.colour_unknown)
    return output + ": an " + codec.name +
           " stream does not say its matrix, transfer and primaries here: players guess them";
  if (!media.mastering.empty() && !codec.says_mastering && muxer_of(output) != "matroskamux")
    return output + ": has no place for HDR10's mastering display and light level with " + codec.name +
           ": a .mkv file has";
  return "";
}

bool is_matroska(const std::string& output) {
  return muxer_of(output) == "matroskamux" || muxer_of(output) == "webmmux";
}

std::string muxer_of(const std::string& output) { return container_of(output).muxer; }

}  // namespace nonlocal::tools
