module github.com/lullgo/lull/config/schematest

go 1.26.0

require (
	github.com/lullgo/lull v0.0.0
	github.com/lullgo/lull/config v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	go.yaml.in/yaml/v4 v4.0.0
)

require golang.org/x/text v0.44.0 // indirect

replace (
	github.com/lullgo/lull => ../..
	github.com/lullgo/lull/config => ..
)
