#include "agent/worker/content.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace caisson::worker {
namespace {

// The most bytes of one answer. Reading by lines and downloading have no limit.
constexpr std::size_t kMostContent = 16 * 1024 * 1024;
// The largest file in which text is replaced: it is held twice.
constexpr std::size_t kMostReplaced = 64 * 1024 * 1024;
constexpr std::size_t kPartBytes = 256 * 1024;
constexpr std::int64_t kMostPart = 4 * 1024 * 1024;

// Calls see(bytes) on the file from its start until see() returns false or the file ends.
template <class See>
Done<void> scan(const Fd& fd, const Request& request, const std::string& path, See&& see) {
  std::string buffer(kPartBytes, '\0');
  for (std::int64_t at = 0;;) {
    if (request.stopped()) return failed(ECANCELED, path);
    const ssize_t n = ::pread(fd.get(), buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno, path);
    if (n == 0 || !see(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)))) return {};
    at += n;
  }
}

// Counts a last line without a line break, as editors do.
Done<std::int64_t> count_lines(const Fd& fd, const Request& request, const std::string& path) {
  std::int64_t lines = 0;
  char last = '\n';
  TRY(scan(fd, request, path, [&](std::string_view bytes) {
    lines += std::ranges::count(bytes, '\n');
    last = bytes.back();
    return true;
  }));
  return lines + (last != '\n' ? 1 : 0);
}

// Lines first to end-1, without the line break of the last one.
Done<std::string> read_lines(const Fd& fd, const Request& request, const std::string& path) {
  std::int64_t first = request.number("start").value_or(0);
  std::int64_t end = request.number("end").value_or(INT64_MAX);
  if (first < 0 || end < 0) {
    TRY_ASSIGN(const std::int64_t lines, count_lines(fd, request, path));
    if (first < 0) first = std::max<std::int64_t>(0, lines + first);
    if (end < 0) end = std::max<std::int64_t>(0, lines + end);
  }
  std::string out;
  std::int64_t line = 0;
  bool too_large = false;
  if (first >= end) return out;
  TRY(scan(fd, request, path, [&](std::string_view bytes) {
    while (!bytes.empty() && line < end) {
      const std::size_t at = bytes.find('\n');
      const std::size_t size = at == std::string_view::npos ? bytes.size() : at + 1;
      if (line >= first) out.append(bytes.substr(0, size));
      if (at != std::string_view::npos) ++line;
      bytes.remove_prefix(size);
    }
    too_large = out.size() > kMostContent;
    return line < end && !too_large;
  }));
  if (too_large) return failed(EFBIG, path);
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

// Changes whenever the bytes may have changed, and when the name refers to another file.
std::string version_of(const struct stat& st) {
  return std::to_string(st.st_dev) + "-" + std::to_string(st.st_ino) + "-" + std::to_string(st.st_nlink) + "-" +
         std::to_string(st.st_size) + "-" + std::to_string(st.st_mtim.tv_sec) + "." + std::to_string(st.st_mtim.tv_nsec);
}

std::string home() {
  const char* home = ::getenv("HOME");
  return home != nullptr ? home : "/";
}

// If the target is a directory, the file is put there under its own name.
Done<std::string> place_for(std::string path, const std::string& name) {
  if (path.empty()) return home() + "/" + name;
  TRY_ASSIGN(path, absolute(path));
  if (path.ends_with('/')) return path + name;
  const auto directory = open_path(path, O_PATH | O_DIRECTORY);
  return directory ? path + "/" + name : path;
}

Done<void> copy_all(const Fd& from, const Fd& to, const std::string& path) {
  std::string buffer(kPartBytes, '\0');
  for (std::int64_t at = 0;;) {
    const ssize_t n = ::pread(from.get(), buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno, path);
    if (n == 0) return {};
    TRY(write_all_at(to, path, std::string_view(buffer).substr(0, static_cast<std::size_t>(n)), at));
    at += n;
  }
}

}  // namespace

