// Types, bounds and forms of a document by its field table; problems with file, line and pointer.
#include <algorithm>
#include <charconv>
#include <set>

#include "launcher/compiler/fields.h"
#include "launcher/compiler/nearest.h"

namespace caisson::policy {
namespace {

using json::Value;

std::optional<std::uint64_t> parse_number(const Value& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  std::uint64_t out = 0;
  if (!text.starts_with("0x")) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), out, 16);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

class Validator {
 public:
  Validator(const Source& source, std::span<const Field> fields, Problems& problems)
      : source_(source), fields_(fields), problems_(problems) {}

  void object(const Value& v, const std::string& pattern, const std::string& pointer) {
    if (!v.is_object()) return add(pointer, "must be an object");
    const std::string prefix = pattern + "/";
    const auto child = [&](const Field& field) {  // the field's name below `pattern`; empty: it is not one
      const std::string_view at = field.pointer;
      return at.starts_with(prefix) && at.find('/', prefix.size()) == std::string_view::npos ? at.substr(prefix.size())
                                                                                             : std::string_view{};
    };
    for (const Field& field : fields_)
      if (field.fallback == kRequired)
        if (const auto name = child(field); !name.empty() && !v.contains(name))
          add(pointer, "field '" + std::string(name) + "' is missing");
    for (const auto& [key, item] : v.items()) {
      const std::string at = pointer + "/" + json::pointer_token(key);
      const Field* field = key.find('/') == std::string::npos && key != "*" ? find_field(fields_, prefix + key) : nullptr;
      if (field != nullptr) {
        value(item, *field, at);
        continue;
      }
      std::vector<std::string> known;
      for (const Field& f : fields_)
        if (const auto name = child(f); !name.empty() && name != "*") known.emplace_back(name);
      add(at, "unknown field " + quote(key, 64), nearest(key, known));
    }
  }

 private:
  void add(const std::string& pointer, std::string what, std::string meant = {}) {
    problems_.add(source_, pointer, std::move(what), std::move(meant));
  }
  static std::string range(const Field& f) { return "from " + std::to_string(f.min) + " to " + std::to_string(f.max); }

  void value(const Value& v, const Field& f, const std::string& at) {
    switch (f.type) {
      case Type::text:
        if (v.is_string()) string(v, f, f.form, at);
        else add(at, "must be a string");
        break;
      case Type::choice:
        if (v.is_string()) one_of(v.get<std::string>(), f, at);
        else add(at, "must be one of: " + std::string(f.allowed));
        break;
      case Type::boolean:
        if (!v.is_boolean()) add(at, "must be true or false");
        break;
      case Type::integer:
        if (!v.is_number_unsigned()) add(at, "must be a whole number, " + range(f));
        else if (const auto n = v.get<std::uint64_t>(); n < f.min || n > f.max)
          add(at, std::to_string(n) + " is not " + range(f));
        break;
      case Type::octal:
        if (!v.is_string() || v.get<std::string>().size() != 3 ||
            v.get<std::string>().find_first_not_of("01234567") != std::string::npos)
          add(at, "must be a string of three octal digits, such as \"022\"");
        break;
      case Type::number:
        if (const auto n = parse_number(v); !n) add(at, "must be a whole number or a string \"0x…\"");
        else if (*n < f.min || *n > f.max) add(at, "is not " + range(f));
        break;
      case Type::list:
        list(v, f, at);
        break;
      case Type::ports:
        ports(v, f, at);
        break;
      case Type::ranges:
        ranges(v, f, at);
        break;
      case Type::map:
      case Type::content:
        map(v, f, at);
        break;
      case Type::object:
        object(v, std::string(f.pointer), at);
        break;
      case Type::objects:
        if (counted(v, f, at))
          for (std::size_t i = 0; i < v.size(); ++i) object(v[i], std::string(f.pointer) + "/*", at + "/" + std::to_string(i));
        break;
      case Type::rows:
        rows(v, f, at);
        break;
    }
  }

  void one_of(const std::string& text, const Field& f, const std::string& at) {
    const auto choices = split(f.allowed);
    if (std::ranges::find(choices, text) == choices.end())
      add(at, "unknown value " + quote(text, 64) + ", must be one of: " + std::string(f.allowed), nearest(text, choices));
  }

  void string(const Value& v, const Field& f, Form form, const std::string& at) {
    const auto& text = v.get_ref<const std::string&>();
    if (const auto fault = form_fault(form, text)) add(at, fault->what, fault->meant);
    else if (text.size() < f.min || text.size() > f.max)
      add(at, "has " + std::to_string(text.size()) + " bytes, must have " + range(f));
  }

  bool counted(const Value& v, const Field& f, const std::string& at) {
    if (!v.is_array()) return add(at, "must be a list"), false;
    if (v.size() < f.min || v.size() > f.max)
      return add(at, "has " + std::to_string(v.size()) + " elements, must have " + range(f)), false;
    return true;
  }

  void list(const Value& v, const Field& f, const std::string& at) {
    if (!counted(v, f, at)) return;
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto here = [&] { return at + "/" + std::to_string(i); };  // made for problems only: these lists are long
      if (!v[i].is_string()) {
        add(here(), "must be a string");
        continue;
      }
      const auto& text = v[i].get_ref<const std::string&>();
      if (!seen.insert(text).second) add(here(), "is listed twice: " + quote(text, 64));
      else if (!f.allowed.empty()) one_of(text, f, here());
      else if (const auto fault = form_fault(f.form, text)) add(here(), fault->what, fault->meant);
    }
  }

