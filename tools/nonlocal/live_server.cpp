#include "live_server.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "failure.h"
#include "live_page.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr gint64 kStuck = 60 * G_USEC_PER_SEC;
constexpr std::string_view kUnknownName = "open this page by the IP address of this machine, not by a name\n";
constexpr guint64 kLongestMessage = 16 * 1024;  // from a browser, in bytes

using InetAddressPtr = std::unique_ptr<GInetAddress, Releaser<g_object_unref>>;
using SocketAddressPtr = std::unique_ptr<GSocketAddress, Releaser<g_object_unref>>;
using UriPtr = std::unique_ptr<GUri, Releaser<g_uri_unref>>;

// 128 bits that nobody can guess, as hexadecimal digits.
std::string random_text() {
  std::array<unsigned char, 16> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) throw Failure("the system has no random numbers");
  std::string text;
  for (const unsigned char byte : bytes) text += formatted("%02x", byte);
  return text;
}

// Takes as long wherever the texts differ.
bool is_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

// What follows "/SECRET", or nullptr where the secret is another.
const char* behind_secret(const char* path, const std::string& secret) {
  const std::string_view all = path;
  const std::string_view first = all.substr(0, std::min(all.size(), secret.size() + 1));
  const char* rest = path + first.size();
  return is_equal(first, "/" + secret) && *rest == '/' ? rest : nullptr;
}

const char* header(SoupServerMessage* message, const char* name) {
  return soup_message_headers_get_one(soup_server_message_get_request_headers(message), name);
}

// The address that the request came to, by its number; localhost where that is this machine's own.
bool names_us(SoupServerMessage* message, const char* host) {
  const UriPtr uri{g_uri_parse((std::string("http://") + host).c_str(), G_URI_FLAGS_NONE, nullptr)};
  GSocketAddress* local = soup_server_message_get_local_address(message);
  if (!uri || !G_IS_INET_SOCKET_ADDRESS(local)) return false;
  GInetAddress* ours = g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(local));
  const std::string name = g_uri_get_host(uri.get());
  if (name == "localhost") return g_inet_address_get_is_loopback(ours);
  const InetAddressPtr asked{g_inet_address_new_from_string(name.c_str())};
  return asked && g_inet_address_equal(asked.get(), ours);
}

bool comes_from_page(SoupServerMessage* message, const char* host) {
  const char* origin = header(message, "Origin");
  if (!origin) return !header(message, "Upgrade");
  return std::string("http://") + host == origin;
}

