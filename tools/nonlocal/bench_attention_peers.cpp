#include "bench_attention_peers.h"

#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <fstream>
#include <limits>
#include <random>

#include "bench.h"
#include "failure.h"
#include "frame_times.h"
#include "gst.h"
#include "subprocess.h"
#include "text.h"

// Of the OpenMP runtime that oneDNN brings: its header is not where every compiler looks.
extern "C" void omp_set_num_threads(int threads);

namespace nonlocal::tools {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// One product of a slab of rows with a matrix in oneDNN's own order.
class Product {
 public:
  Product(int rows, int depth, int columns, Type type)
      : stream_(cpu()),
        description_(describe(rows, depth, columns, type)),
        primitive_(description_),
        source_(random(description_.src_desc(), rows, depth)),
        weights_(random(description_.weights_desc(), depth, columns)),
        out_(description_.dst_desc(), cpu()) {}

  void run() {
    primitive_.execute(stream_,
                       {{DNNL_ARG_SRC, source_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, out_}});
    stream_.wait();
  }

 private:
  static dnnl::matmul::primitive_desc describe(int rows, int depth, int columns, Type type) {
    return {dnnl::matmul::desc(memory::desc({rows, depth}, type, Tag::ab),
                               memory::desc({depth, columns}, type, Tag::any),
                               memory::desc({rows, columns}, type, Tag::ab)),
            cpu()};
  }

  memory random(const memory::desc& wanted, int rows, int columns) {
    memory plain(memory::desc({rows, columns}, Type::f32, Tag::ab), cpu());
    auto* values = static_cast<float*>(plain.get_data_handle());
    std::minstd_rand generator(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::generate_n(values, static_cast<size_t>(rows) * columns, [&] { return uniform(generator); });
    memory ordered(wanted, cpu());
    dnnl::reorder(plain, ordered).execute(stream_, plain, ordered);
    stream_.wait();
    return ordered;
  }

  dnnl::stream stream_;
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul primitive_;
  memory source_;
  memory weights_;
  memory out_;
};

// Both products of attention without what lies between them, in slabs of queries: of several heights the
// fastest.
class OneDnnPeer : public AttentionPeer {
 public:
  explicit OneDnnPeer(const AttentionTask& task) : task_(task) {}

  double measure() override {
    omp_set_num_threads(task_.threads);
    double best = std::numeric_limits<double>::infinity();
    for (const int rows : {128, 512, 2048}) best = std::min(best, measure(std::min(rows, task_.tokens)));
    return best;
  }

 private:
  double measure(int rows) const {
    const Type type = task_.is_bfloat16 ? Type::bf16 : Type::f32;
    Product scores(rows, task_.dim, task_.keys, type);
    Product average(rows, task_.keys, task_.dim, type);
    scores.run();
    average.run();
    // Slabs are alike: some stand for all.
    const double slabs = static_cast<double>(task_.tokens) / rows * task_.heads;
    const int timed = static_cast<int>(std::clamp(std::round(slabs), 1.0, 32.0));
    double best = std::numeric_limits<double>::infinity();
    const Stopwatch turn;
    for (int go = 0; go < kFewestGoes || turn.ms() < kTurnMs; ++go) {
      check_interrupted();
      const Stopwatch watch;
      for (int i = 0; i < timed; ++i) {
        scores.run();
        average.run();
      }
      best = std::min(best, watch.ms());
    }
    return best / timed * slabs;
  }

  static constexpr int kFewestGoes = 2;
  static constexpr double kTurnMs = 200;  // of each height

  const AttentionTask& task_;
};

// Arguments: tokens, keys, dim, heads, threads, where the least milliseconds go.
constexpr const char* kPyTorchScript = R"(
import sys, time
import torch
tokens, keys, dim, heads, threads = map(int, sys.argv[1:6])
for line in open("/proc/meminfo"):
    if line.startswith("MemAvailable"):
        available = 1024 * int(line.split()[1])
wanted = 3 * 4 * heads * tokens * keys
if wanted > available:
    sys.exit(f"its matrices of queries x keys want {wanted / 2**30:.1f} GiB")
q, k, v = (torch.randn(heads, n, dim) for n in (tokens, keys, keys))

def seconds():
    start = time.perf_counter()
    torch.softmax(q @ k.transpose(1, 2) / dim**0.5, dim=2) @ v
    return time.perf_counter() - start

times = []
with torch.no_grad():
    for count in sorted({1, threads}):
        torch.set_num_threads(count)
        seconds()  # the first call with these threads starts them
        calls, end = 0, time.perf_counter() + 0.5
        while calls < 2 or time.perf_counter() < end:
            times.append(seconds())
            calls += 1
open(sys.argv[6], "w").write(str(1000 * min(times)))
)";

// The formula as one writes it, in float32; the better of one thread and all.
class PyTorchPeer : public AttentionPeer {
 public:
  explicit PyTorchPeer(const AttentionTask& task) : task_(task) {
    std::ofstream(folder_.file("attention.py")) << kPyTorchScript;
  }

  double measure() override {
    const std::string result = folder_.file("ms");
    Arguments arguments{"/usr/bin/python3", folder_.file("attention.py")};
    for (const int n : {task_.tokens, task_.keys, task_.dim, task_.heads, task_.threads})
      arguments.push_back(std::to_string(n));
    arguments.push_back(result);
    run_command(arguments);
    double ms = 0;
    if (!(std::ifstream(result) >> ms)) throw Failure("PyTorch wrote no time");
    return ms;
  }

 private:
  const AttentionTask& task_;
  TemporaryFolder folder_;
};

template <typename SomePeer>
auto maker(const AttentionTask& task) {
  return [&task] { return std::make_unique<SomePeer>(task); };
}

}  // namespace

std::vector<KnownAttentionPeer> known_attention_peers(const AttentionTask& task) {
  std::vector<KnownAttentionPeer> peers;
  peers.push_back({"onednn_matmul", "oneDNN, products only", maker<OneDnnPeer>(task)});
  peers.push_back({"pytorch", "PyTorch, float32", nullptr});
  if (has_pytorch()) peers.back().make = maker<PyTorchPeer>(task);
  return peers;
}

}  // namespace nonlocal::tools
