// The web page of `nonlocal live`: live_page.html, with its style and its script.
#pragma once

#include <string_view>

namespace nonlocal::tools {

// NONCE in it stands for the nonce of an answer's Content-Security-Policy.
extern const std::string_view kLivePage;

}  // namespace nonlocal::tools
