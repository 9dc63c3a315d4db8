// What the encoders are compared with: the same towers, written down plainly, by PyTorch.
#pragma once

#include <string>

#include "subprocess.h"

namespace nonlocal::tools {

struct TowerTimes {
  double text_ms = 0;
  double vision_ms = 0;
};

class PyTorchTowers {
 public:
  PyTorchTowers(int tokens, int layers, int threads);

  // The least of several runs, with one thread or all, whichever is faster. Throws Failure.
  TowerTimes measure();

  // The library that its matrix products come from, once measure() has been called.
  [[nodiscard]] const std::string& products_by() const { return products_by_; }

 private:
  int tokens_, layers_, threads_;
  std::string products_by_;
  TemporaryFolder folder_;
};

}  // namespace nonlocal::tools
