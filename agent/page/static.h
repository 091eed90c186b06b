// GET /static/{package}/{file}: third parties' files for the pages, from agent/page/vendor. They are public releases, so no key
// is needed: a script element sends no header, and a key in its address would be written down by proxies. The version is in the
// address, so browsers may keep a file.
#pragma once

#include "agent/routes/route.h"

namespace caisson::routes::page {

[[nodiscard]] task<http::Response> get_static(Call call);

}  // namespace caisson::routes::page
