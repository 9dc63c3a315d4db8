// The web page of a live pipeline: an HTTP server for browsers on this machine, or on others where wanted.
#pragma once

#include <libsoup/soup.h>

#include <functional>
#include <list>
#include <string>

#include "live_frames.h"

namespace nonlocal::tools {

// Serves the page at an address that has a secret of 128 random bits in it, and a WebSocket beside it. A
// request is refused (403) unless it has the secret, its Host is the IP address that it came to (or
// localhost): names that other people's DNS servers point here are not; and it comes from the page itself
// where it says where it comes from, which WebSockets must. The body of a request is not kept. Runs in
// the default main context; all is called in its thread.
class LiveServer {
 public:
  struct Handlers {
    std::function<std::string()> greeting;  // the first message to a browser
    // A text from a browser; what is returned, if anything, is the answer to this one.
    std::function<std::string(const std::string&)> text;
    std::function<void()> readiness_changed;  // see is_ready() and is_watched()
  };

  // `port` 0: one that is free. Throws Failure where it cannot listen there.
  LiveServer(const std::string& address, int port, Handlers handlers);
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] bool is_watched() const { return !browsers_.empty(); }

  // A browser has room for a frame: it has said that it has drawn those before.
  [[nodiscard]] bool is_ready() const;

  // Sends a text to every browser.
  void tell(const std::string& text);

  // Sends a frame to every browser that has room for it; others go without.
  void show(GBytes* frame);

  // To be called now and then: hangs up where frames were not drawn for long.
  void drop_stuck_browsers();

 private:
  struct Browser {
    LiveServer* server;
    SoupWebsocketConnection* connection;
    bool has_room;  // for a frame: none is on its way, so that what is drawn is never old
    gint64 alive;   // monotonic time of the last frame drawn, in microseconds
  };

  void listen(const std::string& address, int port);
  void check(SoupServerMessage* message, const char* path) const;
  void answer(SoupServerMessage* message) const;
  void welcome(SoupWebsocketConnection* connection);
  void hear(Browser& browser, int type, GBytes* message);
  void forget(Browser& browser);

  Handlers handlers_;
  std::string secret_;
  std::string url_;
  SoupServer* server_;
  std::list<Browser> browsers_;
};

}  // namespace nonlocal::tools
