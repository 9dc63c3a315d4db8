// Makes looks of prompts off the streaming thread.
#pragma once

#include <glib.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nonlocal/cross_attention_filter.h"
#include "nonlocal/frame_grader.h"
#include "nonlocal/prompt_reader.h"

namespace nonlocal {

// Where prompts' tokens and what they do come from.
struct LookSource {
  std::string model;       // a file: the filter's weights, and a text encoder where there are no embeddings
  std::string embeddings;  // a file of one prompt's token embeddings, in place of prompts; "": none
  int threads = 0;         // the encoder's, and what use_threads() begins with
};

struct LookRequest {
  std::string prompt;
  ColourFormat format;
  bool is_baked = true;

  bool operator==(const LookRequest&) const = default;
};

// What a prompt asks for. Immutable.
struct Look {
  LookRequest request;
  std::optional<CrossAttentionFilter> filter;  // none: frames stay as they are
  std::shared_ptr<const GradeLook> baked;      // where baked, and there is a filter
  std::vector<std::string> tokens;             // as the vocabulary writes them
  std::vector<std::string> unknown_words;      // of the prompt, that the model has not learned
  std::shared_ptr<GBytes> pooled_bytes;        // the prompt as one vector of floats, where there is one
  std::size_t cut = 0;                         // tokens that the model's context had no room for
  std::size_t invalid = 0;                     // places that were not UTF-8
};

// One thread that reads prompts, the newest first: of those that came while it was at work it reads the last.
class LookMaker {
 public:
  // Opens the files, which takes a while. Throws what the library's models do.
  explicit LookMaker(const LookSource& source);
  ~LookMaker();
  LookMaker(const LookMaker&) = delete;
  LookMaker& operator=(const LookMaker&) = delete;

  // From the next look that is baked on, at most as many; 0: as many as the machine has.
  void use_threads(int threads) { threads_ = threads; }

  // Returns at once.
  void ask(const LookRequest& request);

  // The newest that is ready; null: none yet. Waits for no work. Throws what making the last that was asked
  // for threw, once.
  std::shared_ptr<const Look> newest();

  // Makes this request's look the newest, on the caller's thread. What was asked for before is dropped.
  void make_now(const LookRequest& request);

 private:
  struct Order {
    LookRequest request;
    std::uint64_t number;
  };

  [[nodiscard]] std::shared_ptr<const Look> make(const LookRequest& request);
  void work();

  LookSource source_;
  std::atomic<int> threads_;
  std::optional<PromptReader> reader_;  // none: all looks are
  Look given_;                          // of these embeddings
  std::mutex making_;                   // one look at a time

  std::mutex mutex_;  // guards what follows; held for moments
  std::condition_variable is_asked_;
  std::optional<Order> asked_;
  std::uint64_t last_ = 0;  // number of the newest request: looks of earlier ones are dropped
  std::shared_ptr<const Look> newest_;
  std::exception_ptr failure_;  // of the newest request that failed, until it is told
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace nonlocal
