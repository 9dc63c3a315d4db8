// What ends a command: main() prints it as one line and returns a non-zero status.
#pragma once

#include <stdexcept>
#include <string>

namespace nonlocal::tools {

// Something the user can act on: names the file or option, what was expected and what came. Exit status 1.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Ctrl-C, or a polite kill. Exit status 130, as a shell expects of it.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace nonlocal::tools
