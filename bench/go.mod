module github.com/lullgo/lull/bench

go 1.26

require github.com/lullgo/lull v0.0.0

replace github.com/lullgo/lull => ..
