// An X client for the tests of caisson-display. It covers the screen with two colours, has the focus, prints each event as a line, and
// pastes at Control and v. Commands come over stdin, one a line: see command().
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xcb/xcb.h>

enum { kPart = 64 * 1024 };

static xcb_connection_t* x;
static xcb_screen_t* screen;
static xcb_window_t window;
static xcb_get_keyboard_mapping_reply_t* map;
static xcb_atom_t clipboard, utf8, incr, targets, slot, flood_slot;
static int pastes = 1, reading;

// What the clipboard holds while this client owns it.
static enum { kText, kParts, kEndless, kSilent } owned;
static char* text;
static size_t text_size, sent;
static xcb_window_t to;
static xcb_atom_t to_property;

static char* pasted;
static size_t pasted_size;
static int in_parts;

static xcb_atom_t atom(const char* name) {
  xcb_intern_atom_reply_t* r = xcb_intern_atom_reply(x, xcb_intern_atom(x, 0, (uint16_t)strlen(name), name), NULL);
  xcb_atom_t found = r->atom;
  free(r);
  return found;
}

static void read_map(void) {
  free(map);
  uint8_t first = xcb_get_setup(x)->min_keycode, last = xcb_get_setup(x)->max_keycode;
  map = xcb_get_keyboard_mapping_reply(x, xcb_get_keyboard_mapping(x, first, (uint8_t)(last - first + 1)), NULL);
}

// Columns of a key: 0 and 1 of the first group, 4 and 5 its third and fourth level (XKB protocol, 12.4).
static xcb_keysym_t keysym(xcb_keycode_t code, uint16_t state) {
  int per = map->keysyms_per_keycode, column = (state & XCB_MOD_MASK_SHIFT ? 1 : 0) + (state & XCB_MOD_MASK_5 ? 4 : 0);
  xcb_keysym_t* of = xcb_get_keyboard_mapping_keysyms(map) + (code - xcb_get_setup(x)->min_keycode) * per;
  return column < per && of[column] ? of[column] : of[0];
}

static void print_hex(const char* what, const char* bytes, size_t size) {
  printf("%s ", what);
  for (size_t i = 0; i < size; ++i) printf("%02x", (unsigned char)bytes[i]);
  printf("\n");
}

static void paint(void) {
  uint32_t colours[] = {0xCC3311, 0x1133CC};
  for (int i = 0; i < 2; ++i) {
    xcb_gcontext_t gc = xcb_generate_id(x);
    xcb_create_gc(x, gc, window, XCB_GC_FOREGROUND, &colours[i]);
    xcb_rectangle_t half = {.x = (int16_t)(i * 300), .y = 0, .width = i ? 4000 : 300, .height = 4000};
    xcb_poly_fill_rectangle(x, window, gc, 1, &half);
    xcb_free_gc(x, gc);
  }
}

static void answer(const xcb_selection_request_event_t* r, int has) {
  xcb_selection_notify_event_t notice = {.response_type = XCB_SELECTION_NOTIFY, .time = r->time, .requestor = r->requestor,
                                         .selection = r->selection, .target = r->target, .property = has ? r->property : 0};
  char bytes[32] = {0};
  memcpy(bytes, &notice, sizeof notice);
  xcb_send_event(x, 0, r->requestor, 0, bytes);
}

static void on_request(const xcb_selection_request_event_t* r) {
  if (owned == kSilent) return;
  if (r->target != utf8) return answer(r, 0);
  if (owned == kText) {
    xcb_change_property(x, XCB_PROP_MODE_REPLACE, r->requestor, r->property, utf8, 8, 0, "");
    for (size_t at = 0; at < text_size; at += kPart)
      xcb_change_property(x, XCB_PROP_MODE_APPEND, r->requestor, r->property, utf8, 8,
                          (uint32_t)(text_size - at < kPart ? text_size - at : kPart), text + at);
    return answer(r, 1);
  }
  uint32_t mask = XCB_EVENT_MASK_PROPERTY_CHANGE, size = (uint32_t)text_size;
  xcb_change_window_attributes(x, r->requestor, XCB_CW_EVENT_MASK, &mask);
  to = r->requestor;
  to_property = r->property;
  sent = 0;
  xcb_change_property(x, XCB_PROP_MODE_REPLACE, to, to_property, incr, 32, 1, &size);
  answer(r, 1);
}

