// Package convert converts retry settings of other systems into lull's policy files, and back ([Formats]). No two of
// these systems have the same settings, so a [Report] has each setting that is lost or changed, with its place, its
// value and the reason. The readers mark each part of a file that they read; what has no mark is lost, unless it is
// known that it is not about calls.
//
// A setting that both systems can express is the same after a conversion to the other system and back. The result is
// valid by the rules of its system, and the same for the same input. A file of a hundred routes takes some ten
// milliseconds. The package keeps no state; all functions may be called concurrently, with values that are not shared.
// docs/convert.md has the rules and tables of all settings.
package convert
