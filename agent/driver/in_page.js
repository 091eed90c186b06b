// What runs in a page, in a world of the driver's own: a function that returns an object of methods. It shares nodes with the page's
// code and nothing else, but an input named "children" hides form.children there, too: nodes are read by the getters of their types.
// Every method is linear in the size of the page, and bounded in what it returns.
'use strict';

() => {
  const getter = (type, name) => {
    const {get} = Object.getOwnPropertyDescriptor(type.prototype, name);
    return (node) => get.call(node);
  };
  const childrenOf = getter(Element, 'children');
  const parentOf = getter(Node, 'parentNode');
  const typeOf = getter(Node, 'nodeType');
  const textOf = getter(Node, 'textContent');
  const shadowOf = getter(Element, 'shadowRoot');
  const tagOf = getter(Element, 'localName');
  const innerText = getter(HTMLElement, 'innerText');
  const dataOf = getter(CharacterData, 'data');
  const nodesOf = getter(Node, 'childNodes');
  const connected = getter(Node, 'isConnected');
  const childrenOfDocument = getter(Document, 'children');
  const childrenOfFragment = getter(DocumentFragment, 'children');
  // Of a document, a shadow root or an element.
  const childrenIn = (parent) => {
    if (parent instanceof Element) return childrenOf(parent);
    return (parent instanceof Document ? childrenOfDocument : childrenOfFragment)(parent);
  };
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
  const has = (element, name) => Element.prototype.hasAttribute.call(element, name);
  const is = (element, selector) => Element.prototype.matches.call(element, selector);
  const rectOf = (element) => Element.prototype.getBoundingClientRect.call(element);
  const short = (text, most) => {
    const clean = String(text ?? '').slice(0, most * 4).replace(/\s+/g, ' ').trim();
    return clean.length > most ? `${clean.slice(0, most - 1)}…` : clean;
  };
  const shown = (element, style) => style.visibility === 'visible' && style.display !== 'none';

  const kInteractive = 'a[href], area[href], button, input:not([type=hidden i]), select, textarea, summary, option[role], ' +
    'audio[controls], video[controls], [contenteditable=""], [contenteditable=true i], [contenteditable=plaintext-only i], [onclick], ' +
    '[tabindex]:not([tabindex^="-"])';
  const kRoles = new Set(('button checkbox combobox gridcell link listbox menuitem menuitemcheckbox menuitemradio option radio searchbox slider ' +
    'spinbutton switch tab textbox treeitem').split(' '));
  const kFields = {__proto__: null, input: HTMLInputElement, select: HTMLSelectElement, textarea: HTMLTextAreaElement};
  const kNodes = 200000;
  const kSteps = 200;

  const implied = (element, tag) => {
    const type = (attribute(element, 'type') ?? '').toLowerCase();
    if (tag === 'a' || tag === 'area') return has(element, 'href') ? 'link' : '';
    if (tag === 'select') return has(element, 'multiple') ? 'listbox' : 'combobox';
    if (tag === 'input') {
      return {button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio', range: 'slider',
        number: 'spinbutton', search: 'searchbox', file: 'button'}[type] ?? 'textbox';
    }
    return {button: 'button', textarea: 'textbox', summary: 'button', option: 'option'}[tag] ?? '';
  };

  const nameOf = (element, tag, text) => {
    const labelled = (attribute(element, 'aria-labelledby') ?? '').split(/\s+/).slice(0, 8)
      .map((id) => (id ? Document.prototype.getElementById.call(document, id) : null)).filter(Boolean).map((label) => short(textOf(label), 200));
    if (labelled.length > 0) return short(labelled.join(' '), 200);
    const said = attribute(element, 'aria-label');
    if (said) return short(said, 200);
    const type = kFields[tag];
    if (type && element instanceof type) {
      const labels = getter(type, 'labels')(element);
      if (labels && labels.length > 0) return short(textOf(labels[0]), 200);
    }
    const told = ['alt', 'title', 'placeholder'].map((name) => attribute(element, name)).find(Boolean);
    if (told) return short(told, 200);
    const button = tag === 'input' && ['button', 'submit', 'reset'].includes((attribute(element, 'type') ?? '').toLowerCase());
    return button ? short(attribute(element, 'value'), 200) : text;
  };

  const valueOf = (element, tag) => {
    const type = kFields[tag];
    if (!type || !(element instanceof type)) return null;
    const kind = tag === 'input' ? getter(HTMLInputElement, 'type')(element) : '';
    if (kind === 'password') return '';  // a person may have typed it
    if (kind === 'checkbox' || kind === 'radio') return getter(HTMLInputElement, 'checked')(element);
    return short(getter(type, 'value')(element), 500);
  };

  const escaped = (name) => CSS.escape(name);
  const only = (root, selector) => {
    const query = root === document ? Document.prototype.querySelectorAll : DocumentFragment.prototype.querySelectorAll;
    return query.call(root, selector).length === 1;
  };
  // Among the elements of its name below the same parent: which one it is, and of how many. Kept while one list is made.
  let places = new Map();
  const placeOf = (element, parent) => {
    let known = places.get(parent);
    if (!known) {
      const counts = new Map();
      known = {at: new Map(), counts};
      for (const one of childrenIn(parent)) {
        const tag = tagOf(one), nth = (counts.get(tag) ?? 0) + 1;
        counts.set(tag, nth);
        known.at.set(one, nth);
      }
      places.set(parent, known);
    }
    return {nth: known.at.get(element), of: known.counts.get(tagOf(element))};
  };
  // A selector for playwright: from an id that is the only one, or from the root. Empty when it would have too many steps.
  const selectorOf = (element) => {
    const parts = [];
    const done = () => parts.reverse().join('');
    for (let at = element; parts.length < kSteps; ) {
      const root = Node.prototype.getRootNode.call(at);
      const id = attribute(at, 'id');
      const parent = parentOf(at);
      const inShadow = root instanceof ShadowRoot;
      if (id && id.length < 100 && (root === document || inShadow) && only(root, `#${escaped(id)}`)) {
        parts.push(`#${escaped(id)}`);
        if (!inShadow) return done();
      } else if (!parent || parent === document) {
        parts.push(escaped(tagOf(at)));
        return done();
      } else {
        const {nth, of} = placeOf(at, parent);
        parts.push(of === 1 ? escaped(tagOf(at)) : `${escaped(tagOf(at))}:nth-of-type(${nth})`);
        if (parent !== root) {
          parts.push(' > ');
          at = parent;
          continue;
        }
        parts.push(':scope > ');
      }
      parts.push(' >> ');
      at = root.host;
    }
    return '';
  };
  const kept = {nodes: [], frames: [], text: ''};

  // Elements in document order: an open shadow root comes before the children. An element that is not displayed is left out with its content.
  function* walk() {
    const stack = document.documentElement ? [document.documentElement] : [];
    for (let seen = 0; stack.length > 0 && seen < kNodes; ++seen) {
      const element = stack.pop();
      const style = getComputedStyle(element);
      if (style.display === 'none') continue;
      yield {element, style};
      const children = childrenOf(element);
      for (let i = children.length - 1; i >= 0; --i) stack.push(children[i]);
      const shadow = shadowOf(element);
      if (!shadow) continue;
      const inside = childrenOfFragment(shadow);
      for (let i = inside.length - 1; i >= 0; --i) stack.push(inside[i]);
    }
  }

  const textMakers = {
    html: (outer) => {
      const root = document.documentElement;
      if (!root) return '';
      if (!outer) return Element.prototype.__lookupGetter__('innerHTML').call(document.body ?? root);
      const type = document.doctype ? `${new XMLSerializer().serializeToString(document.doctype)}\n` : '';
      return type + Element.prototype.__lookupGetter__('outerHTML').call(root);
    },
    text: () => (document.body instanceof HTMLElement ? innerText(document.body) : textOf(document.documentElement ?? document) ?? ''),
    given: (made) => made,
  };

  return {
    visible: () => document.visibilityState === 'visible',
    title: () => String(document.title).slice(0, 4096),
    scrolled: () => ({x: Math.round(scrollX), y: Math.round(scrollY)}),
    scrollTo: (x, y) => {
      scrollTo({left: x, top: y, behavior: 'instant'});
      return {x: Math.round(scrollX), y: Math.round(scrollY)};
    },
    // Two animation frames, and longer while the page still moves; at most half a second.
    settled: () => new Promise((resolve) => {
      let last = '', same = 0;
      const end = performance.now() + 500;
      const look = () => {
        const now = `${scrollX} ${scrollY}`;
        same = now === last ? same + 1 : 0;
        last = now;
        if (same >= 2 || performance.now() > end) resolve(true);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
      setTimeout(() => resolve(true), 600);
    }),
    viewport: () => ({width: innerWidth, height: innerHeight}),
    page: () => {
      const root = document.documentElement, body = document.body;
      const most = (name) => Math.max(root?.[name] ?? 0, body instanceof HTMLElement ? getter(Element, name)(body) : 0);
      return {width: most('scrollWidth'), height: most('scrollHeight')};
    },

    // Makes a text and keeps it for slice(), or returns it when it is short. Beyond `most` bytes: its size alone. `title` comes with it.
    keep(most, maker, value, title = '') {
      const made = textMakers[maker](value);
      const text = typeof made === 'string' ? made : '';
      if (text.length > most) return {bytes: text.length};
      let bytes = 0;
      for (let i = 0; i < text.length; ++i) {
        const code = text.charCodeAt(i);
        bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code >= 0xd800 && code <= 0xdfff ? 2 : 3;
      }
      if (bytes > most) return {bytes};
      if (text.length <= 1048576) return {bytes, text, title};
      kept.text = text;
      return {bytes, length: text.length, title};
    },
    slice(from, to) {
      const text = kept.text.slice(from, to);
      if (to >= kept.text.length) kept.text = '';
      return text;
    },

    // Visible interactive elements, and frames among them as {frame: number, x, y}. The nodes are kept for path().
    elements(most) {
      kept.nodes = [];
      kept.frames = [];
      places = new Map();
      const items = [];
      let more = false;
      const pointers = new Set();  // in a pointer's area already
      for (const {element, style} of walk()) {
        const rect = rectOf(element);
        const tag = tagOf(element);
        const parent = parentOf(element);
        const points = style.cursor === 'pointer';
        const inherits = points && pointers.has(parent instanceof ShadowRoot ? parent.host : parent);
        if (points) pointers.add(element);
        if (rect.width < 1 || rect.height < 1 || !shown(element, style)) continue;
        if (tag === 'iframe' || tag === 'frame') {
          const left = rect.left + element.clientLeft + parseFloat(style.paddingLeft);
          const top = rect.top + element.clientTop + parseFloat(style.paddingTop);
          items.push({frame: kept.frames.length, x: left, y: top, selector: selectorOf(element)});
          kept.frames.push(element);
          continue;
        }
        const role = (attribute(element, 'role') ?? '').trim().split(/\s+/)[0].toLowerCase();
        const clickable = points && !inherits && !['label', 'html', 'body'].includes(tag);
        if (!is(element, kInteractive) && !kRoles.has(role) && !clickable) continue;
        if (items.length >= most) {
          more = true;
          break;
        }
        const text = tag === 'select' ? '' : short(element instanceof HTMLElement ? innerText(element) : textOf(element), 200);
        const href = tag === 'a' && element instanceof HTMLAnchorElement ? getter(HTMLAnchorElement, 'href')(element) : attribute(element, 'href');
        items.push({
          node: kept.nodes.length,
          tag: short(tag, 50),
          role: short(role || implied(element, tag), 50),
          name: nameOf(element, tag, text),
          text,
          type: has(element, 'type') ? short(attribute(element, 'type'), 50) : tag === 'input' ? 'text' : null,
          value: valueOf(element, tag),
          href: href === null ? null : String(href).slice(0, 2048),
          selector: selectorOf(element),
          x: rect.left, y: rect.top, width: rect.width, height: rect.height,
        });
        kept.nodes.push(element);
      }
      places = new Map();
      return {items, more};
    },
    frame: (number) => kept.frames[number],

    // Where a kept element is now, for the engine `node`; null: it is not in the page any more.
    path(kind, number) {
      let at = kept[kind][number];
      if (!at || !connected(at)) return null;
      const steps = [];
      for (;;) {
        const parent = parentOf(at);
        if (!parent) return null;
        steps.push(Array.prototype.indexOf.call(childrenIn(parent), at));
        if (parent === document) return steps.reverse().join('/');
        if (parent instanceof ShadowRoot) {
          steps.push('s');
          at = parent.host;
        } else {
          at = parent;
        }
      }
    },

    // Occurrences in the visible text, whatever the case and white space; also across elements of a line.
    find(keyword, most) {
      const fold = (text) => {
        const lower = text.toLowerCase();
        return lower.length === text.length ? lower : [...text].map((c) => (c.toLowerCase().length === c.length ? c.toLowerCase() : c)).join('');
      };
      const wanted = fold(keyword.replace(/\s+/g, ' ').trim());
      const hits = [];
      if (wanted === '') return hits;
      let text = '', starts = [];  // of one block: {at, node, offsets of the characters kept}
      const flush = () => {
        const folded = fold(text);
        const place = (at) => {
          let low = 0, high = starts.length - 1;
          while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (starts[middle].at <= at) low = middle;
            else high = middle - 1;
          }
          return [starts[low].node, starts[low].offsets[at - starts[low].at]];
        };
        for (let at = folded.indexOf(wanted); at >= 0 && hits.length < most; at = folded.indexOf(wanted, at + wanted.length)) {
          const range = document.createRange();
          const [from, begin] = place(at), [to, last] = place(at + wanted.length - 1);
          range.setStart(from, begin);
          range.setEnd(to, last + 1);
          const rect = range.getBoundingClientRect();
          if (rect.width === 0 && rect.height === 0) continue;
          hits.push({
            text: text.slice(at, at + wanted.length).slice(0, 500),
            context: text.slice(Math.max(at - 60, 0), at + wanted.length + 60).slice(0, 1000).trim(),
            x: rect.left, y: rect.top, width: rect.width, height: rect.height,
          });
        }
        text = '';
        starts = [];
      };
      // Depth first, with an end for each block: no line spans two blocks.
      const stack = document.body ? [document.body] : document.documentElement ? [document.documentElement] : [];
      for (let seen = 0; stack.length > 0 && seen < kNodes && hits.length < most; ++seen) {
        const at = stack.pop();
        if (at === null) {
          flush();
          continue;
        }
        if (typeOf(at) === Node.TEXT_NODE) {
          const data = dataOf(at);
          const offsets = [], start = text.length;
          let kept_ = '';
          for (let i = 0; i < data.length; ++i) {
            const space = /\s/.test(data[i]);
            if (space && (kept_ === '' ? text === '' || text.endsWith(' ') : kept_.endsWith(' '))) continue;
            kept_ += space ? ' ' : data[i];
            offsets.push(i);
          }
          if (kept_ === '') continue;
          text += kept_;
          starts.push({at: start, node: at, offsets});
          continue;
        }
        if (typeOf(at) !== Node.ELEMENT_NODE) continue;
        const tag = tagOf(at);
        if (tag === 'script' || tag === 'style' || tag === 'noscript' || tag === 'template') continue;
        const style = getComputedStyle(at);
        if (style.display === 'none' || style.visibility !== 'visible') continue;
        const block = !/^(inline|contents)/.test(style.display) || tag === 'br';
        if (block) {
          flush();
          stack.push(null);
        }
        const nodes = nodesOf(shadowOf(at) ?? at);
        for (let i = nodes.length - 1; i >= 0; --i) stack.push(nodes[i]);
      }
      flush();
      return hits;
    },

    // Known widgets that are seen and not solved: [kind, selector of the widget, name of the field with its token].
    captcha() {
      const kinds = [
        ['recaptcha', 'iframe[src*="/recaptcha/"]:not([src*="size=invisible"]), .g-recaptcha:not([data-size=invisible])', 'g-recaptcha-response'],
        ['hcaptcha', 'iframe[src*="hcaptcha.com"], .h-captcha:not([data-size=invisible])', 'h-captcha-response'],
        ['turnstile', 'iframe[src*="challenges.cloudflare.com"], .cf-turnstile', 'cf-turnstile-response'],
        ['cloudflare', '#challenge-form, #challenge-running, #cf-challenge-running', ''],
        ['arkose', 'iframe[src*="arkoselabs.com"], iframe[src*="funcaptcha.com"], #FunCaptcha', 'fc-token'],
        ['geetest', '.geetest_panel, .geetest_holder, .geetest_captcha, .geetest_box', 'geetest_validate'],
        ['datadome', 'iframe[src*="captcha-delivery.com"]', ''],
        ['aws-waf', '#captcha-container, .amzn-captcha-modal, awswaf-captcha', ''],
        ['tencent', 'iframe[src*="captcha.qq.com"], iframe[src*="captcha.gtimg.com"], #tcaptcha_transform', ''],
        ['image', 'img[src*="captcha" i], img[id*="captcha" i], img[class*="captcha" i], canvas[id*="captcha" i]', ''],
      ];
      for (const [kind, selector, field] of kinds) {
        for (const element of [...Document.prototype.querySelectorAll.call(document, selector)].slice(0, 20)) {
          const rect = rectOf(element);
          if (rect.width < 10 || rect.height < 10 || !shown(element, getComputedStyle(element))) continue;
          const token = field ? Document.prototype.querySelector.call(document, `[name="${field}"]`) : null;
          if (token && String(token.value ?? '').length > 0) continue;
          return {detected: true, kind, selector: selectorOf(element)};
        }
      }
      return {detected: false, kind: null, selector: null};
    },
  };
};
