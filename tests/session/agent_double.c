/* Stands in for the agent: has its place, uid and descriptor 3, and lets a test say what it says. Waits on CAISSON_PORT of
   127.0.0.1 for one connection and passes messages on, each with its length (4 bytes, little endian) before it. A length of
   0 from the launcher's side: the connection is over. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[1 << 17];

static int whole(int fd, char* at, size_t n) {
  while (n > 0) {
    const ssize_t got = read(fd, at, n);
    if (got <= 0) return 0;
    at += got, n -= (size_t)got;
  }
  return 1;
}

int main(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(getenv("CAISSON_PORT"))), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0) return 1;
  const int tester = accept(listener, NULL, NULL);
  for (;;) {
    struct pollfd both[2] = {{tester, POLLIN, 0}, {3, POLLIN, 0}};
    poll(both, 2, -1);
    uint32_t n = 0;
    if (both[0].revents != 0) {
      if (!whole(tester, (char*)&n, 4) || n > sizeof buffer || !whole(tester, buffer, n)) return 0;
      send(3, buffer, n, MSG_NOSIGNAL);
    }
    if (both[1].revents != 0) {
      const ssize_t got = recv(3, buffer, sizeof buffer, 0);
      n = got > 0 ? (uint32_t)got : 0;
      if (write(tester, &n, 4) != 4 || write(tester, buffer, n) != (ssize_t)n || n == 0) return 0;
    }
  }
}
