// Code in a page's own world, as the page's own would run there.
'use strict';

// Evaluates the expression, calls it if it is a function, and waits for what it promises. `send` sends a command of the DevTools protocol
// to the page. Answers {result, exceptionDetails, kept}: a RemoteObject, or an exception and nothing else of use; whether the group may
// hold objects.
async function run(send, group, expression) {
  const how = {objectGroup: group, awaitPromise: true, userGesture: true};
  // replMode permits a second `const` of the same name, and `await` outside of a function. It does not await a promise that the last
  // expression is.
  const first = await send('Runtime.evaluate', {expression, replMode: true, ...how});
  let made = first;
  if (!made.exceptionDetails && made.result.type === 'function') {
    made = await send('Runtime.callFunctionOn', {objectId: made.result.objectId, functionDeclaration: 'function() { return this(); }', ...how});
  } else if (!made.exceptionDetails && made.result.subtype === 'promise') {
    made = await send('Runtime.awaitPromise', {promiseObjectId: made.result.objectId});
  }
  return {...made, kept: made !== first || made.result.objectId !== undefined};
}

module.exports = {run};
