// What goes on now, sent to those who look: the machine's state once a second, and the log's new
// events as they come. One thread, asleep while nobody looks: then no file is read and no driver
// asked.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serve/http.h"

namespace millrace::lab {

class Live {
 public:
  Live(std::filesystem::path database, std::string nvml);
  ~Live();
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  // Begins a stream of events; false where too many look already.
  bool watch(const std::shared_ptr<serve::Reply>& reply);
  int n_watching();
  void stop();  // ends all streams

 private:
  void work() noexcept;
  void send(const std::string& text);

  const std::filesystem::path database_;
  const std::string nvml_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<serve::Reply>> watching_;
  bool stopping_ = false;
  uint64_t n_came_ = 0;  // who comes does not wait for the next second
  std::thread thread_;
};

}  // namespace millrace::lab
