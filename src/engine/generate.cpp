#include "engine/generate.h"

#include "base/clock.h"
#include "text/stop_strings.h"
#include "text/tokenizer/stream_decoder.h"

namespace millrace {
namespace {

double seconds_since(int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

// From tokens to the text that a reader may see.
class Text {
 public:
  Text(const Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : tokenizer_(tokenizer), stops_(stops) {}

  std::string push(int32_t token) {
    if (tokenizer_.is_control(token)) return {};
    return stops_.push(decoder_.push(tokenizer_.piece(token)));
  }
  std::string flush() {
    std::string out = stops_.push(decoder_.flush());
    return out + stops_.flush();
  }
  bool stopped() const { return stops_.found(); }

 private:
  const Tokenizer& tokenizer_;
  StreamDecoder decoder_;
  StopStrings stops_;
};

// Whether the generation ends before another token, and why.
bool must_end(const Generator& with, const Generation& how, const Generated& done,
              const std::atomic<bool>& cancel, Finish& why) {
  if (cancel) why = Finish::cancelled;
  const bool is_full = done.n_prompt + done.n_tokens >= with.engine.n_ctx();
  const bool is_long = how.max_tokens >= 0 && done.n_tokens >= how.max_tokens;
  if (!cancel && (is_full || is_long)) why = Finish::length;
  return cancel || is_full || is_long;
}

}  // namespace

std::string_view name_of(Finish finish) {
  constexpr std::string_view kNames[] = {"end", "stop_string", "length", "cancelled"};
  return kNames[static_cast<size_t>(finish)];
}

Result<Generated> generate(const Generator& with, std::vector<int32_t> prompt,
                           const Generation& how, const OnToken& on_token,
                           const std::atomic<bool>& cancel) {
  MILLRACE_TRY(validate(how.sampling));
  if (prompt.empty()) return error(Code::invalid_argument, "the prompt is empty");
  Generated out;
  out.n_prompt = static_cast<int64_t>(prompt.size());
  int64_t start_ns = now_ns();
  out.n_cached = keep_shared(with.engine, with.seq, prompt);
  MILLRACE_TRY(compute(with.engine, with.seq,
                       std::span(prompt).subspan(static_cast<size_t>(out.n_cached)),
                       [&] { return cancel.load(); }));
  out.prompt_s = seconds_since(start_ns);
  start_ns = now_ns();
  Text text(with.tokenizer, how.stops);
  while (!must_end(with, how, out, cancel, out.finish)) {
    MILLRACE_ASSIGN(const auto logits, with.engine.logits(0));
    std::vector<float> row(logits.begin(), logits.end());
    MILLRACE_ASSIGN(const Sampled sampled,
                    with.sampler.sample(row, with.engine.tokens(with.seq), how.sampling));
    if (!how.ignore_end && with.tokenizer.is_eog(sampled.token)) break;
    ++out.n_tokens;
    on_token(text.push(sampled.token), &sampled);
    if (text.stopped()) {
      out.finish = Finish::stop_string;
      break;
    }
    if (out.n_prompt + out.n_tokens < with.engine.n_ctx())
      MILLRACE_TRY(with.engine.step({.seq = with.seq, .tokens = {&sampled.token, 1}}));
  }
  on_token(text.flush(), nullptr);
  out.tokens_s = seconds_since(start_ns);
  return out;
}

}  // namespace millrace
