module github.com/lullgo/lull/cmd/lull

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/lullgo/lull v0.0.0
	github.com/lullgo/lull/config v0.0.0
	github.com/lullgo/lull/torture v0.0.0
	golang.org/x/sys v0.50.0
	golang.org/x/term v0.48.0
)

require go.yaml.in/yaml/v4 v4.0.0 // indirect

replace github.com/lullgo/lull => ../..

replace github.com/lullgo/lull/config => ../../config

replace github.com/lullgo/lull/integrations/lullamqp => ../../integrations/lullamqp

replace github.com/lullgo/lull/integrations/lullnats => ../../integrations/lullnats

replace github.com/lullgo/lull/integrations/lullsqs => ../../integrations/lullsqs

replace github.com/lullgo/lull/torture => ../../torture
