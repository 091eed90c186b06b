// Two selector engines for playwright. They run in its own world of the page (contentScript), which the page's code does not reach. Nodes are
// read by the getters of their types: an input named "children" hides form.children in every world.
'use strict';

// node=0/1/s/2: the element at these positions below the document; "s" enters an open shadow root.
const node = {content: `({
  queryAll(root, path) {
    const read = (type, name, from) => Object.getOwnPropertyDescriptor(type.prototype, name).get.call(from);
    const typeOf = (from) => (from instanceof Element ? Element : from instanceof Document ? Document : DocumentFragment);
    let at = root;
    for (const step of path.split('/')) {
      at = step === 's' ? read(Element, 'shadowRoot', at) : read(typeOf(at), 'children', at)[Number(step)];
      if (!at) return [];
    }
    return [at];
  },
  query(root, path) { return this.queryAll(root, path)[0]; },
})`};

// Behind another selector: that element itself, if it is of the kind.
const kind = {content: `({
  queryAll(root, name) {
    const kinds = {
      check: 'input[type=checkbox i], input[type=radio i]',
      select: 'select',
      file: 'input[type=file i]',
    };
    return root instanceof Element && Element.prototype.matches.call(root, kinds[name]) ? [root] : [];
  },
  query(root, name) { return this.queryAll(root, name)[0]; },
})`};

module.exports = {engine: {node, kind}};
