module github.com/lullgo/lull/torture

go 1.26.0

require github.com/lullgo/lull v0.0.0

replace github.com/lullgo/lull => ..
