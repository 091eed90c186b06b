// Memory that is handed to a program which is not trusted to leave it as it is.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <string_view>

#include "launcher/common/base/sys.h"

namespace caisson::seal {

// memfd_create(2) holding `content`, sealed against any change (F_SEAL_*, fcntl(2)); O_CLOEXEC.
[[nodiscard]] inline Result<Fd> sealed_memfd(const char* name, std::string_view content) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return sys_error("memfd_create");
  TRY(sys::write_all(fd.get(), content));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    return sys_error("seal memfd");
  return fd;
}

}  // namespace caisson::seal