Done<std::int64_t> Handles::keep(std::shared_ptr<Handle> handle) {
  const std::scoped_lock held(lock_);
  if (open_.size() >= kMost) return failed(EMFILE, handle->path);
  open_[next_] = std::move(handle);
  return next_++;
}

Done<std::shared_ptr<Handle>> Handles::find(std::int64_t number) {
  const std::scoped_lock held(lock_);
  const auto it = open_.find(number);
  if (it == open_.end()) return failed(EBADF, "");
  return it->second;
}

Done<std::shared_ptr<Handle>> Handles::take(std::int64_t number) {
  const std::scoped_lock held(lock_);
  auto node = open_.extract(number);
  if (node.empty()) return failed(EBADF, "");
  return std::move(node.mapped());
}

Outcome read_file(const Request& request) {
  TRY_ASSIGN(const std::string path, absolute(request.text("path")));
  TRY_ASSIGN(const Opened file, open_regular(path, O_RDONLY));
  Answer answer;
  if (request.number("start") || request.number("end")) {
    TRY_ASSIGN(answer.body, read_lines(file.fd, request, path));
  } else {
    TRY_ASSIGN(answer.body, read_whole(file.fd, path, kMostContent));
  }
  answer.head["path"] = path;
  return answer;
}

Outcome write_file(const Request& request) {
  TRY_ASSIGN(const std::string path, absolute(request.text("path")));
  const bool append = request.flag("append");
  TRY_ASSIGN(const Opened file, open_for_writing(path, O_WRONLY | (append ? O_APPEND : 0)));
  if (append) TRY(write_all_at(file.fd, path, request.body, -1));
  else TRY(overwrite(file.fd, path, request.body));
  Answer answer;
  answer.head = {{"path", path}, {"bytes_written", request.body.size()}};
  return answer;
}

Outcome replace_in_file(const Request& request) {
  TRY_ASSIGN(const std::string path, absolute(request.text("path")));
  const auto old_size = static_cast<std::size_t>(std::max<std::int64_t>(request.number("old_size").value_or(0), 0));
  if (old_size > request.body.size()) return failed(EINVAL, path);
  const std::string_view old_text = std::string_view(request.body).substr(0, old_size);
  const std::string_view new_text = std::string_view(request.body).substr(old_size);
  if (old_text.empty()) return refused("invalid_target", path, "old_str is empty");
  TRY_ASSIGN(const Opened file, open_regular(path, O_RDWR));
  TRY_ASSIGN(const std::string before, read_whole(file.fd, path, kMostReplaced));
  std::string after;
  std::int64_t count = 0;
  std::size_t from = 0;
  for (std::size_t at = before.find(old_text); at != std::string::npos; at = before.find(old_text, from)) {
    after.append(before, from, at - from).append(new_text);
    if (after.size() > kMostReplaced) return failed(EFBIG, path);
    from = at + old_text.size();
    ++count;
  }
  after.append(before, from);
  if (count > 0) TRY(overwrite(file.fd, path, after));
  Answer answer;
  answer.head = {{"path", path}, {"count", count}};
  return answer;
}

Outcome upload_begin(Handles& handles, const Request& request) {
  auto handle = std::make_shared<Handle>();
  if (const auto path = request.text_if("path")) {
    TRY_ASSIGN(handle->path, place_for(*path, request.text("name")));
    TRY_ASSIGN(Opened file, open_for_writing(handle->path, O_WRONLY));
    if (::ftruncate(file.fd.get(), 0) != 0) return failed(errno, handle->path);
    handle->fd = std::move(file.fd);
    handle->directory = std::move(file.directory);
    handle->name = std::move(file.name);
  } else {  // the file arrives before its path: it has no name until the path is known
    auto spool = open_path("/tmp", O_TMPFILE | O_RDWR, 0600);
    if (!spool) spool = open_path(home(), O_TMPFILE | O_RDWR, 0600);
    if (!spool) return std::unexpected(std::move(spool).error());
    handle->fd = std::move(*spool);
  }
  Answer answer;
  TRY_ASSIGN(answer.head["handle"], handles.keep(std::move(handle)));
  return answer;
}

