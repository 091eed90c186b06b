// The tools browser_*, which look and answer like those of @agent-infra/mcp-server-browser, and work in the tab that a person
// sees.
#include "agent/mcp/browser_types.h"
#include "agent/mcp/tool.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::mcp {
namespace {

using frames::PageOp;
using routes::Scope;
using services::PageAnswer;

// An operation of the page driver. Code::permission_denied while a person has the browser alone.
task<PageAnswer> page(Call call, PageOp op, json::Value head) {
  if (const auto why = routes::taken_text(*call.services.workspace)) co_return fail(Code::permission_denied, *why);
  co_return co_await call.services.workspace->pages.call(op, std::move(head));
}

Outcome failed(const PageAnswer& answer) {
  return error_outcome(answer.message + (answer.hint ? ". " + *answer.hint : std::string()));
}

// The text, and what else became of the page (a dialog that was closed, a tab that was opened).
Outcome told(std::string text, const PageAnswer& answer) {
  if (answer.hint) text += "\n" + *answer.hint;
  return text_outcome(std::move(text));
}

std::string text_in(const json::Value& object, const char* member) {
  if (!object.is_object()) return "";
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

json::Value place_of(const std::optional<std::int64_t>& index, const std::optional<std::string>& selector) {
  json::Value out = json::Value::object();
  if (index) out["index"] = *index;
  else if (selector) out["selector"] = *selector;
  return out;
}
std::string place_text(const json::Value& place) {
  return place.contains("index") ? "index " + json::dump(place["index"]) : "selector " + text_in(place, "selector");
}
Outcome no_place() { return error_outcome("Either selector or index must be provided"); }

// [3]<button type=submit>Send</button>
std::string element_line(const json::Value& element) {
  const std::string tag = text_in(element, "tag");
  std::string out = "[" + json::dump(element["index"]) + "]<" + tag;
  for (const char* attribute : {"type", "role", "href", "value"})
    if (const std::string value = text_in(element, attribute); !value.empty())
      out.append(" ").append(attribute).append("=").append(value);
  const std::string text = text_in(element, "text");
  return out + ">" + (text.empty() ? text_in(element, "name") : text) + "</" + tag + ">\n";
}

task<std::string> elements_text(Call call) {
  CO_TRY_ASSIGN(const PageAnswer found, co_await page(std::move(call), PageOp::elements, json::Value::object()));
  std::string out;
  if (found.ok && found.data.is_array())
    for (const json::Value& element : found.data) out += element_line(element);
  co_return out;
}

task<Outcome> navigate(Call call, UrlArguments arguments) {
  json::Value head = {{"url", arguments.url}};
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(call, PageOp::navigate, std::move(head)));
  if (!done.ok) co_return failed(done);
  CO_TRY_ASSIGN(const std::string elements, co_await elements_text(std::move(call)));
  std::string text = "Navigated to " + arguments.url + "\n";
  if (elements.empty()) text += "No clickable elements found";
  else
    text += "clickable elements (call `browser_get_clickable_elements` for new ones when an index is not valid any more):\n" +
            elements;
  co_return told(std::move(text), done);
}

template <PageOp op>
task<Outcome> go(Call call, NoArguments) {
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), op, json::Value::object()));
  if (!done.ok) co_return failed(done);
  co_return told(op == PageOp::back ? "Navigated back" : "Navigated forward", done);
}

task<Outcome> get_clickable_elements(Call call, NoArguments) {
  CO_TRY_ASSIGN(std::string text, co_await elements_text(std::move(call)));
  co_return text_outcome(text.empty() ? "No clickable elements found" : std::move(text));
}

template <PageOp op>
task<Outcome> at_element(Call call, ElementArguments arguments) {
  json::Value head = place_of(arguments.index, arguments.selector);
  if (head.empty()) co_return no_place();
  const std::string where = place_text(head);
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), op, std::move(head)));
  if (!done.ok) co_return failed(done);
  co_return told((op == PageOp::click ? "Clicked element: " : "Hovered element: ") + where, done);
}

task<Outcome> form_input_fill(Call call, ValueArguments arguments) {
  json::Value head = place_of(arguments.index, arguments.selector);
  if (head.empty()) co_return no_place();
  const std::string where = place_text(head);
  std::string text = "Successfully filled " + where + " with: \"" + arguments.value + "\"";
  if (arguments.clear) {
    head["text"] = std::move(arguments.value);
    CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::fill, std::move(head)));
    if (!done.ok) co_return failed(done);
    co_return told(text + " (cleared existing text)", done);
  }
  CO_TRY_ASSIGN(const PageAnswer focused, co_await page(call, PageOp::click, std::move(head)));
  if (!focused.ok) co_return failed(focused);
  json::Value to_end = {{"key", "End"}}, typed = {{"text", std::move(arguments.value)}};
  CO_TRY_ASSIGN(const PageAnswer ended, co_await page(call, PageOp::press_key, std::move(to_end)));
  if (!ended.ok) co_return failed(ended);
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::type, std::move(typed)));
  if (!done.ok) co_return failed(done);
  co_return told(std::move(text), done);
}

