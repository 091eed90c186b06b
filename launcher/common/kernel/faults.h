// Faults of confinement for tests, compiled in only with CAISSON_FAULTS (target faulty-programs, tests/hostile).
// Anywhere else all of this is constant: the program has no such branch and not even the name of the variable
// (tests/hostile/test_faults.py looks).
//
// CAISSON_FAULT names a file of one page. The launcher maps it at its start and every child inherits the mapping, so that a
// test writes into it, at any time and through every wall, what happens next:
//   fail:uid         the next step of that name (steps.h) is reported as failed with ENOSPC; once, then the text is wiped
//   skip:uid         what the step does is left out, and it is reported as done
//   blind,skip:uid   and the launcher goes on although its verification or its canary has noticed
#pragma once

#include <string>
#include <vector>

#ifdef CAISSON_FAULTS
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#endif

namespace caisson::confine::faults {

#ifdef CAISSON_FAULTS

inline constexpr std::size_t kPage = 4096;

// Before main, and so before any child.
inline char* const page = [] {
  const char* path = std::getenv("CAISSON_FAULT");
  const int fd = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  void* at = fd >= 0 ? ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (fd >= 0) ::close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}();

// For a program that we start.
inline void pass(std::vector<std::string>& env) {
  if (const char* path = std::getenv("CAISSON_FAULT"); path != nullptr) env.push_back(std::string("CAISSON_FAULT=") + path);
}

inline bool blind() { return page != nullptr && std::strncmp(page, "blind,", 6) == 0; }

inline bool asked(const char* verb, const char* step) {
  if (page == nullptr) return false;
  const char* text = page + (blind() ? 6 : 0);
  const std::size_t length = std::strlen(verb);
  return std::strncmp(text, verb, length) == 0 && std::strcmp(text + length, step) == 0;
}

inline bool skip(const char* step) { return asked("skip:", step); }

inline bool fail(const char* step) {
  if (!asked("fail:", step)) return false;
  page[0] = '\0';
  return true;
}

#else

inline void pass(std::vector<std::string>&) {}
constexpr bool blind() { return false; }
constexpr bool skip(const char*) { return false; }
constexpr bool fail(const char*) { return false; }

#endif

}  // namespace caisson::confine::faults
