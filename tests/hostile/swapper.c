/* swapper A B: exchanges the two names: as fast as it can, then with pauses in which a session can be built. Ends after five
   minutes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  alarm(300);
  if (argc != 3 || renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) != 0) return 1;
  puts("swapping"), fflush(stdout);
  for (unsigned i = 0;; ++i) {
    renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
    if (i % 64 > 32) usleep(i % 64 * 10);
  }
}
