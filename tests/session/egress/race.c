/* race TRIES PORT: connects TRIES times while a thread turns the address between a UNIX socket's and 127.0.0.1:PORT, and the descriptor
   between a UNIX socket and a TCP one. Says how often the port was reached, and how often a call that was let go on met Landlock. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FLIPPED = 77, PAUSE = 3000 };
static union {
  struct sockaddr_un un;
  struct sockaddr_in in;
} address;
static volatile int stop;
static int un, in;
static unsigned short port;

static void turn_to_unix(void) {
  address.un.sun_family = AF_UNIX;
  strcpy(address.un.sun_path, "/tmp/none");
}

static void* flip(void* unused) {
  (void)unused;
  while (!stop) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    turn_to_unix();
    dup2(un, FLIPPED);
    for (volatile int i = 0; i < PAUSE; ++i) {}
    dup2(in, FLIPPED);
    memcpy(&address, &there, sizeof there);
    for (volatile int i = 0; i < PAUSE; ++i) {}
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const long tries = atol(argv[1]);
  port = (unsigned short)atoi(argv[2]);
  un = socket(AF_UNIX, SOCK_STREAM, 0);
  in = socket(AF_INET, SOCK_STREAM, 0);
  if (un < 0 || in < 0 || dup2(un, FLIPPED) < 0) return perror("socket"), 1;
  turn_to_unix(); /* zeros are AF_UNSPEC: a TCP socket is disconnected, which succeeds and reaches nothing */
  pthread_t thread;
  pthread_create(&thread, NULL, flip, NULL);
  long reached = 0, walls = 0, refused = 0, others = 0;
  for (long i = 0; i < tries; ++i) {
    const int result = connect(FLIPPED, (struct sockaddr*)&address, sizeof address.in);
    if (result == 0) {
      ++reached;
      const int fresh = socket(AF_INET, SOCK_STREAM, 0);
      dup2(fresh, in);
      close(fresh);
    } else if (errno == EACCES) {
      ++walls;
    } else if (errno == ECONNREFUSED) {
      ++refused;
    } else {
      ++others; /* of a UNIX socket with the other address, and the other way round */
    }
  }
  stop = 1;
  pthread_join(thread, NULL);
  printf("{\"tries\": %ld, \"reached\": %ld, \"walls\": %ld, \"refused\": %ld, \"others\": %ld}\n", tries, reached, walls, refused, others);
  return 0;
}