task<Outcome> select(Call call, SelectArguments arguments) {
  json::Value item = place_of(arguments.index, arguments.selector);
  if (item.empty()) co_return no_place();
  const std::string text = "Selected \"" + arguments.value + "\" in " + place_text(item);
  item["value"] = std::move(arguments.value);
  json::Value head = json::Value::object();
  head["items"] = json::Value::array();
  head["items"].push_back(std::move(item));
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::fill_form, std::move(head)));
  if (!done.ok) co_return failed(done);
  co_return told(text, done);
}

task<Outcome> press_key(Call call, PressArguments arguments) {
  json::Value head = {{"key", arguments.key}};
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::press_key, std::move(head)));
  if (!done.ok) co_return failed(done);
  co_return told("Pressed key: " + arguments.key, done);
}

task<Outcome> scroll(Call call, AmountArguments arguments) {
  constexpr std::int64_t kBottom = 100'000'000;
  constexpr double kMost = 1'000'000;
  json::Value head = {{"x", 0}, {"y", kBottom}};
  PageOp op = PageOp::scroll_to;
  std::string text = "Scrolled to the bottom of the page";
  if (arguments.amount) {
    const auto pixels = static_cast<std::int64_t>(std::clamp(*arguments.amount, -kMost, kMost));
    op = PageOp::scroll;
    head = {{"direction", pixels < 0 ? "up" : "down"}, {"amount", pixels < 0 ? -pixels : pixels}};
    text = "Scrolled " + std::string(pixels < 0 ? "up" : "down") + " by " + std::to_string(pixels < 0 ? -pixels : pixels) +
           " pixels";
  }
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), op, std::move(head)));
  if (!done.ok) co_return failed(done);
  co_return told(std::move(text), done);
}

task<Outcome> evaluate(Call call, ScriptArguments arguments) {
  json::Value head = {{"expression", std::move(arguments.script)}};
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::evaluate, std::move(head)));
  if (!done.ok) co_return failed(done);
  co_return told("Execution result:\n" + json::dump(done.data, 2) + "\n", done);
}

task<Outcome> get_text(Call call, NoArguments) {
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::text, json::Value::object()));
  if (!done.ok) co_return failed(done);
  co_return text_outcome(done.data.is_string() ? done.data.get<std::string>() : "");
}

task<Outcome> get_markdown(Call call, NoArguments) {
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::markdown, json::Value::object()));
  if (!done.ok) co_return failed(done);
  co_return text_outcome(text_in(done.data, "title") + "\n" + text_in(done.data, "markdown"));
}

task<Outcome> read_links(Call call, NoArguments) {
  json::Value head = {{"expression",
                       "Array.from(document.querySelectorAll('a[href]'), (a) => "
                       "({text: a.innerText, href: a.getAttribute('href')})).filter((link) => link.href)"}};
  CO_TRY_ASSIGN(PageAnswer done, co_await page(std::move(call), PageOp::evaluate, std::move(head)));
  if (!done.ok) co_return failed(done);
  Outcome out = text_outcome(json::dump(done.data, 2));
  if (!done.data.is_array()) done.data = json::Value::array();
  out.structured = json::Value::object();
  (*out.structured)["links"] = std::move(done.data);
  co_return out;
}

task<Outcome> get_download_list(Call call, NoArguments) {
  CO_TRY_ASSIGN(PageAnswer done, co_await page(std::move(call), PageOp::downloads, json::Value::object()));
  if (!done.ok) co_return failed(done);
  json::Value list = json::Value::object();
  list["list"] = std::move(done.data);
  co_return structured_outcome(std::move(list));
}

std::string tab_lines(const json::Value& tabs) {
  std::string out;
  for (const json::Value& tab : tabs)
    out += "[" + json::dump(tab["index"]) + "] Title: " + text_in(tab, "title") + " (URL: " + text_in(tab, "url") + ")\n";
  return out;
}

const json::Value* active_in(const json::Value& tabs) {
  for (const json::Value& tab : tabs)
    if (tab.value("active", false)) return &tab;
  return nullptr;
}

task<Outcome> tab_list(Call call, NoArguments) {
  CO_TRY_ASSIGN(PageAnswer done, co_await page(std::move(call), PageOp::tabs, json::Value::object()));
  if (!done.ok || !done.data.is_array()) co_return failed(done);
  std::string text;
  if (const json::Value* active = active_in(done.data))
    text = "Current Tab: [" + json::dump((*active)["index"]) + "] " + text_in(*active, "title") + "\n";
  Outcome out = told(text + "All Tabs:\n" + tab_lines(done.data), done);
  out.structured = json::Value::object();
  (*out.structured)["tabList"] = std::move(done.data);
  co_return out;
}

