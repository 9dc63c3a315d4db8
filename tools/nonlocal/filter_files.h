// Which files become which: one or several, videos, pictures and numbered pictures, to files or a folder.
#pragma once

#include <string>
#include <vector>

#include "filter_pictures.h"

namespace nonlocal::tools {

struct FilePair {
  std::string input;
  std::string output;
};

// IN..., then OUT. Where OUT is a folder, or ends with / and is made here, each IN goes to a file in it of
// the same name. Throws Failure where several go to one file, and where one would go in the place of any IN.
std::vector<FilePair> pairs_of(const std::vector<std::string>& files);

// By its name.
bool is_of_pictures(const FilePair& pair);

// The files of a pair of pictures: itself, or all that its numbers stand for. Throws Failure where there are
// none or one is missing, and where one would go in the place of another.
PictureClip clip_of(const FilePair& pair);

}  // namespace nonlocal::tools
