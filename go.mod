module github.com/lullgo/lull

go 1.26.0
