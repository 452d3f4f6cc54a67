// Package migrate has the programs of docs/coming-from.md: what a user of another library has
// today, and the same with lull. There is nothing to import: all of it is in tests, which show
// that both sides make the same attempts where the call succeeds, and that lull makes fewer in
// an outage. The module is one of its own because the root of lull requires no other library.
package migrate