Outcome upload_part(Handles& handles, const Request& request) {
  TRY_ASSIGN(const auto handle, handles.find(request.number("handle").value_or(0)));
  const std::scoped_lock held(handle->lock);
  TRY(write_all_at(handle->fd, handle->path, request.body, handle->size));
  handle->size += static_cast<std::int64_t>(request.body.size());
  return Answer{};
}

Outcome upload_end(Handles& handles, const Request& request) {
  TRY_ASSIGN(const auto handle, handles.take(request.number("handle").value_or(0)));
  const std::scoped_lock held(handle->lock);
  if (handle->path.empty()) {
    TRY_ASSIGN(handle->path, place_for(request.text("path"), request.text("name")));
    TRY_ASSIGN(const Opened file, open_for_writing(handle->path, O_WRONLY));
    if (::ftruncate(file.fd.get(), 0) != 0) return failed(errno, handle->path);
    TRY(copy_all(handle->fd, file.fd, handle->path));
  }
  Answer answer;
  answer.head = {{"path", handle->path}, {"size", handle->size}};
  return answer;
}

Outcome upload_abort(Handles& handles, const Request& request) {
  TRY_ASSIGN(const auto handle, handles.take(request.number("handle").value_or(0)));
  const std::scoped_lock held(handle->lock);
  struct stat ours{}, there{};
  // Removes the unfinished file of this upload, unless its name refers to another file by now.
  if (handle->directory && ::fstat(handle->fd.get(), &ours) == 0 &&
      ::fstatat(handle->directory.get(), handle->name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && ours.st_ino == there.st_ino &&
      ours.st_dev == there.st_dev)
    (void)::unlinkat(handle->directory.get(), handle->name.c_str(), 0);
  return Answer{};
}

Outcome download_open(Handles& handles, const Request& request) {
  auto handle = std::make_shared<Handle>();
  TRY_ASSIGN(handle->path, absolute(request.text("path")));
  TRY_ASSIGN(Opened file, open_regular(handle->path, O_RDONLY));
  handle->fd = std::move(file.fd);
  handle->st = file.st;
  Answer answer;
  answer.head = {{"path", handle->path},
                 {"size", static_cast<std::int64_t>(file.st.st_size)},
                 {"modified", static_cast<std::int64_t>(file.st.st_mtim.tv_sec)},
                 {"version", version_of(file.st)}};
  TRY_ASSIGN(answer.head["handle"], handles.keep(std::move(handle)));
  return answer;
}

Outcome download_part(Handles& handles, const Request& request) {
  TRY_ASSIGN(const auto handle, handles.find(request.number("handle").value_or(0)));
  const std::scoped_lock held(handle->lock);
  const std::int64_t offset = request.number("offset").value_or(0);
  const std::int64_t most = std::clamp<std::int64_t>(request.number("most").value_or(0), 0, kMostPart);
  if (offset < 0) return failed(EINVAL, handle->path);
  Answer answer;
  answer.body.resize(static_cast<std::size_t>(most));
  std::size_t have = 0;
  while (have < answer.body.size()) {
    const ssize_t n = ::pread(handle->fd.get(), answer.body.data() + have, answer.body.size() - have,
                              static_cast<off_t>(offset + static_cast<std::int64_t>(have)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno, handle->path);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  answer.body.resize(have);
  // Read after the bytes, so that a change during the reading shows.
  struct stat now{};
  if (::fstat(handle->fd.get(), &now) != 0) return failed(errno, handle->path);
  answer.head["version"] = version_of(now);
  return answer;
}

Outcome download_close(Handles& handles, const Request& request) {
  TRY(handles.take(request.number("handle").value_or(0)));
  return Answer{};
}

}  // namespace caisson::worker
