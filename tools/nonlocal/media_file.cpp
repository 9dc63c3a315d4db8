#include "media_file.h"

#include <gst/pbutils/pbutils.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "failure.h"
#include "gst.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

// Of files without a stream that plays GStreamer 1.22's discoverer misses the end one time in twenty to forty,
// and waits for as long as it may: it is asked again, and again.
constexpr GstClockTime kPatience[] = {8 * GST_SECOND, 8 * GST_SECOND, 8 * GST_SECOND, 60 * GST_SECOND};

using DiscovererPtr = std::unique_ptr<GstDiscoverer, Releaser<g_object_unref>>;
using InfoPtr = std::unique_ptr<GstDiscovererInfo, Releaser<g_object_unref>>;

void check_readable(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw Failure(path + ": no such file");
  if (fs::is_directory(path, error)) throw Failure(path + ": is a folder, not a video file");
  if (!fs::is_regular_file(path, error) &&
      !fs::is_block_file(path, error))  // what is read once cannot be sought in
    throw Failure(path + ": is no regular file; what a program writes is read from stdin, -, as YUV4MPEG2");
  if (!std::ifstream(path, std::ios::binary)) throw Failure(path + ": cannot be read: permission denied");
  if (fs::file_size(path, error) == 0) throw Failure(path + ": is empty, a video file was expected");
}

// Empty where only those of subtitles are, which are copied, or left out.
std::string missing_decoders(GstDiscovererInfo* info) {
  std::string details;
  const gchar** missing = gst_discoverer_info_get_missing_elements_installer_details(info);
  if (!missing || !*missing) return "a decoder";
  // gstreamer|1.0|program|what is missing|how to ask an installer for it
  for (; *missing; ++missing) {
    const std::unique_ptr<gchar*, Releaser<g_strfreev>> fields{g_strsplit(*missing, "|", 5)};
    if (g_strv_length(fields.get()) >= 4 && !strstr(fields.get()[3], "subtitle"))
      details += (details.empty() ? "" : ", ") + std::string(fields.get()[3]);
  }
  return details;
}

// Null where it took longer than it may.
InfoPtr discover(const std::string& path, GstClockTime patience) {
  const std::string absolute = fs::absolute(path).string();
  const StringPtr uri{gst_filename_to_uri(absolute.c_str(), nullptr)};
  GError* raw_error = nullptr;
  const DiscovererPtr discoverer{gst_discoverer_new(patience, &raw_error)};
  InfoPtr info{discoverer ? gst_discoverer_discover_uri(discoverer.get(), uri.get(), &raw_error) : nullptr};
  const ErrorPtr error{raw_error};
  const GstDiscovererResult result = info ? gst_discoverer_info_get_result(info.get()) : GST_DISCOVERER_ERROR;
  if (result == GST_DISCOVERER_OK) return info;
  if (result == GST_DISCOVERER_TIMEOUT) return nullptr;
  if (result == GST_DISCOVERER_MISSING_PLUGINS) {
    const std::string missing = missing_decoders(info.get());
    if (missing.empty()) return info;
    throw Failure(path + ": GStreamer lacks " + missing);
  }
  throw Failure(path + ": no video that GStreamer can read" +
                (error ? " (" + one_line(error->message) + ")" : std::string()));
}

InfoPtr discover(const std::string& path) {
  for (const GstClockTime patience : kPatience)
    if (InfoPtr info = discover(path, patience)) return info;
  throw Failure(path + ": reading its head took too long");
}

using StreamPtr = std::unique_ptr<GstDiscovererStreamInfo, Releaser<g_object_unref>>;

// AC-3 out of a transport stream is listed as what the demuxer takes it for, too, with what it is behind
// that.
template <typename Use>
void for_each_stream(GList* streams, Use use) {
  for (GList* item = streams; item; item = item->next) {
    auto* stream = GST_DISCOVERER_STREAM_INFO(item->data);
    const StreamPtr behind{gst_discoverer_stream_info_get_next(stream)};
    if (!behind) use(stream);
  }
  gst_discoverer_stream_info_list_free(streams);
}

