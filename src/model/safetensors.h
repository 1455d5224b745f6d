// A model as Hugging Face lays it out: a directory with config.json and *.safetensors.
#pragma once

#include <string>

namespace millrace {

class SafetensorsDir {
 public:
  const std::string& directory() const { return directory_; }  // where tokenizer.json lies

 private:
  std::string directory_;
};

}  // namespace millrace
