// A network camera for tests: serves H.264 and a sound track at an RTSP address of this machine alone, on a
// port that is free. Prints the address once clients may come, ends by itself after a minute.
#include <gst/gst.h>
#include <gst/rtsp-server/rtsp-server.h>

#include <iostream>

namespace {

constexpr int kSecondsToLive = 60;

gboolean stop(gpointer loop) {
  g_main_loop_quit(static_cast<GMainLoop*>(loop));
  return G_SOURCE_REMOVE;
}

void serve_pictures_and_sound(GstRTSPServer* server) {
  GstRTSPMediaFactory* camera = gst_rtsp_media_factory_new();
  gst_rtsp_media_factory_set_launch(
      camera,
      "( videotestsrc is-live=true ! video/x-raw,format=I420,width=160,height=120,framerate=25/1"
      "  ! x264enc tune=zerolatency key-int-max=5 ! rtph264pay name=pay0 pt=96"
      "  audiotestsrc is-live=true ! alawenc ! rtppcmapay name=pay1 pt=8 )");
  GstRTSPMountPoints* mounts = gst_rtsp_server_get_mount_points(server);
  gst_rtsp_mount_points_add_factory(mounts, "/camera", camera);
  g_object_unref(mounts);
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  GstRTSPServer* server = gst_rtsp_server_new();
  gst_rtsp_server_set_address(server, "127.0.0.1");
  gst_rtsp_server_set_service(server, "0");
  serve_pictures_and_sound(server);
  if (gst_rtsp_server_attach(server, nullptr) == 0) {
    std::cerr << "rtsp_server: cannot listen on 127.0.0.1\n";
    return 1;
  }
  g_timeout_add_seconds(kSecondsToLive, stop, loop);
  std::cout << "rtsp://127.0.0.1:" << gst_rtsp_server_get_bound_port(server) << "/camera" << std::endl;
  g_main_loop_run(loop);
  g_object_unref(server);
  g_main_loop_unref(loop);
  return 0;
}
