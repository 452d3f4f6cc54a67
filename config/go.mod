module github.com/lullgo/lull/config

go 1.26.0

require (
	github.com/lullgo/lull v0.0.0
	go.yaml.in/yaml/v4 v4.0.0
)

replace github.com/lullgo/lull => ..
