#include "serve/model_list.h"

#include <gtest/gtest.h>

#include "base/json_text.h"

namespace millrace::serve {
namespace {

const ModelShown kModel = {.id = "org/tiny",
                           .created_s = 1700000000,
                           .max_context = 4096,
                           .trained_context = 8192,
                           .n_vocab = 10,
                           .n_params = 20,
                           .file_bytes = 30};

TEST(ModelList, HasTheShapeOfOpenAi) {
  EXPECT_EQ(json_text(model_list({&kModel, 1}, ListShape::openai)),
            R"({"object":"list","data":[{"id":"org/tiny","object":"model","created":1700000000,)"
            R"("owned_by":"millrace","max_model_len":4096,"meta":{"n_ctx_train":8192,"n_vocab":10,)"
            R"("n_params":20,"size":30}}]})");
}

TEST(ModelList, HasTheShapeOfAnthropic) {
  EXPECT_EQ(json_text(model_list({&kModel, 1}, ListShape::anthropic)),
            R"({"data":[{"type":"model","id":"org/tiny","display_name":"org/tiny",)"
            R"("created_at":"2023-11-14T22:13:20Z","lifecycle":"active","max_input_tokens":4096,)"
            R"("max_tokens":4096}],"has_more":false,"first_id":"org/tiny","last_id":"org/tiny"})");
  EXPECT_EQ(json_text(model_list({}, ListShape::anthropic)),
            R"({"data":[],"has_more":false,"first_id":null,"last_id":null})");
}

}  // namespace
}  // namespace millrace::serve
