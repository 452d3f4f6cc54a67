package config

import (
	"github.com/lullgo/lull/internal/tree"
)

// A Position is a place in a file, with the fields File, Line and Column. Lines and columns
// count from 1, columns in characters. The zero Position is none: of a PolicyFile that was made
// in code. Its String is "file:3:15", and "-" for none.
type Position = tree.Position

// A Mistake is one thing that is wrong in a file or in an assignment (see [SetPolicy]). It has a [Position], which is none in an
// assignment. Its Path is the field, such as "services.0.queue.limit", and empty if the text is no YAML. Found is what the file has,
// as a phrase that follows "is": "unknown", "a list", or the value in quotes. Allowed is what the file may have, a noun phrase, and
// Suggestion what was probably meant, if anything is similar. Its Error has all of it, in the form that editors turn into a link:
//
//	retry.yaml:3:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 3s?
type Mistake = tree.Mistake

// Mistakes is a list of everything that is wrong with a file, in the order of its lines. It is an
// error, with a line for each; errors.As finds it, and each [Mistake] in it.
type Mistakes = tree.Mistakes