// The caps of the coded stream; null where they say nothing.
CapsPtr caps_of(GstDiscovererStreamInfo* stream) {
  CapsPtr caps{gst_discoverer_stream_info_get_caps(stream)};
  if (caps && (gst_caps_is_empty(caps.get()) || gst_caps_is_any(caps.get()))) caps.reset();
  return caps;
}

std::string orientation_of(GstDiscovererStreamInfo* stream) {
  const GstTagList* tags = gst_discoverer_stream_info_get_tags(stream);
  gchar* orientation = nullptr;
  if (tags) gst_tag_list_get_string(tags, GST_TAG_IMAGE_ORIENTATION, &orientation);
  const StringPtr owned{orientation};
  return owned && std::string_view(orientation) != "rotate-0" ? orientation : "";
}

std::string text_of(const GstStructure* coded, const char* field) {
  const char* text = gst_structure_get_string(coded, field);
  return text ? text : "";
}

// H.264 and H.265 say their colours in the stream, and the parsers pass on what it says; decoders fill in a
// guess where it says nothing, as they do for codecs that cannot say.
bool says_no_colour(const GstStructure* coded) {
  const bool could_say =
      gst_structure_has_name(coded, "video/x-h264") || gst_structure_has_name(coded, "video/x-h265");
  return could_say && !gst_structure_has_field(coded, "colorimetry");
}

// Fields may come in packets of their own, and VP8 has frames that only others refer to.
bool has_frame_in_each_packet(const GstStructure* coded, GstDiscovererVideoInfo* video) {
  return !gst_structure_has_name(coded, "video/x-vp8") && !gst_discoverer_video_info_is_interlaced(video);
}

void take_video(MediaFile& media, GstDiscovererVideoInfo* video) {
  const CapsPtr caps = caps_of(GST_DISCOVERER_STREAM_INFO(video));
  if (!caps) return;
  const GstStructure* coded = gst_caps_get_structure(caps.get(), 0);
  media.video_type = gst_structure_get_name(coded);
  media.frame_by_frame = has_frame_in_each_packet(coded, video);
  media.colour_unknown = says_no_colour(coded);
  media.width = static_cast<int>(gst_discoverer_video_info_get_width(video));
  media.height = static_cast<int>(gst_discoverer_video_info_get_height(video));
  const double numerator = gst_discoverer_video_info_get_framerate_num(video);
  media.frame_rate = numerator / gst_discoverer_video_info_get_framerate_denom(video);
  gst_structure_get(coded, "bit-depth-luma", G_TYPE_UINT, &media.bits, nullptr);
  media.orientation = orientation_of(GST_DISCOVERER_STREAM_INFO(video));
  media.mastering = text_of(coded, "mastering-display-info");
  media.light_level = text_of(coded, "content-light-level");
}

bool is_of_type(GstDiscovererStreamInfo* stream, std::initializer_list<const char*> types) {
  const CapsPtr caps = caps_of(stream);
  return caps && std::ranges::any_of(types, [&](const char* type) {
           return gst_structure_has_name(gst_caps_get_structure(caps.get(), 0), type);
         });
}

bool is_matroska(GstDiscovererStreamInfo* container) {
  return is_of_type(container, {"video/x-matroska", "video/webm"});
}

// HLS, DASH and Smooth Streaming: a list of files elsewhere, often without an end.
bool is_playlist(GstDiscovererStreamInfo* container) {
  return is_of_type(container, {"application/x-hls", "application/dash+xml", "application/vnd.ms-sstr+xml"});
}

// Another encoder and another muxer have other things to say on these.
constexpr const char* kOfTheCoding[] = {
    GST_TAG_ENCODER,  GST_TAG_ENCODER_VERSION,  GST_TAG_APPLICATION_NAME, GST_TAG_CONTAINER_FORMAT,
    GST_TAG_CODEC,    GST_TAG_VIDEO_CODEC,      GST_TAG_AUDIO_CODEC,      GST_TAG_SUBTITLE_CODEC,
    GST_TAG_BITRATE,  GST_TAG_NOMINAL_BITRATE,  GST_TAG_MINIMUM_BITRATE,  GST_TAG_MAXIMUM_BITRATE,
    GST_TAG_DURATION, GST_TAG_IMAGE_ORIENTATION};

