// What attention is compared with: the plain formula by PyTorch, and oneDNN's matrix products alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nonlocal::tools {

struct AttentionTask {
  int tokens = 0;
  int keys = 0;
  int dim = 0;
  int heads = 1;
  bool is_bfloat16 = false;
  int threads = 1;
};

class AttentionPeer {
 public:
  virtual ~AttentionPeer() = default;

  // The task's least time of several, in milliseconds, after an untimed run. Throws Failure.
  virtual double measure() = 0;
};

struct KnownAttentionPeer {
  std::string name;  // pytorch, onednn_matmul
  std::string title;
  std::function<std::unique_ptr<AttentionPeer>()> make;  // null: not installed. Throws as Peer's
};

// `task` must outlive what they make.
std::vector<KnownAttentionPeer> known_attention_peers(const AttentionTask& task);

}  // namespace nonlocal::tools
