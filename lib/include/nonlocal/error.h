// What the library throws. Every message says what was expected and what came.
//
// Where memory runs out it is std::bad_alloc. What filters frames may go on then, but may have lost what it
// kept of frames before, or a part of it, as of one plane: reset(), where there is one, makes it certain.
// What was opened from a file stays so.
#pragma once

#include <stdexcept>
#include <string>

#include "nonlocal/export.h"

namespace nonlocal {

// The base of all of them: catch this one to catch them all.
class NONLOCAL_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A parameter out of its range, or planes that do not fit together.
class NONLOCAL_API InvalidArgument : public Error {
 public:
  using Error::Error;
};

// A model file that cannot be read, or does not hold what is expected of it.
class NONLOCAL_API ModelError : public Error {
 public:
  ModelError(const std::string& file, const std::string& problem) : Error(file + ": " + problem) {}
};

}  // namespace nonlocal
