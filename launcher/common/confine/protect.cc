#include "launcher/common/confine/protect.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "launcher/common/base/sys.h"

namespace caisson::confine {
namespace {

constexpr std::size_t kMaxNotes = 2U << 20;

}  // namespace

Result<Protection> Protection::prepare(const Plan& plan) {
  Protection out;
  if (plan.protect.empty()) return out;
  TRY_ASSIGN(out.program, sys::open(sys::program_path("caisson-protect"), O_PATH));
  out.notes = Fd(::memfd_create("protect", MFD_CLOEXEC));
  TRY(sys::write_all(out.notes.get(), plan.protect));
  return out;
}

Status Protection::read(std::size_t runs) {
  if (::lseek(notes.get(), 0, SEEK_SET) != 0) return sys_error("read what caisson-protect wrote");
  TRY_ASSIGN(const std::string text, sys::read_fd(notes.get(), kMaxNotes));
  told.clear();
  for (std::size_t from = 0, end = 0; from < text.size(); from = end + 1) {
    end = std::min(text.find('\0', from), text.size());
    told[text[from]].push_back(text.substr(from + 1, end - from - 1));
  }
  if (told.contains('e')) return fail(Code::unavailable, told['e'].back());
  return told['.'].size() == runs ? Status{} : fail(Code::internal, "caisson-protect did not come to its end (protect_names)");
}

nlohmann::json Protection::named() const {
  if (!told.contains('k')) return {{"count", 0}, {"paths", nlohmann::json::array()}};
  return {{"count", told.at('k').size()}, {"paths", told.contains('t') ? told.at('t') : std::vector<std::string>()}};
}

nlohmann::json Protection::auto_run() {
  if (const Status done = read(2); !done) return {{"unknown", done.error().text()}};
  return {{"count", std::stoull(told['#'].at(0))}, {"paths", told['+']}};
}

}  // namespace caisson::confine
