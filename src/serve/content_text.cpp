#include "serve/content_text.h"

#include <fmt/format.h>

#include <array>

#include "base/utf8.h"

namespace millrace::serve {
namespace {

struct Omitted {
  std::string_view type, as;
};

constexpr std::array kOmitted = {
    Omitted{"image_url", "image"},   Omitted{"input_image", "image"},
    Omitted{"image", "image"},       Omitted{"input_audio", "audio"},
    Omitted{"audio", "audio"},       Omitted{"video_url", "video"},
    Omitted{"file", "file"},         Omitted{"input_file", "file"},
    Omitted{"document", "document"},
};

std::string omitted(const Field& part, std::string_view type) {
  std::string_view as = type;
  for (const Omitted& known : kOmitted)
    if (known.type == type) as = known.as;
  std::string what = printable(as, 40);
  part.warn(fmt::format("is of type {}, which the model cannot read; the prompt says [{} omitted]",
                        printable(type, 40), what));
  return fmt::format("[{} omitted]", what);
}

// Anthropic's documents may hold their text; OpenAI's files do not.
std::string document_text(const Field& part, std::string_view type) {
  const Field source = part["source"];
  if (source.is_object() && source["type"].is_string()) {
    const std::string from = source["type"].text();
    if (from == "text") return source["data"].text();
    if (from == "content") return content_text(source["content"]);
  }
  return omitted(part, type);
}

}  // namespace

void append_part(std::string& text, std::string_view part) {
  if (!text.empty()) text += '\n';
  text += part;
}

std::string part_text(const Field& part) {
  if (part.is_string()) return part.text();
  if (!part.is_object()) {
    part.fail_type("an object with a type");
    return {};
  }
  const std::string type = part["type"].required().text();
  if (type == "refusal") return part["refusal"].required().text();
  if (type == "document") return document_text(part, type);
  if (type == "search_result") return content_text(part["content"]);
  const bool is_text = type == "text" || type == "input_text" || type == "output_text";
  if (is_text) return part["text"].required().text();
  return part["text"].is_string() ? part["text"].text() : omitted(part, type);
}

std::string content_text(const Field& content) {
  if (!content.given()) return {};
  if (content.is_string()) return content.text();
  if (!content.is_array()) {
    content.fail_type("a string or an array of parts");
    return {};
  }
  std::string out;
  for (const Field& part : content.elements()) append_part(out, part_text(part));
  return out;
}

}  // namespace millrace::serve