task<Outcome> new_tab(Call call, NewTabArguments arguments) {
  json::Value head = json::Value::object();
  if (arguments.url) head["url"] = *arguments.url;
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::tab_create, std::move(head)));
  if (!done.ok) co_return failed(done);
  co_return told("Opened new tab with URL: " + arguments.url.value_or("about:blank"), done);
}

task<Outcome> switch_tab(Call call, TabArguments arguments) {
  json::Value head = {{"index", arguments.index}};
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(call, PageOp::tab_activate, std::move(head)));
  if (!done.ok) co_return failed(done);
  CO_TRY_ASSIGN(const PageAnswer tabs, co_await page(std::move(call), PageOp::tabs, json::Value::object()));
  std::string text = "Switched to tab " + std::to_string(arguments.index);
  if (tabs.ok && tabs.data.is_array()) text += ", All Tabs:\n" + tab_lines(tabs.data);
  co_return told(std::move(text), done);
}

task<Outcome> close_tab(Call call, NoArguments) {
  CO_TRY_ASSIGN(const PageAnswer tabs, co_await page(call, PageOp::tabs, json::Value::object()));
  const json::Value* active = tabs.ok && tabs.data.is_array() ? active_in(tabs.data) : nullptr;
  if (active == nullptr) co_return tabs.ok ? error_outcome("No tab is visible") : failed(tabs);
  json::Value head = {{"index", (*active)["index"]}};
  const std::string text = "Closed current tab [" + json::dump(head["index"]) + "]";
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::tab_close, std::move(head)));
  if (!done.ok) co_return failed(done);
  co_return told(text, done);
}

// The browser belongs to the workspace, and a person may look at it: its tabs are closed, and it goes on with an empty one.
task<Outcome> close(Call call, NoArguments) {
  CO_TRY_ASSIGN(const PageAnswer tabs, co_await page(call, PageOp::tabs, json::Value::object()));
  if (!tabs.ok || !tabs.data.is_array()) co_return failed(tabs);
  for (std::size_t left = tabs.data.size(); left > 0; --left) {
    json::Value head = {{"index", left - 1}};
    CO_TRY_ASSIGN(const PageAnswer done, co_await page(call, PageOp::tab_close, std::move(head)));
    if (!done.ok) co_return failed(done);
  }
  co_return text_outcome("Closed browser: its tabs are closed, and one that is empty is open");
}

std::string number_text(const json::Value& object, const char* member) {
  return object.contains(member) ? json::dump(object[member]) : "?";
}

task<Outcome> picture(Call call, json::Value head, std::string name) {
  CO_TRY_ASSIGN(const PageAnswer shot, co_await page(std::move(call), PageOp::screenshot, std::move(head)));
  if (!shot.ok || !shot.has_file) co_return failed(shot);
  Outcome out = told("Screenshot " + (name.empty() ? name : "'" + name + "' ") + "taken at " +
                         number_text(shot.data, "screenshot_width") + "x" + number_text(shot.data, "screenshot_height"),
                     shot);
  Outcome image = image_outcome(shot.file, "image/png");
  out.content.push_back(std::move(image.content[0]));
  co_return out;
}

task<Outcome> screenshot(Call call, ScreenshotArguments arguments) {
  json::Value head = place_of(arguments.index, arguments.selector);
  if (arguments.fullPage && head.empty()) head["full_page"] = true;
  return picture(std::move(call), std::move(head), arguments.name.value_or(""));
}

task<Outcome> vision_screen_capture(Call call, NoArguments) { return picture(std::move(call), json::Value::object(), ""); }

task<Outcome> vision_screen_click(Call call, PlaceArguments arguments) {
  json::Value head = {{"x", arguments.x}, {"y", arguments.y}};
  if (arguments.factors && !arguments.factors->empty()) {
    const std::vector<double>& factors = *arguments.factors;
    if (factors.size() != 2 || factors[0] <= 0 || factors[1] <= 0)
      co_return error_outcome("Wrong arguments: factors: two positive numbers");
    json::Value ask = {{"expression", "[innerWidth, innerHeight]"}};
    CO_TRY_ASSIGN(const PageAnswer size, co_await page(call, PageOp::evaluate, std::move(ask)));
    const bool known =
        size.ok && size.data.is_array() && size.data.size() == 2 && size.data[0].is_number() && size.data[1].is_number();
    if (!known) co_return size.ok ? error_outcome("The page does not tell its size") : failed(size);
    head = {{"x", arguments.x / factors[0] * size.data[0].get<double>()},
            {"y", arguments.y / factors[1] * size.data[1].get<double>()}};
  }
  CO_TRY_ASSIGN(const PageAnswer done, co_await page(std::move(call), PageOp::click, std::move(head)));
  if (!done.ok) co_return failed(done);
  json::Value place = json::Value::array({arguments.x, arguments.y});
  co_return told("Vision click at " + json::dump(place), done);
}

