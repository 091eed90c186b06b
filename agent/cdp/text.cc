#include "agent/cdp/text.h"

#include "launcher/common/base/json.h"

namespace caisson::cdp {

std::string json_string(std::string_view text) { return json::dump(json::Value(std::string(text))); }

}  // namespace caisson::cdp
