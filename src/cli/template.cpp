// millrace template: the prompt that a conversation becomes, before any model sees it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/open_model.h"
#include "cli/terminal_text.h"
#include "files/json.h"
#include "text/template/json.h"
#include "text/template/model_template.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxInputBytes = 256 << 20;

struct Options {
  std::string model;
  std::vector<std::string> files;  // [MODEL] MESSAGES
  std::string template_file, tools_file;
  std::vector<std::string> set;
  bool no_generation_prompt = false, tokens = false, json = false;

  bool needs_model() const { return !model.empty() || template_file.empty() || tokens; }
};

Result<std::string> read_input(const std::string& path) {
  if (path != "-") return read_text_file(path, kMaxInputBytes);
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  return text;
}

Result<Json> read_json(const std::string& path) {
  MILLRACE_ASSIGN(const std::string text, read_input(path));
  auto json = jinja::parse_ordered_json(text);
  if (!json)
    return error(Code::invalid_argument, "{} is not JSON, or is nested too deeply",
                 printable(path));
  return std::move(*json);
}

// MESSAGES.json is a list of messages, or a request's body.
Status read_messages(const std::string& path, ChatInput& input) {
  MILLRACE_ASSIGN(Json json, read_json(path));
  if (json.is_array()) {
    input.messages = std::move(json);
    return {};
  }
  if (!json.is_object() || !json.contains("messages"))
    return error(Code::invalid_argument,
                 "{}: expected a list of messages, or an object with 'messages'", printable(path));
  input.messages = json["messages"];
  if (json.contains("tools")) input.tools = json["tools"];
  if (json.contains("chat_template_kwargs")) input.variables = json["chat_template_kwargs"];
  if (json.contains("add_generation_prompt") && json["add_generation_prompt"].is_boolean())
    input.add_generation_prompt = json["add_generation_prompt"].get<bool>();
  return {};
}

// key=value, the value as JSON where it is some and as text otherwise.
Status set_variable(const std::string& setting, ChatInput& input) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0)
    return error(Code::invalid_argument, "--set {}: expected NAME=VALUE", printable(setting));
  const std::string value = setting.substr(equals + 1);
  auto json = jinja::parse_ordered_json(value);
  input.variables[setting.substr(0, equals)] = json ? std::move(*json) : Json(value);
  return {};
}

Result<ChatInput> read_chat(const Options& options) {
  ChatInput input;
  MILLRACE_TRY(read_messages(options.files.back(), input));
  if (!options.tools_file.empty()) {
    MILLRACE_ASSIGN(input.tools, read_json(options.tools_file));
  }
  if (!input.variables.is_null() && !input.variables.is_object())
    return error(Code::invalid_argument, "chat_template_kwargs must be an object");
  for (const auto& setting : options.set) MILLRACE_TRY(set_variable(setting, input));
  if (options.no_generation_prompt) input.add_generation_prompt = false;
  const std::time_t now = std::time(nullptr);
  localtime_r(&now, &input.now);
  return input;
}

// What the command works with; a tokenizer where ids were asked for.
struct Loaded {
  ChatTemplate chat_template;
  std::optional<Tokenizer> tokenizer;
};

Result<Loaded> load(const Options& options) {
  std::optional<ModelFile> file;
  if (options.needs_model()) {
    MILLRACE_ASSIGN(file, open_model(options.model));
  }
  std::optional<ChatTemplate> chat_template;
  if (!options.template_file.empty()) {
    MILLRACE_ASSIGN(const std::string source, read_input(options.template_file));
    MILLRACE_ASSIGN(chat_template,
                    file ? chat_template_of(*file, source) : ChatTemplate::parse(source));
  } else {
    MILLRACE_ASSIGN(chat_template, chat_template_of(*file));
  }
  Loaded out{std::move(*chat_template), std::nullopt};
  if (options.tokens) {
    MILLRACE_ASSIGN(out.tokenizer, open_tokenizer(*file));
  }
  return out;
}

Result<std::vector<int32_t>> encode(const jinja::Rendered& rendered, const Tokenizer& tokenizer) {
  std::vector<TextPart> parts;
  for (const auto& piece : rendered.pieces) parts.push_back({piece.text, piece.from_template});
  return tokenizer.encode(parts);
}

Json to_json(const jinja::Rendered& rendered) {
  Json pieces = Json::array();
  for (const auto& piece : rendered.pieces)
    pieces.push_back(Json{{"text", piece.text}, {"from_template", piece.from_template}});
  return Json{{"text", rendered.text()}, {"pieces", pieces}};
}

Status print_result(const Options& options, const Loaded& loaded, const jinja::Rendered& rendered) {
  std::vector<int32_t> ids;
  if (loaded.tokenizer) {
    MILLRACE_ASSIGN(ids, encode(rendered, *loaded.tokenizer));
  }
  if (options.json) {
    Json out = to_json(rendered);
    if (options.tokens) out["tokens"] = ids;
    print_json(out);
  } else if (options.tokens) {
    fmt::print("{}\n", fmt::join(ids, " "));
  } else {
    print_text(stdout, rendered.text());
  }
  return {};
}

int run_template(Options& options) {
  const Status taken = take_model(options.model, options.files, 1, 1);
  if (!taken.ok()) return fail(taken);
  const auto loaded = load(options);
  if (!loaded.ok()) return fail(loaded.status());
  if (loaded.value().chat_template.is_builtin())
    fmt::print(stderr, "millrace: the model has no chat template; using ChatML\n");
  const auto input = read_chat(options);
  if (!input.ok()) return fail(input.status());
  const auto rendered = loaded.value().chat_template.render(input.value());
  if (!rendered.ok()) return fail(rendered.status());
  const Status printed = print_result(options, loaded.value(), rendered.value());
  return printed.ok() ? 0 : fail(printed);
}

}  // namespace

void add_template(App& app) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add("template", "Show the prompt that a model's chat template makes of messages");
  add_model_name(command, options->model, /*positional=*/false);
  command.option("MESSAGES.json", options->files, "Model (unless -m names it) and messages")
      .required()
      .type_name("[MODEL] MESSAGES.json");
  command
      .option("--template", options->template_file,
              "Use this Jinja file instead of the model's template")
      .type_name("FILE");
  command.option("--tools", options->tools_file, "JSON list of tools in OpenAI's format")
      .type_name("FILE");
  command.option("--set", options->set, "Set a template variable, such as enable_thinking=false")
      .type_name("NAME=VALUE")
      .one_value_each();
  command.flag("--no-generation-prompt", options->no_generation_prompt,
               "Do not start the assistant's turn at the end");
  command.flag("--tokens", options->tokens, "Print token ids");
  command.flag("--json", options->json, "Print JSON: the text, and which parts of it are input");
  command.footer(
      "MESSAGES.json is a list of messages in OpenAI's format, or an object with messages, tools "
      "and chat_template_kwargs; - reads standard input.");
  command.runs([options] { return run_template(*options); });
}

}  // namespace millrace::cli
