// The GStreamer plugin: everything that it offers is registered here.
#include <gst/gst.h>

#include "nonlocaldenoise.h"
#include "selfattention.h"
#include "textcross.h"

static gboolean plugin_init(GstPlugin* plugin) {
  return GST_ELEMENT_REGISTER(nonlocaldenoise, plugin) && GST_ELEMENT_REGISTER(selfattention, plugin) &&
         GST_ELEMENT_REGISTER(textcross, plugin);
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, nonlocal, "Video filters by non-local averaging",
                  plugin_init, PACKAGE_VERSION, "LGPL", PACKAGE, PACKAGE_ORIGIN)
