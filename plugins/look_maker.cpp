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

}  // namespace

LookMaker::LookMaker(const LookSource& source) : source_(source), model_(source.model), words_(source.model) {
  int width = 0;
  if (!source_.embeddings.empty()) {
    embeddings_ = read_token_embeddings(source_.embeddings);
    width = embeddings_->dim;
  } else {
    encoder_.emplace(source_.model, EncoderParameters{AttentionPrecision::kFloat32, source_.threads});
    width = encoder_->width();
  }
  if (width != model_.embedding_dim()) {
    throw ModelError(embeddings_ ? source_.embeddings : source_.model,
                     "expected tokens of " + std::to_string(model_.embedding_dim()) +
                         " values, as the filter in " + source_.model + " reads, found " +
                         std::to_string(width));
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
  }
  std::shared_ptr<const Look> look = make(request);
  const std::lock_guard lock(mutex_);
  std::swap(newest_, look);  // the old one goes when the lock has
}

std::shared_ptr<const Look> LookMaker::make(const LookRequest& request) {
  const std::lock_guard lock(making_);
  auto look = std::make_shared<Look>();
  look->request = request;
  if (embeddings_ || request.prompt.find_first_not_of(" \t\r\n\f\v") != std::string::npos) {
    read_prompt(*look);
  }
  return look;
}

void LookMaker::read_prompt(Look& look) {
  if (embeddings_) {
    look.filter.emplace(model_, embeddings_->tokens());
    look.pooled_bytes = bytes_of(embeddings_->pooled);
  } else {
    const TextEmbedding read = encoder_->encode(look.request.prompt);
    const int count = static_cast<int>(read.ids.size());
    look.filter.emplace(model_, ConstMatrix{read.tokens.data(), count, read.width, read.width});
    for (const std::int32_t id : read.ids) {
      look.tokens.push_back(encoder_->tokenizer()->piece(id));
    }
    look.pooled_bytes = bytes_of(read.pooled);
    look.unknown_words = words_.unknown_words(look.request.prompt);
    look.cut = read.cut;
    look.invalid = read.invalid;
  }
  if (look.request.is_baked) {
    GradeLookParameters parameters;
    parameters.threads = source_.threads;
    look.baked = GradeLook::bake(*look.filter, look.request.format, parameters);
  }
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
      failure_ = std::current_exception();
    }
  }
}

}  // namespace nonlocal
