#include "evaluate_codec.h"

#include <fstream>
#include <opencv2/imgproc.hpp>

#include "failure.h"
#include "raw_video.h"
#include "subprocess.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

// x264 codes 4:2:0 of even sizes: odd ones get their last column and row twice. Chroma is as large as it is.
Planes of_even_size(const Planes& planes) {
  Planes even = planes;
  const cv::Size size = planes[0].size();
  cv::copyMakeBorder(planes[0], even[0], 0, size.height % 2, 0, size.width % 2, cv::BORDER_REPLICATE);
  return even;
}

Arguments with(Arguments all, const Arguments& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

Sequence through_x264(const Sequence& sequence, double crf, const Tick& tick) {
  const auto alive = [&] { tick(0); };
  const TemporaryFolder folder;
  {
    std::ofstream out(folder.file("in"), std::ios::binary);
    for (const Planes& planes : sequence.frames) write_planes(out, of_even_size(planes));
    if (!out.flush()) throw Failure(folder.file("in") + ": could not be written whole");
  }
  const bool is_gray = sequence.frames[0].size() == 1;
  const Arguments raw{"-f", "rawvideo", "-pix_fmt", is_gray ? "gray" : "yuv420p"};
  const Arguments ffmpeg{"ffmpeg", "-v", "error", "-nostdin", "-y"};
  const Planes even = of_even_size(sequence.frames[0]);
  const std::string size = formatted("%dx%d", even[0].cols, even[0].rows);
  // Full range stays full range: else ffmpeg would bring gray into video range, and back.
  const Arguments coder{"-vf",     is_gray ? "format=yuvj420p" : "null",
                        "-c:v",    "libx264",
                        "-preset", "medium",
                        "-crf",    formatted("%g", crf),
                        "-g",      "250",
                        "-f",      "matroska"};
  run_command(with(with(with(ffmpeg, raw), {"-s", size, "-i", folder.file("in")}),
                   with(coder, {folder.file("coded")})),
              alive);
  run_command(with(with(ffmpeg, {"-i", folder.file("coded")}), with(raw, {folder.file("out")})), alive);
  std::ifstream in(folder.file("out"), std::ios::binary);
  Sequence coded{sequence.name, sequence.info, {}};
  for (size_t i = 0; i < sequence.frames.size(); ++i) {
    coded.frames.push_back(read_planes(in, even));
    cv::Mat& luma = coded.frames.back()[0];
    luma = luma(cv::Rect({}, sequence.frames[i][0].size())).clone();
  }
  if (!in || in.peek() != std::ifstream::traits_type::eof())
    throw Failure("ffmpeg gave not as many frames as it got");
  return coded;
}

}  // namespace nonlocal::tools
