// What tests of Network ask for beside its users.
#pragma once

#include "nonlocal/network.h"

namespace nonlocal {

struct NONLOCAL_API NetworkAccess {
  // Cuts frames into tiles of this size from now on, a multiple of the network's; 0 x 0 chooses it again.
  static void set_tile(Network& network, int width, int height);
};

}  // namespace nonlocal
