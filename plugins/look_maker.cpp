#include "look_maker.h"

#include <utility>

#include "nonlocal/error.h"

namespace nonlocal {
namespace {

std::shared_ptr<GBytes> bytes_of(const std::vector<float>& values) {
  if (values.empty()) {
    return nullptr;
  }
  return {g_bytes_new(values.data(), values.size() * sizeof(float)), g_bytes_unref};
}

Look look_of(const LookSource& source) {
  const CrossAttentionModel model(source.model);
  const TokenEmbeddings read = read_token_embeddings(source.embeddings);
  if (read.dim != model.embedding_dim()) {
    throw ModelError(source.embeddings, "expected tokens of " + std::to_string(model.embedding_dim()) +
                                            " values, as the filter in " + source.model + " reads, found " +
                                            std::to_string(read.dim));
  }
  Look look;
  look.filter.emplace(model, read.tokens());
  look.pooled_bytes = bytes_of(read.pooled);
  return look;
}

Look look_of(PromptReading reading) {
  Look look;
  look.filter = std::move(reading.filter);
  look.pooled_bytes = bytes_of(reading.pooled);
  look.tokens = std::move(reading.tokens);
  look.unknown_words = std::move(reading.unknown_words);
  look.cut = reading.cut;
  look.invalid = reading.invalid;
  return look;
}

}  // namespace

LookMaker::LookMaker(const LookSource& source) : source_(source), threads_(source.threads) {
  if (source_.embeddings.empty()) {
    reader_.emplace(source_.model, source_.threads);
  } else {
    given_ = look_of(source_);
  }
  thread_ = std::thread([this] { work(); });
}

LookMaker::~LookMaker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  is_asked_.notify_one();
  thread_.join();
}

void LookMaker::ask(const LookRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    asked_ = {request, ++last_};
  }
  is_asked_.notify_one();
}

std::shared_ptr<const Look> LookMaker::newest() {
  const std::lock_guard lock(mutex_);
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  return newest_;
}

void LookMaker::make_now(const LookRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    ++last_;
    asked_.reset();
    failure_ = nullptr;
  }
  std::shared_ptr<const Look> look = make(request);
  const std::lock_guard lock(mutex_);
  std::swap(newest_, look);  // the old one goes when the lock has
}

std::shared_ptr<const Look> LookMaker::make(const LookRequest& request) {
  const std::lock_guard lock(making_);
  auto look = std::make_shared<Look>(reader_ ? look_of(reader_->read(request.prompt)) : given_);
  look->request = request;
  if (look->filter && request.is_baked) {
    GradeLookParameters parameters;
    parameters.threads = threads_;
    look->baked = GradeLook::bake(*look->filter, request.format, parameters);
  }
  return look;
}

void LookMaker::work() {
  while (true) {
    Order order;
    {
      std::unique_lock lock(mutex_);
      is_asked_.wait(lock, [&] { return ends_ || asked_; });
      if (ends_) {
        return;
      }
      order = *std::exchange(asked_, std::nullopt);
    }
    try {
      std::shared_ptr<const Look> look = make(order.request);
      const std::lock_guard lock(mutex_);
      if (order.number == last_) {
        std::swap(newest_, look);  // the old one goes when the lock has
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (order.number == last_) {
        failure_ = std::current_exception();
      }
    }
  }
}

}  // namespace nonlocal
