/* Stands in for caisson-seal, and with it for door and dialer: hands the test its descriptor 3, and waits to be ended. What it hands
   over says which service it is and its pid. The test's socket is "stage", beside the program that was to be sealed. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char** argv) {
  char text[64], room[CMSG_SPACE(sizeof(int))] = {0};
  if (argc < 4) return 7;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int test = socket(AF_UNIX, SOCK_SEQPACKET, 0), own = 3;
  snprintf(address.sun_path, sizeof address.sun_path, "%.*s/stage", (int)(strrchr(argv[3], '/') - argv[3]), argv[3]);
  if (connect(test, (struct sockaddr*)&address, sizeof address) != 0) return 7;
  struct iovec part = {text, (size_t)snprintf(text, sizeof text, "%s %s %d", argv[1], argv[2], getpid())};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof own)};
  memcpy(CMSG_DATA(head), &own, sizeof own);
  if (sendmsg(test, &message, 0) < 0) return 7;
  close(own); /* the test's alone: when it closes its copy the gate sees the end */
  return (int)read(test, text, sizeof text);
}
