// Names of keys as clients write them, in any case, and playwright's for them. Other names go to playwright unchanged.
'use strict';

const names = {
  ctrl: 'Control', control: 'Control', alt: 'Alt', option: 'Alt', shift: 'Shift', meta: 'Meta', cmd: 'Meta', command: 'Meta', super: 'Meta',
  win: 'Meta', enter: 'Enter', return: 'Enter', esc: 'Escape', escape: 'Escape', tab: 'Tab', space: 'Space', spacebar: 'Space',
  backspace: 'Backspace', delete: 'Delete', del: 'Delete', insert: 'Insert', ins: 'Insert', home: 'Home', end: 'End', pageup: 'PageUp',
  pgup: 'PageUp', pagedown: 'PageDown', pgdn: 'PageDown', up: 'ArrowUp', down: 'ArrowDown', left: 'ArrowLeft', right: 'ArrowRight',
  arrowup: 'ArrowUp', arrowdown: 'ArrowDown', arrowleft: 'ArrowLeft', arrowright: 'ArrowRight', capslock: 'CapsLock', numlock: 'NumLock',
  scrolllock: 'ScrollLock', printscreen: 'PrintScreen', pause: 'Pause', menu: 'ContextMenu', contextmenu: 'ContextMenu', plus: '+',
};
for (let i = 1; i <= 12; ++i) names[`f${i}`] = `F${i}`;

const keyName = (name) => {
  const known = name.toLowerCase().replace(/[_ ]/g, '');
  return Object.hasOwn(names, known) ? names[known] : name;
};

module.exports = {keyName};
