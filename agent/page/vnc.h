// GET /vnc/, /vnc/index.html, /vnc/vnc.html: noVNC's core over /websockify, with the query of noVNC's own page. Pages whose
// origins are in CAISSON_ALLOW_ORIGIN may frame it; no other one of ours may be framed.
#pragma once

#include "agent/routes/route.h"

namespace caisson::routes::page {

[[nodiscard]] task<http::Response> get_vnc(Call call);

}  // namespace caisson::routes::page
