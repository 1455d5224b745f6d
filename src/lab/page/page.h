// The lab's page on a server's router: /lab and its files for everybody, its data below /lab/api
// for the admin key where keys are in use. Questions to the database are answered one after the
// other by a thread of their own, so that neither sockets nor the engine wait for a disk.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "serve/http.h"
#include "serve/openapi.h"

namespace millrace::lab {

struct PageOptions {
  std::filesystem::path database;
  std::string nvml = "libnvidia-ml.so.1";  // tests have one of their own
};

class LabPage {
 public:
  explicit LabPage(PageOptions options);
  ~LabPage();  // after the server that has its routes

  std::vector<serve::Route> routes();
  // The same for /openapi.json: the documents, without the stream.
  static std::vector<serve::MountedRoute> described();
  // Ends the live streams, which would hold up a server that stops.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::lab
