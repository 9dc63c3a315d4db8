// What attention is compared with: the plain formula by PyTorch, and oneDNN's matrix products alone.
#pragma once

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

  // The task's time, in milliseconds. Throws Failure.
  virtual double measure() = 0;
};

struct NamedAttentionPeer {
  std::string name;  // pytorch, onednn_matmul
  std::string title;
  std::unique_ptr<AttentionPeer> peer;  // null: not installed
};

// `task` must outlive them.
std::vector<NamedAttentionPeer> make_attention_peers(const AttentionTask& task);

}  // namespace nonlocal::tools