static void send_part(void) {
  if (owned == kEndless) sent = 0;
  size_t left = text_size - sent, part = left < kPart ? left : kPart;
  xcb_change_property(x, XCB_PROP_MODE_REPLACE, to, to_property, utf8, 8, (uint32_t)part, text + sent);
  sent += part;
  if (part == 0) to = 0;
}

static void convert(const char* what) {
  reading = what[0] == 'c';
  pasted_size = 0;
  in_parts = 0;
  xcb_convert_selection(x, window, clipboard, utf8, slot, XCB_CURRENT_TIME);
}

// Adds what the property has to what is pasted; prints it at its end.
static void take_property(int notified) {
  xcb_get_property_reply_t* r =
      xcb_get_property_reply(x, xcb_get_property(x, 1, window, slot, XCB_GET_PROPERTY_TYPE_ANY, 0, 4 << 20), NULL);
  if (r == NULL) return;
  size_t size = (size_t)xcb_get_property_value_length(r);
  if (notified && r->type == incr) {
    in_parts = 1;
  } else {
    pasted = realloc(pasted, pasted_size + size + 1);
    memcpy(pasted + pasted_size, xcb_get_property_value(r), size);
    pasted_size += size;
    if (notified || size == 0) {
      print_hex(reading ? "clip" : "paste", pasted, pasted_size);
      in_parts = 0;
    }
  }
  free(r);
}

static void on_event(xcb_generic_event_t* event) {
  switch (event->response_type & 0x7F) {
    case XCB_MAPPING_NOTIFY: return read_map();
    case XCB_EXPOSE: return paint();
    case XCB_KEY_PRESS:
    case XCB_KEY_RELEASE: {
      xcb_key_press_event_t* key = (xcb_key_press_event_t*)event;
      int press = (event->response_type & 0x7F) == XCB_KEY_PRESS;
      xcb_keysym_t got = keysym(key->detail, key->state);
      printf("key %s %u %#x %#x\n", press ? "press" : "release", key->detail, got, key->state);
      if (press && pastes && got == 'v' && (key->state & XCB_MOD_MASK_CONTROL)) convert("paste");
      return;
    }
    case XCB_BUTTON_PRESS:
    case XCB_BUTTON_RELEASE: {
      xcb_button_press_event_t* button = (xcb_button_press_event_t*)event;
      printf("button %s %u %d %d\n", (event->response_type & 0x7F) == XCB_BUTTON_PRESS ? "press" : "release", button->detail,
             button->root_x, button->root_y);
      return;
    }
    case XCB_MOTION_NOTIFY: {
      xcb_motion_notify_event_t* motion = (xcb_motion_notify_event_t*)event;
      printf("motion %d %d %#x\n", motion->root_x, motion->root_y, motion->state);
      return;
    }
    case XCB_SELECTION_REQUEST: return on_request((xcb_selection_request_event_t*)event);
    case XCB_SELECTION_CLEAR: printf("cleared\n"); return;
    case XCB_SELECTION_NOTIFY: {
      xcb_selection_notify_event_t* notice = (xcb_selection_notify_event_t*)event;
      if (notice->target != utf8) printf("flooded\n");
      else if (notice->property != slot) printf("%s none\n", reading ? "clip" : "paste");
      else take_property(1);
      return;
    }
    case XCB_PROPERTY_NOTIFY: {
      xcb_property_notify_event_t* notice = (xcb_property_notify_event_t*)event;
      if (notice->window == window && notice->atom == slot && notice->state == XCB_PROPERTY_NEW_VALUE && in_parts) take_property(0);
      if (notice->window == to && notice->atom == to_property && notice->state == XCB_PROPERTY_DELETE) send_part();
      return;
    }
    default: return;
  }
}

static void own(int how, size_t size) {
  owned = how;
  text_size = size;
  free(text);
  text = malloc(size + 1);
  memset(text, 'x', size);
  xcb_set_selection_owner(x, window, clipboard, XCB_CURRENT_TIME);
}

// Binds `most` keys that have no keysym, as Xvnc does for a viewer's letters, then prints how many have none.
static void spare(long most) {
  read_map();
  int per = map->keysyms_per_keycode, count = xcb_get_keyboard_mapping_keysyms_length(map) / per, none = 0;
  for (int i = count - 1; i >= 0; --i) {
    xcb_keysym_t letter = 0x1004E00 + (xcb_keysym_t)i, *of = xcb_get_keyboard_mapping_keysyms(map) + i * per;
    int column = 0;
    while (column < per && of[column] == 0) ++column;
    if (column < per) continue;
    if (most-- > 0) xcb_change_keyboard_mapping(x, 1, (xcb_keycode_t)(xcb_get_setup(x)->min_keycode + i), 1, &letter);
    else ++none;
  }
  printf("none %d\n", none);
}

