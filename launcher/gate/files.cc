#include "launcher/gate/files.h"

#include <fcntl.h>

#include <cstdint>

#include "launcher/common/base/sys.h"

namespace caisson::gate {

Result<Fd> open_regular(const std::string& path, struct stat& st) {
  TRY_ASSIGN(Fd file, sys::open(path, O_RDONLY | O_NONBLOCK));
  if (::fstat(file.get(), &st) != 0) return sys_error(path);
  if (!S_ISREG(st.st_mode)) return fail(Code::invalid_argument, path + " is no regular file");
  return file;
}

std::string stamp_of(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return "none";
  std::string out;
  for (const auto one :
       {static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino), static_cast<std::uint64_t>(st.st_size),
        static_cast<std::uint64_t>(st.st_ctim.tv_sec), static_cast<std::uint64_t>(st.st_ctim.tv_nsec)})
    out += std::to_string(one) + ' ';
  return out;
}

}  // namespace caisson::gate
