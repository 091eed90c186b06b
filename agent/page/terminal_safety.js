// What makes xterm.js safe for output that nobody trusts, and fit for the content security policy.

// The policy permits style elements with the page's nonce and no style attributes. xterm.js makes elements without one, and sets
// attributes for true colours.
function allowStyles() {
  const nonce = document.querySelector('style').nonce;
  const create = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const made = create(name, options);
    if (name === 'style') made.nonce = nonce;
    return made;
  };
  const setAttribute = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name, value) {
    if (name === 'style' && this.style) this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

// Characters that change the direction of a text take no column. Without them the text is shown in the order of its bytes: source
// code cannot look like other code.
const kDirections = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const withoutDirections = (text) => text.replace(kDirections, '');

// A title is one short line of ordinary characters, whatever a program asked for.
const safeTitle = (text) => withoutDirections(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ').slice(0, 80);

// Pasted text may come from a page that nobody trusts. An escape sequence in it could end the paste early and run its rest.
const safePaste = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '');

// Sequences that are swallowed: the clipboard (52), links (8), and colours (4, 10 to 19, 104 to 119), which could hide text and whose
// questions are answered into the program's input.
function refuseSequences(terminal) {
  const refused = [4, 5, 8, 52, 104, 105];
  for (let one = 10; one < 20; one++) refused.push(one, one + 100);
  for (const one of refused) terminal.parser.registerOscHandler(one, () => true);
}