std::shared_ptr<const GstTagList> tags_of(GstDiscovererContainerInfo* container) {
  const GstTagList* all = gst_discoverer_container_info_get_tags(container);
  if (!all) return nullptr;
  std::shared_ptr<GstTagList> kept(gst_tag_list_copy(all), MiniObjectReleaser());
  for (const char* tag : kOfTheCoding) gst_tag_list_remove_tag(kept.get(), tag);
  return gst_tag_list_is_empty(kept.get()) ? nullptr : kept;
}

std::shared_ptr<GstToc> chapters_of(GstDiscovererInfo* info) {
  const GstToc* toc = gst_discoverer_info_get_toc(info);
  if (!toc || !gst_toc_get_entries(toc)) return nullptr;
  return {gst_toc_ref(const_cast<GstToc*>(toc)), MiniObjectReleaser()};
}

void take_container(MediaFile& media, GstDiscovererInfo* info, const std::string& path) {
  const StreamPtr whole{gst_discoverer_info_get_stream_info(info)};
  if (whole && GST_IS_DISCOVERER_CONTAINER_INFO(whole.get())) {
    if (is_playlist(whole.get())) throw Failure(path + ": is a playlist, a video file was expected");
    media.is_matroska = is_matroska(whole.get());
    media.tags = tags_of(GST_DISCOVERER_CONTAINER_INFO(whole.get()));
  }
  media.chapters = chapters_of(info);
}

void take_audio(MediaFile& media, GstDiscovererStreamInfo* stream) {
  const CapsPtr caps = caps_of(stream);
  if (!caps) return;
  const GstStructure* coded = gst_caps_get_structure(caps.get(), 0);
  AudioStream audio{gst_structure_get_name(coded)};
  if (audio.type == "audio/mpeg") gst_structure_get_int(coded, "mpegversion", &audio.mpeg_version);
  audio.bits = static_cast<int>(gst_discoverer_audio_info_get_depth(GST_DISCOVERER_AUDIO_INFO(stream)));
  audio.caps = {gst_caps_ref(caps.get()), MiniObjectReleaser()};
  media.audio.push_back(audio);
}

}  // namespace

int64_t MediaFile::expected_frames() const { return std::llround(seconds * frame_rate); }

MediaFile inspect(const std::string& path) {
  check_readable(path);
  const InfoPtr info = discover(path);
  MediaFile media;
  take_container(media, info.get(), path);
  for_each_stream(gst_discoverer_info_get_video_streams(info.get()), [&](GstDiscovererStreamInfo* stream) {
    const auto video = GST_DISCOVERER_VIDEO_INFO(stream);
    const bool wanted = media.video_type.empty() && !gst_discoverer_video_info_is_image(video);
    wanted ? take_video(media, video) : void(++media.other_streams);
  });
  if (media.video_type.empty()) throw Failure(path + ": no video in it");
  for_each_stream(gst_discoverer_info_get_audio_streams(info.get()),
                  [&](GstDiscovererStreamInfo* stream) { take_audio(media, stream); });
  for_each_stream(gst_discoverer_info_get_subtitle_streams(info.get()), [&](GstDiscovererStreamInfo* stream) {
    const CapsPtr caps = caps_of(stream);
    media.subtitles.push_back(caps ? gst_structure_get_name(gst_caps_get_structure(caps.get(), 0)) : "");
  });
  const GstClockTime duration = gst_discoverer_info_get_duration(info.get());
  if (GST_CLOCK_TIME_IS_VALID(duration)) media.seconds = static_cast<double>(duration) / GST_SECOND;
  return media;
}

}  // namespace nonlocal::tools
