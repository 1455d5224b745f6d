#include "serve/dialect.h"

#include <array>

#include "serve/chat_completions.h"
#include "serve/completions.h"
#include "serve/messages.h"
#include "serve/openai_shapes.h"
#include "serve/responses.h"

namespace millrace::serve {

std::span<const Dialect> dialects() {
  static constexpr std::array kDialects = {
      Dialect{"chat completions", "/v1/chat/completions", chat_completions::parse,
              chat_completions::stream, chat_completions::whole, openai_error},
      Dialect{"completions", "/v1/completions", completions::parse, completions::stream,
              completions::whole, openai_error},
      Dialect{"responses", "/v1/responses", responses::parse, responses::stream, responses::whole,
              openai_error},
      Dialect{"messages", "/v1/messages", messages::parse, messages::stream, messages::whole,
              messages::error},
  };
  return kDialects;
}

}  // namespace millrace::serve
