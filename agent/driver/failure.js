// An operation that cannot be carried out, with the words that its caller gets. `invalid`: the request itself is wrong, whatever the
// page looks like.
'use strict';

class Failure extends Error {
  constructor(message, {invalid = false} = {}) {
    super(message);
    this.name = 'Failure';
    this.invalid = invalid;
  }
}

const invalid = (message) => new Failure(message, {invalid: true});

module.exports = {Failure, invalid};
