#include "agent/routes/route.h"

namespace caisson::routes {

std::string_view scope_name(Scope scope) {
  switch (scope) {
    case Scope::system:
      return "system";
    case Scope::sandbox:
      return "sandbox";
    case Scope::bash:
      return "bash";
    case Scope::nodejs:
      return "nodejs";
    case Scope::code:
      return "code";
    case Scope::workspaces:
      return "workspaces";
    case Scope::shell:
      return "shell";
    case Scope::audit:
      return "audit";
  }
  return "system";
}

http::Response validation_response(const Issues& issues) { return http::json_response(422, {{"detail", issues.detail()}}); }

}  // namespace caisson::routes
