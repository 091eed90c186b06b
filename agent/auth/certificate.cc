#include "agent/auth/certificate.h"

#include <utility>

#include "agent/http/log.h"

namespace caisson::auth {

Result<bool> Certificate::Source::look(Clock::time_point now) {
  std::optional<Result<std::string>> found = file.look(now);
  if (!found) return false;
  if (!*found) return std::unexpected(std::move(*found).error());
  text = std::move(**found);
  return true;
}

Status Certificate::look(Clock::time_point now) {
  const Result<bool> certificates = certificates_.look(now), key = key_.look(now);
  if (!certificates) return std::unexpected(certificates.error());
  if (!key) return std::unexpected(key.error());
  if (!*certificates && !*key) return {};
  auto context = http::tls_context(certificates_.text, key_.text);
  if (!context)
    return fail(Code::invalid_argument, quote(certificates_.file.path()) + " and " + quote(key_.file.path()) +
                                            " cannot be used together: " + context.error().what);
  const bool reloaded = std::exchange(context_, std::move(*context)) != nullptr;
  if (reloaded) log::info("new certificate in use: " + quote(certificates_.file.path()));
  return {};
}

Result<Certificate> Certificate::open(const std::string& certificates, const std::string& key) {
  Certificate opened(certificates, key);
  if (const Status looked = opened.look(Clock::now()); !looked) return fail(Code::invalid_argument, looked.error().text());
  return opened;
}

http::TlsContext Certificate::current(Clock::time_point now) {
  if (const Status looked = look(now); !looked) log::error(looked.error().text() + "; the certificate before stays in use");
  return context_;
}

}  // namespace caisson::auth
