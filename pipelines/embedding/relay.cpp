// A camera, denoised, for others to watch: relay [SOURCE [PORT]]
//
// SOURCE is a device such as /dev/video0 (the default) or a video file, which plays in place of a camera,
// from its beginning for the first who watches. Serves rtsp://127.0.0.1:PORT/denoised to this machine alone
// (PORT 8554; 0: one that is free) until Ctrl-C; all who watch share one camera and one filter.
#include <gst/gst.h>
#include <gst/rtsp-server/rtsp-server.h>

#include <iostream>
#include <string>

namespace {

std::string media(const std::string& source) {
  const std::string pictures = source.starts_with("/dev/")
                                   ? "v4l2src device=\"" + source + "\" ! decodebin"
                                   : "filesrc location=\"" + source + "\" ! decodebin ! identity sync=true";
  return "( " + pictures +
         " ! videoconvert ! queue ! nonlocaldenoise adaptive=true ! videoconvert ! video/x-raw,format=I420"
         " ! x264enc tune=zerolatency speed-preset=veryfast key-int-max=25 ! rtph264pay name=pay0 pt=96 )";
}

void serve(GstRTSPServer* server, const std::string& source) {
  GstRTSPMediaFactory* factory = gst_rtsp_media_factory_new();
  gst_rtsp_media_factory_set_launch(factory, media(source).c_str());
  gst_rtsp_media_factory_set_shared(factory, TRUE);
  GstRTSPMountPoints* mounts = gst_rtsp_server_get_mount_points(server);
  gst_rtsp_mount_points_add_factory(mounts, "/denoised", factory);
  g_object_unref(mounts);
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  GstRTSPServer* server = gst_rtsp_server_new();
  gst_rtsp_server_set_address(server, "127.0.0.1");
  gst_rtsp_server_set_service(server, argc > 2 ? argv[2] : "8554");
  serve(server, argc > 1 ? argv[1] : "/dev/video0");
  if (gst_rtsp_server_attach(server, nullptr) == 0) return std::cerr << "relay: cannot listen\n", 1;
  std::cout << "rtsp://127.0.0.1:" << gst_rtsp_server_get_bound_port(server) << "/denoised" << std::endl;
  g_main_loop_run(g_main_loop_new(nullptr, FALSE));
}
