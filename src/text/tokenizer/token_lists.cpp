#include "text/tokenizer/token_lists.h"

#include "base/utf8.h"

namespace millrace::hf {
namespace {

using Event = Json::parse_event_t;

std::string_view text_of(const Json& value) {
  return value.get_ref<const std::string&>();
}

uint32_t end_of(const std::string& text) {
  return static_cast<uint32_t>(text.size());
}

std::string_view between(const std::string& text, size_t begin, size_t end) {
  return std::string_view(text).substr(begin, end - begin);
}

}  // namespace

bool TokenLists::visit(int depth, Event event, const Json& value) {
  if (event == Event::key && depth == 1) list_ = text_of(value);
  if (event == Event::key && depth <= 2) member_ = depth == 2 ? text_of(value) : "";
  if (depth <= 2 || list_ != "model") return true;
  if (member_ == "vocab") return in_vocab(depth, event, value);
  return member_ != "merges" || in_merges(depth, event, value);
}

bool TokenLists::in_vocab(int depth, Event event, const Json& value) {
  if (depth > 3) return false;
  if (event == Event::key) {
    token_text_ += text_of(value);
    tokens_.push_back({end_of(token_text_), -1});
  } else if (!tokens_.empty()) {
    const bool is_id = event == Event::value && value.is_number_unsigned() &&
                       value.get<uint64_t>() <= uint64_t{INT64_MAX};
    if (is_id) tokens_.back().id = value.get<int64_t>();
    if (!is_id && status_.ok())
      status_ = wrong(fmt::format("the id of '{}'", printable(token(tokens_.size() - 1).text, 40)),
                      "a number");
  }
  return false;
}

// A merge is "left right" or ["left", "right"].
bool TokenLists::in_merges(int depth, Event event, const Json& value) {
  const bool is_text = event == Event::value && value.is_string();
  if (depth == 3 && is_text) {
    add_merge(text_of(value));
  } else if (depth == 3 && event == Event::array_start) {
    return true;  // its strings are to be seen; the list goes at its end
  } else if (depth == 3 && event == Event::array_end) {
    end_pair();
  } else if (depth == 4 && is_text && parts_.size() < 3) {
    merge_text_ += text_of(value);
    parts_.push_back(end_of(merge_text_));
  } else {
    not_a_pair();
  }
  return false;
}

void TokenLists::add_merge(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
    return not_a_pair();
  merge_text_ += text.substr(0, space);
  const uint32_t left = end_of(merge_text_);
  merge_text_ += text.substr(space + 1);
  merges_.push_back({left, end_of(merge_text_)});
}

void TokenLists::end_pair() {
  if (parts_.size() == 2)
    merges_.push_back({parts_[0], parts_[1]});
  else
    not_a_pair();
  parts_.clear();
}

void TokenLists::not_a_pair() {
  if (status_.ok()) status_ = wrong(fmt::format("model.merges[{}]", merges_.size()), "a pair");
}

TokenLists::Token TokenLists::token(size_t i) const {
  return {between(token_text_, i == 0 ? 0 : tokens_[i - 1].end, tokens_[i].end), tokens_[i].id};
}

TokenLists::Pair TokenLists::merge(size_t i) const {
  const MergeEnd& ends = merges_[i];
  return {between(merge_text_, i == 0 ? 0 : merges_[i - 1].right, ends.left),
          between(merge_text_, ends.left, ends.right)};
}

}  // namespace millrace::hf