  void ports(const Value& v, const Field& f, const std::string& at) {
    if (!counted(v, f, at)) return;
    std::set<std::uint64_t> seen;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const std::string here = at + "/" + std::to_string(i);
      const std::uint64_t port = v[i].is_number_unsigned() ? v[i].get<std::uint64_t>() : 0;
      if (port < 1 || port > 65535) add(here, "must be a port: a whole number from 1 to 65535, without quotes");
      else if (!seen.insert(port).second) add(here, "is listed twice: " + std::to_string(port));
    }
  }

  void ranges(const Value& v, const Field& f, const std::string& at) {
    if (!counted(v, f, at)) return;
    for (std::size_t i = 0; i < v.size(); ++i)
      if (!is_range(v[i]))
        add(at + "/" + std::to_string(i), "must be a port (443) or a range of them (\"8000-8010\"), from 1 to 65535");
  }

  static bool is_range(const Value& v) {
    if (v.is_number_unsigned()) return v.get<std::uint64_t>() >= 1 && v.get<std::uint64_t>() <= 65535;
    if (!v.is_string()) return false;
    const auto& text = v.get_ref<const std::string&>();
    const std::size_t dash = text.find('-');
    std::uint16_t first = 0, last = 0;
    const auto whole = [&text](std::size_t from, std::size_t to, std::uint16_t& port) {
      const auto [end, error] = std::from_chars(text.data() + from, text.data() + to, port);
      return error == std::errc{} && end == text.data() + to;
    };
    return dash != std::string::npos && whole(0, dash, first) && whole(dash + 1, text.size(), last) && first >= 1 && first < last;
  }

  void map(const Value& v, const Field& f, const std::string& at) {
    if (!v.is_object()) return add(at, "must be an object");
    if (v.size() > f.max) return add(at, "has " + std::to_string(v.size()) + " entries, at most " + std::to_string(f.max));
    for (const auto& [key, item] : v.items()) {
      const std::string here = at + "/" + json::pointer_token(key);
      if (const auto fault = form_fault(f.form, key)) add(here, fault->what, fault->meant);
      else if (item.is_string()) text_value(item.get<std::string>(), here);
      else if (f.type == Type::content && item.is_array() &&
               std::ranges::all_of(item, [](const Value& l) { return l.is_string(); })) {
        for (const Value& line : item) text_value(line.get<std::string>(), here);
      } else add(here, f.type == Type::content ? "must be a string or a list of lines" : "must be a string");
    }
  }

  void text_value(const std::string& text, const std::string& at) {
    if (const auto fault = form_fault(Form::any, text)) add(at, fault->what);
    else if (text.size() > kMaxPath) add(at, "is longer than 4095 bytes");
  }

  void rows(const Value& v, const Field& f, const std::string& at) {
    if (!counted(v, f, at)) return;
    const std::string pattern = std::string(f.pointer) + "/*/*";
    for (std::size_t i = 0; i < v.size(); ++i) {
      const std::string row = at + "/" + std::to_string(i);
      if (!v[i].is_array() || v[i].empty() || v[i].size() > 6) {
        add(row, "must be a list of 1 to 6 conditions");
        continue;
      }
      for (std::size_t j = 0; j < v[i].size(); ++j) {
        const std::size_t before = problems_.count();
        const std::string here = row + "/" + std::to_string(j);
        object(v[i][j], pattern, here);
        if (problems_.count() == before) condition(v[i][j], here);
      }
    }
  }

  void condition(const Value& c, const std::string& at) {
    const bool masked = c["op"] == "masked_eq";
    if (masked != c.contains("mask")) add(at, masked ? "masked_eq needs 'mask'" : "'mask' goes with masked_eq only");
    else if (masked && (number_of(c["value"]) & ~number_of(c["mask"])) != 0)
      add(at, "value has bits that mask clears: it can never match");
  }

  const Source& source_;
  std::span<const Field> fields_;
  Problems& problems_;
};

}  // namespace

void Problems::add(const Source& source, const std::string& pointer, std::string what, std::string meant) {
  if (++count_ > kMaxProblems) return;
  auto nearest_line = source.lines.find(pointer);
  for (std::string at = pointer; nearest_line == source.lines.end() && !at.empty(); nearest_line = source.lines.find(at))
    at.erase(at.rfind('/'));  // the nearest value that the file does hold
  const int line = nearest_line == source.lines.end() ? 0 : nearest_line->second;
  kept_.push_back({source.file, line, pointer, std::move(what), std::move(meant)});
}

std::vector<Problem> Problems::take() {
  if (count_ > kMaxProblems) {
    kept_.resize(kMaxProblems - 1);
    kept_.push_back({"", 0, "", "and " + std::to_string(count_ - kMaxProblems + 1) + " more", ""});
  }
  return std::move(kept_);
}

void validate(const Source& source, std::span<const Field> fields, Problems& problems) {
  Validator(source, fields, problems).object(source.doc, "", "");
}

std::uint64_t number_of(const Value& value) { return parse_number(value).value_or(0); }

}  // namespace caisson::policy