constexpr auth::Access kAll =
    auth::Access::all;  // also to look: a page is the browser's, and looking brings its tab to the front

constexpr Tool kBrowserTools[] = {
    {"browser_click", "Click",
     "Clicks an element of the page. Call `browser_get_clickable_elements` first for the index of the element, but not before "
     "each call",
     kDestroys | kOutside, Scope::browser, kAll, tool<at_element<PageOp::click>>()},
    {"browser_close", "Close", "Closes the tabs of the browser when the task is done", kDestroys, Scope::browser, kAll,
     tool<close>()},
    {"browser_close_tab", "Close tab", "Closes the current tab", kDestroys, Scope::browser, kAll, tool<close_tab>()},
    {"browser_evaluate", "Run JavaScript", "Runs JavaScript in the page", kDestroys | kOutside, Scope::browser, kAll,
     tool<evaluate>()},
    {"browser_form_input_fill", "Fill in", "Fills in a field of the page, which index or selector names", kDestroys | kOutside,
     Scope::browser, kAll, tool<form_input_fill>()},
    {"browser_get_clickable_elements", "Clickable elements",
     "Lists the elements of the page that can be clicked, filled in or selected, with their indexes", kReads | kOutside,
     Scope::browser, kAll, tool<get_clickable_elements>()},
    {"browser_get_download_list", "Downloads", "Lists the files that the browser has downloaded", kReads | kRepeats,
     Scope::browser, kAll, tool<get_download_list>(), routes::detail::describe<DownloadList>},
    {"browser_get_markdown", "Page as Markdown", "Gets what is to be read in the page, as Markdown", kReads | kOutside,
     Scope::browser, kAll, tool<get_markdown>()},
    {"browser_get_text", "Text of the page", "Gets the text of the page that is seen", kReads | kOutside, Scope::browser, kAll,
     tool<get_text>()},
    {"browser_go_back", "Back", "Goes back to the previous page", kOutside, Scope::browser, kAll, tool<go<PageOp::back>>()},
    {"browser_go_forward", "Forward", "Goes forward to the next page", kOutside, Scope::browser, kAll,
     tool<go<PageOp::forward>>()},
    {"browser_hover", "Hover", "Moves the mouse over an element of the page, which index or selector names", kOutside,
     Scope::browser, kAll, tool<at_element<PageOp::hover>>()},
    {"browser_navigate", "Navigate", "Goes to an address", kOutside, Scope::browser, kAll, tool<navigate>()},
    {"browser_new_tab", "New tab", "Opens a new tab", kOutside, Scope::browser, kAll, tool<new_tab>()},
    {"browser_press_key", "Press key", "Presses a key of the keyboard", kDestroys | kOutside, Scope::browser, kAll,
     tool<press_key>()},
    {"browser_read_links", "Links", "Gets all links of the page", kReads | kOutside, Scope::browser, kAll, tool<read_links>(),
     routes::detail::describe<Links>},
    {"browser_screenshot", "Screenshot of the page", "Takes a picture of the page, or of one element", kReads | kOutside,
     Scope::browser, kAll, tool<screenshot>()},
    {"browser_scroll", "Scroll", "Scrolls the page", kOutside, Scope::browser, kAll, tool<scroll>()},
    {"browser_select", "Select", "Chooses an option of a list in the page, which index or selector names", kDestroys | kOutside,
     Scope::browser, kAll, tool<select>()},
    {"browser_switch_tab", "Switch tab", "Brings a tab to the front", kRepeats, Scope::browser, kAll, tool<switch_tab>()},
    {"browser_tab_list", "Tabs", "Lists the tabs", kReads | kRepeats, Scope::browser, kAll, tool<tab_list>(),
     routes::detail::describe<TabList>},
    {"browser_vision_screen_capture", "Picture for a vision model",
     "Takes a picture of the page for a model that works with coordinates", kReads | kOutside, Scope::browser, kAll,
     tool<vision_screen_capture>()},
    {"browser_vision_screen_click", "Click at a place",
     "Clicks at a place of the page, as a vision model sees it. Call `browser_vision_screen_capture` once before; use "
     "`browser_click` if it fails",
     kDestroys | kOutside, Scope::browser, kAll, tool<vision_screen_click>()},
};

}  // namespace

std::span<const Tool> browser_tools() { return kBrowserTools; }

}  // namespace caisson::mcp
