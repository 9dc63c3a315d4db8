// A network camera for tests: rtsp_server [FRAMES]
//
// Serves H.264 and a sound track at an RTSP address of this machine alone, on a port that is free: FRAMES
// frames to each client, or without end. Prints the address once clients may come, ends by itself after two
// minutes.
#include <gst/gst.h>
#include <gst/rtsp-server/rtsp-server.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

constexpr int kSecondsToLive = 120;

gboolean stop(gpointer loop) {
  g_main_loop_quit(static_cast<GMainLoop*>(loop));
  return G_SOURCE_REMOVE;
}

// -1 frames: without end.
void serve_pictures_and_sound(GstRTSPServer* server, int frames) {
  GstRTSPMediaFactory* camera = gst_rtsp_media_factory_new();
  // Each packet of sound is as long as a frame.
  const std::string count = " num-buffers=" + std::to_string(frames);
  const std::string media = "( videotestsrc is-live=true" + count +
                            "  ! video/x-raw,format=I420,width=160,height=120,framerate=25/1"
                            "  ! x264enc tune=zerolatency key-int-max=5 ! rtph264pay name=pay0 pt=96"
                            "  audiotestsrc is-live=true samplesperbuffer=320" +
                            count + "  ! audio/x-raw,rate=8000 ! alawenc ! rtppcmapay name=pay1 pt=8 )";
  gst_rtsp_media_factory_set_launch(camera, media.c_str());
  GstRTSPMountPoints* mounts = gst_rtsp_server_get_mount_points(server);
  gst_rtsp_mount_points_add_factory(mounts, "/camera", camera);
  g_object_unref(mounts);
}

}  // namespace

int main(int argc, char** argv) {
  // Not the plugin under test, which may need what only gst-launch is started with, nor a share in its
  // registry.
  g_unsetenv("GST_PLUGIN_PATH");
  g_unsetenv("GST_REGISTRY");
  gst_init(&argc, &argv);
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  GstRTSPServer* server = gst_rtsp_server_new();
  gst_rtsp_server_set_address(server, "127.0.0.1");
  gst_rtsp_server_set_service(server, "0");
  serve_pictures_and_sound(server, argc > 1 ? std::atoi(argv[1]) : -1);
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
