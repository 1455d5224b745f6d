// What tokenizer.json does to text before its tokens are looked up: normalizer, pre_tokenizer and,
// of the decoder, whether it drops a leading space. Private to model/tokenizer.
#pragma once

#include "base/status.h"
#include "text/tokenizer/hf_json.h"
#include "text/tokenizer/vocab.h"

namespace millrace {

// Fills the vocab's model, normalize, prepare, split and strips_space.
Status read_pipeline(const hf::Json& tokenizer, Vocab& vocab);

}  // namespace millrace