// own HEX | parts N | endless | huge N | silent | no-paste | read | flood N | spare N | ping. Each is answered by a line with its name.
static void command(char* line) {
  char* more = strchr(line, ' ');
  if (more != NULL) *more++ = 0;
  long number = more != NULL ? strtol(more, NULL, 10) : 0;
  if (strcmp(line, "own") == 0) {
    own(kText, strlen(more) / 2);
    for (size_t i = 0; i < text_size; ++i) sscanf(more + 2 * i, "%2hhx", (unsigned char*)&text[i]);
  } else if (strcmp(line, "huge") == 0) {
    own(kText, (size_t)number);
  } else if (strcmp(line, "parts") == 0) {
    own(kParts, (size_t)number);
  } else if (strcmp(line, "endless") == 0) {
    own(kEndless, kPart);
  } else if (strcmp(line, "silent") == 0) {
    own(kSilent, 0);
  } else if (strcmp(line, "no-paste") == 0) {
    pastes = 0;
  } else if (strcmp(line, "read") == 0) {
    convert("clip");
  } else if (strcmp(line, "spare") == 0) {
    spare(number);
  } else if (strcmp(line, "flood") == 0) {
    for (long i = 0; i < number; ++i) xcb_convert_selection(x, window, clipboard, targets, flood_slot, XCB_CURRENT_TIME);
  }
  free(xcb_get_input_focus_reply(x, xcb_get_input_focus(x), NULL));
  for (xcb_generic_event_t* event; (event = xcb_poll_for_event(x)) != NULL; free(event)) on_event(event);
  printf("%s\n", line);
}

int main(void) {
  x = xcb_connect(NULL, NULL);
  if (xcb_connection_has_error(x)) return 1;
  screen = xcb_setup_roots_iterator(xcb_get_setup(x)).data;
  clipboard = atom("CLIPBOARD"), utf8 = atom("UTF8_STRING"), incr = atom("INCR"), targets = atom("TARGETS");
  slot = atom("TEST_SLOT"), flood_slot = atom("TEST_FLOOD");
  read_map();
  window = xcb_generate_id(x);
  uint32_t values[] = {1, XCB_EVENT_MASK_KEY_PRESS | XCB_EVENT_MASK_KEY_RELEASE | XCB_EVENT_MASK_BUTTON_PRESS |
                              XCB_EVENT_MASK_BUTTON_RELEASE | XCB_EVENT_MASK_POINTER_MOTION | XCB_EVENT_MASK_EXPOSURE |
                              XCB_EVENT_MASK_PROPERTY_CHANGE};
  xcb_create_window(x, screen->root_depth, window, screen->root, 0, 0, 4000, 4000, 0, XCB_WINDOW_CLASS_INPUT_OUTPUT,
                    screen->root_visual, XCB_CW_OVERRIDE_REDIRECT | XCB_CW_EVENT_MASK, values);
  xcb_map_window(x, window);
  xcb_set_input_focus(x, XCB_INPUT_FOCUS_PARENT, window, XCB_CURRENT_TIME);
  paint();
  free(xcb_get_input_focus_reply(x, xcb_get_input_focus(x), NULL));
  printf("ready\n");
  static char line[4 << 20];
  size_t have = 0;
  for (;;) {
    for (xcb_generic_event_t* event; (event = xcb_poll_for_event(x)) != NULL; free(event)) on_event(event);
    if (xcb_connection_has_error(x)) return 0;
    xcb_flush(x);
    fflush(stdout);
    struct pollfd ready[] = {{xcb_get_file_descriptor(x), POLLIN, 0}, {0, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 || !(ready[1].revents & (POLLIN | POLLHUP))) continue;
    ssize_t n = read(0, line + have, sizeof line - have - 1);
    if (n <= 0) return 0;
    have += (size_t)n;
    for (char* end; (end = memchr(line, '\n', have)) != NULL;) {
      *end = 0;
      size_t used = (size_t)(end + 1 - line);
      command(line);
      memmove(line, end + 1, have - used);
      have -= used;
    }
  }
}
