// Frames as bytes in a file, plane after plane, row after row.
#pragma once

#include <iosfwd>
#include <string>

#include "planes.h"

namespace nonlocal::tools {

void write_planes(std::ostream& out, const Planes& planes);

// Planes of the size of `like`. The stream says whether it had that many bytes.
Planes read_planes(std::istream& in, const Planes& like);

}  // namespace nonlocal::tools