// Nothing but what is in the page itself, by this answer's nonce, and its own WebSocket.
std::string policy(const std::string& nonce, const char* host) {
  return "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce +
         "'; connect-src ws://" + host +
         "; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

std::string page_with(const std::string& nonce) {
  constexpr std::string_view kPlace = "NONCE";
  std::string page(kLivePage);
  for (size_t at = page.find(kPlace); at != std::string::npos; at = page.find(kPlace, at + nonce.size()))
    page.replace(at, kPlace.size(), nonce);
  return page;
}

void set_headers(SoupServerMessage* message, const std::string& security_policy) {
  SoupMessageHeaders* headers = soup_server_message_get_response_headers(message);
  const std::array<std::array<const char*, 2>, 6> all = {{
      {"Content-Security-Policy", security_policy.c_str()},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},  // the address is a secret
      {"Cache-Control", "no-store"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
  }};
  for (const auto& [name, value] : all) soup_message_headers_replace(headers, name, value);
}

void refuse(SoupServerMessage* message, guint status, std::string_view text = "") {
  soup_message_headers_replace(soup_server_message_get_response_headers(message), "Connection", "close");
  soup_server_message_set_status(message, status, nullptr);
  if (!text.empty())
    soup_server_message_set_response(message, "text/plain", SOUP_MEMORY_STATIC, text.data(), text.size());
}

std::string in_url(const std::string& address) {
  if (address == "0.0.0.0") return "127.0.0.1";
  if (address == "::") return "[::1]";
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

}  // namespace

LiveServer::LiveServer(const std::string& address, int port, Handlers handlers)
    : handlers_(std::move(handlers)), secret_(random_text()), server_(soup_server_new(nullptr, nullptr)) {
  // Pictures do not get smaller by it.
  soup_server_remove_websocket_extension(server_, SOUP_TYPE_WEBSOCKET_EXTENSION_DEFLATE);
  soup_server_add_early_handler(
      server_, nullptr,
      [](SoupServer*, SoupServerMessage* message, const char* path, GHashTable*, gpointer self) {
        static_cast<LiveServer*>(self)->check(message, path);
      },
      this, nullptr);
  soup_server_add_handler(
      server_, nullptr,
      [](SoupServer*, SoupServerMessage* message, const char*, GHashTable*, gpointer self) {
        static_cast<LiveServer*>(self)->answer(message);
      },
      this, nullptr);
  soup_server_add_websocket_handler(
      server_, nullptr, nullptr, nullptr,
      [](SoupServer*, SoupServerMessage*, const char*, SoupWebsocketConnection* connection, gpointer self) {
        static_cast<LiveServer*>(self)->welcome(connection);
      },
      this, nullptr);
  try {
    listen(address, port);
  } catch (...) {
    g_object_unref(server_);
    throw;
  }
}

LiveServer::~LiveServer() {
  for (Browser& browser : browsers_) {
    g_signal_handlers_disconnect_by_data(browser.connection, &browser);
    g_object_unref(browser.connection);
  }
  soup_server_disconnect(server_);
  g_object_unref(server_);
}

void LiveServer::listen(const std::string& address, int port) {
  const SocketAddressPtr place{g_inet_socket_address_new_from_string(address.c_str(), port)};
  if (!place) throw Failure("--address takes an IP address, such as 127.0.0.1, not " + address);
  GError* raw_error = nullptr;
  soup_server_listen(server_, place.get(), SoupServerListenOptions(0), &raw_error);
  const ErrorPtr error{raw_error};
  if (error) throw Failure(formatted("%s port %d: %s", address.c_str(), port, error->message));
  GSList* uris = soup_server_get_uris(server_);
  const int bound = g_uri_get_port(static_cast<GUri*>(uris->data));
  g_slist_free_full(uris, [](gpointer uri) { g_uri_unref(static_cast<GUri*>(uri)); });
  url_ = formatted("http://%s:%d/%s/", in_url(address).c_str(), bound, secret_.c_str());
}

// Before anything else: what is refused here is neither answered nor made a WebSocket.
void LiveServer::check(SoupServerMessage* message, const char* path) const {
  // What else somebody sends is not kept: it could be any amount.
  soup_message_body_set_accumulate(soup_server_message_get_request_body(message), FALSE);
  const char* host = header(message, "Host");
  const char* rest = behind_secret(path, secret_);
  if (!rest) return refuse(message, SOUP_STATUS_FORBIDDEN);
  if (!host || !names_us(message, host)) return refuse(message, SOUP_STATUS_FORBIDDEN, kUnknownName);
  if (!comes_from_page(message, host)) return refuse(message, SOUP_STATUS_FORBIDDEN);
  const bool is_socket = header(message, "Upgrade");
  if (std::string_view(rest) != (is_socket ? "/socket" : "/")) return refuse(message, SOUP_STATUS_NOT_FOUND);
  if (std::string_view(soup_server_message_get_method(message)) != "GET")
    refuse(message, SOUP_STATUS_METHOD_NOT_ALLOWED);
}

void LiveServer::answer(SoupServerMessage* message) const {
  if (header(message, "Upgrade")) return;  // libsoup makes it a WebSocket
  const std::string nonce = random_text();
  const std::string page = page_with(nonce);
  set_headers(message, policy(nonce, header(message, "Host")));
  soup_server_message_set_status(message, SOUP_STATUS_OK, nullptr);
  soup_server_message_set_response(message, "text/html; charset=utf-8", SOUP_MEMORY_COPY, page.data(),
                                   page.size());
}

void LiveServer::welcome(SoupWebsocketConnection* connection) {
  soup_websocket_connection_set_max_incoming_payload_size(connection, kLongestMessage);
  g_object_ref(connection);
  Browser& browser = browsers_.emplace_back(Browser{this, connection, true, g_get_monotonic_time()});
  const auto hear = +[](SoupWebsocketConnection*, int type, GBytes* message, gpointer one) {
    static_cast<Browser*>(one)->server->hear(*static_cast<Browser*>(one), type, message);
  };
  const auto forget = +[](SoupWebsocketConnection*, gpointer one) {
    static_cast<Browser*>(one)->server->forget(*static_cast<Browser*>(one));
  };
  g_signal_connect(connection, "message", G_CALLBACK(hear), &browser);
  g_signal_connect(connection, "closed", G_CALLBACK(forget), &browser);
  soup_websocket_connection_send_text(connection, handlers_.greeting().c_str());
  handlers_.readiness_changed();
}

// An empty text says that a frame was drawn.
void LiveServer::hear(Browser& browser, int type, GBytes* message) {
  gsize size = 0;
  const auto* data = static_cast<const char*>(g_bytes_get_data(message, &size));
  if (type != SOUP_WEBSOCKET_DATA_TEXT) return;
  if (size == 0) {
    browser.has_room = true;
    browser.alive = g_get_monotonic_time();
    return handlers_.readiness_changed();
  }
  const std::string answer = handlers_.text(std::string(data, size));
  if (!answer.empty()) soup_websocket_connection_send_text(browser.connection, answer.c_str());
}

void LiveServer::forget(Browser& browser) {
  g_signal_handlers_disconnect_by_data(browser.connection, &browser);
  g_object_unref(browser.connection);
  browsers_.remove_if([gone = &browser](const Browser& other) { return &other == gone; });
  handlers_.readiness_changed();
}

bool LiveServer::is_ready() const {
  return std::ranges::any_of(browsers_, [](const Browser& browser) { return browser.has_room; });
}

void LiveServer::tell(const std::string& text) {
  for (const Browser& browser : browsers_) {
    if (soup_websocket_connection_get_state(browser.connection) == SOUP_WEBSOCKET_STATE_OPEN)
      soup_websocket_connection_send_text(browser.connection, text.c_str());
  }
}

void LiveServer::show(GBytes* frame) {
  for (Browser& browser : browsers_) {
    if (!browser.has_room) continue;
    if (soup_websocket_connection_get_state(browser.connection) != SOUP_WEBSOCKET_STATE_OPEN) continue;
    browser.has_room = false;
    soup_websocket_connection_send_message(browser.connection, SOUP_WEBSOCKET_DATA_BINARY, frame);
  }
}

void LiveServer::drop_stuck_browsers() {
  const gint64 now = g_get_monotonic_time();
  for (const Browser& browser : browsers_) {
    if (!browser.has_room && now - browser.alive > kStuck &&
        soup_websocket_connection_get_state(browser.connection) == SOUP_WEBSOCKET_STATE_OPEN)
      soup_websocket_connection_close(browser.connection, SOUP_WEBSOCKET_CLOSE_GOING_AWAY, "no frame drawn");
  }
}

}  // namespace nonlocal::tools
