module github.com/lullgo/lull/cmd/lull

go 1.26

require github.com/lullgo/lull v0.0.0

replace github.com/lullgo/lull => ../..
