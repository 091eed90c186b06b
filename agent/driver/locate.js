// What an operation acts on: a selector, or the index of an element in the last answer of `elements`.
'use strict';

const {Failure, invalid} = require('./failure');

const kStale = 'is not in the page any more: call elements again';
const kEnter = ' >> internal:control=enter-frame >> ';

// A locator for the arguments, or null when they name a place by x and y.
async function located(op, values) {
  if (values.selector !== undefined) return op.tab.page.locator(values.selector);
  if (values.index !== undefined) return byIndex(op, values.index);
  if (values.x !== undefined && values.y !== undefined) return null;
  throw invalid('selector, index, or x and y must be given');
}

// The element was kept in the driver's world; where it is now is asked there, so that no other element takes its index. A frame on the
// way is found like this, too.
async function byIndex(op, index) {
  const list = op.tab.elements;
  if (list === null) throw new Failure('no element has an index in this tab: call elements first');
  if (index < 0 || index >= list.length) throw new Failure(`there is no element ${index}: the last call of elements found ${list.length}`);
  const steps = [];
  for (const {world, kind, number} of list[index]) {
    const path = await op.within(op.tab.callIn(world, 'path', kind, number)).catch((error) => {
      if (op.late) throw error;
      return null;
    });
    if (path === null) throw new Failure(`element ${index} ${kStale}`);
    steps.push(`node=${path}`);
  }
  return op.tab.page.locator(steps.join(kEnter));
}

module.exports = {located, byIndex, kEnter};
