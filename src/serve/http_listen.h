// Listening sockets and the limits of the process they live in. Plain POSIX.
#pragma once

#include <string>

#include "base/status.h"

namespace millrace::serve {

struct Listening {
  int fd = -1;  // non-blocking, the caller's to close
  int port = 0;
};

Result<Listening> listen_tcp(const std::string& address, int port);
// Only this user can connect. Takes over a socket file that nobody listens on any more, and touches
// no other file.
Result<Listening> listen_unix(const std::string& path);

// Lets the process open as many files as it is allowed to and needs for so many connections;
// returns how many connections it can have.
int raise_file_limit(int n_connections);

// No delay for small pieces; the kernel looks after silent peers. Does nothing for a Unix socket.
void tune_connection(int fd);

}  // namespace millrace::serve
